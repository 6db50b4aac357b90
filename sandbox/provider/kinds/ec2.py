"""What EC2's kinds have in common. Speaks boto3."""

from __future__ import annotations

import re
from typing import Any

from botocore.exceptions import ClientError

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import changed_tags, key_values, tags_of
from sandbox.provider.wire import Properties


def tag_specifications(resource_type: str, inputs: Properties) -> list[dict[str, Any]]:
    tags = key_values(tags_of(inputs))
    return [{"ResourceType": resource_type, "Tags": tags}] if tags else []


def update_tags(cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
    put, gone = changed_tags(tags_of(old), tags_of(new))
    ec2 = cloud.client("ec2")
    if put:
        ec2.create_tags(Resources=[resource_id], Tags=key_values(put))
    if gone:
        ec2.delete_tags(Resources=[resource_id], Tags=[{"Key": key} for key in gone])


def unless_gone(call: Any, **arguments: Any) -> Any:
    """What the call answers; None when what it names is gone."""
    try:
        return call(**arguments)
    except ClientError as err:
        if re.search(r"\.NotFound(Exception)?$", err.response["Error"]["Code"]):
            return None
        raise
