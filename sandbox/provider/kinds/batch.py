"""What Batch's kinds have in common. Speaks boto3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox.provider.cloud import Cloud, Failed
from sandbox.provider.kind import changed_tags, tags_of
from sandbox.provider.wire import Properties


def tagged(inputs: Properties) -> dict[str, Any]:
    """The tags as an argument: Batch takes no empty ones."""
    tags = tags_of(inputs)
    return {"tags": tags} if tags else {}


def settled(
    cloud: Cloud,
    resource_id: str,
    detail: Callable[[Cloud, str], Any],
    *,
    invalid_too: bool = False,
) -> Any:
    """The detail of something that is no longer changing.

    Raises Failed when it is INVALID, with AWS's reason.
    """

    def found() -> Any:
        now = detail(cloud, resource_id)
        if now is None:
            raise Failed(f"{resource_id} is gone")
        return now if now["status"] in {"VALID", "INVALID"} else None

    now = cloud.wait(f"waiting for {resource_id}", found)
    if now["status"] == "INVALID" and not invalid_too:
        raise Failed(f"it is INVALID: {now.get('statusReason')}")
    return now


def update_tags(cloud: Cloud, arn: str, old: Properties, new: Properties) -> None:
    put, gone = changed_tags(tags_of(old), tags_of(new))
    batch = cloud.client("batch")
    if put:
        batch.tag_resource(resourceArn=arn, tags=put)
    if gone:
        batch.untag_resource(resourceArn=arn, tagKeys=gone)
