"""Bucket policies that ask for TLS: loopback counts as that here, nobody else can listen. Patches moto.

moto leaves conditions out of account, so that a policy against plain HTTP would shut everybody
out of the bucket.
"""

from __future__ import annotations

import json
from typing import Any

TLS = "aws:SecureTransport"


def count_loopback_as_tls() -> None:
    """From now on moto's buckets judge requests as if they had come over TLS."""
    from moto.iam.access_control import IAMPolicy, PermissionResult  # noqa: PLC0415 # moto is slow
    from moto.s3.models import FakeBucket  # noqa: PLC0415 # to load

    def get_permission(bucket: Any, action: str, resource: str) -> Any:
        if bucket.policy is None:
            return PermissionResult.NEUTRAL
        document = over_tls(json.loads(bucket.policy))
        return IAMPolicy(json.dumps(document)).is_action_permitted(action, resource)

    buckets: Any = FakeBucket
    buckets.get_permission = get_permission


def over_tls(document: dict[str, Any]) -> dict[str, Any]:
    """The policy as it is for requests over TLS: without what it says of those that are not."""
    statements = document["Statement"]
    statements = statements if isinstance(statements, list) else [statements]
    return document | {"Statement": [s for s in statements if not _of_plain_http(s)]}


def _of_plain_http(statement: dict[str, Any]) -> bool:
    asked = statement.get("Condition", {}).get("Bool", {}).get(TLS)
    return str(asked).lower() == "false"
