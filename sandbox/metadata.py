"""An instance's metadata endpoint, as far as jobs ask it: who am I, and am I being taken away. Pure.

Version 2 only (a token first), as the launch template of a careful fleet demands. Beside it stands
what ECS gives to a job that has a role: its credentials.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timezone

from sandbox.answers import Answer, as_json
from sandbox.batch.machines import Machine

PREFIX = "/_metadata/"
TOKEN_HEADER = "HTTP_X_AWS_EC2_METADATA_TOKEN"  # noqa: S105 # a header's name
TTL_HEADER = "HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS"
_MOST_SECONDS = 21_600


def split(path: str) -> tuple[str, str]:
    """The machine's secret and the rest of the path."""
    secret, _, rest = path.removeprefix(PREFIX).partition("/")
    return secret, rest.strip("/")


def answer(
    machine: Machine,
    method: str,
    path: str,
    headers: Mapping[str, str],
    *,
    region: str,
    now_ms: int,
) -> Answer:
    """What the endpoint says (EC2 User Guide, Instance metadata)."""
    token = hashlib.sha256(f"token of {machine.secret}".encode()).hexdigest()
    if (method, path) == ("PUT", "latest/api/token"):
        seconds = headers.get(TTL_HEADER, "")
        if not seconds.isdigit() or not 1 <= int(seconds) <= _MOST_SECONDS:
            return _text("Bad Request", 400)
        return _text(token, ttl=seconds)
    if method != "GET":
        return _text("Method Not Allowed", 405)
    if headers.get(TOKEN_HEADER) != token:
        return _text("Unauthorized", 401)
    value = _values(machine, region, now_ms).get(path.removeprefix("latest/"))
    return _text("Not Found", 404) if value is None else _text(value)


def credentials(role: str, key: str, now_ms: int) -> Answer:
    """What a job with that role signs with (ECS, Task IAM role). All keys here are the sandbox's."""
    ends = datetime.fromtimestamp(now_ms / 1000 + 6 * 3600, tz=timezone.utc)
    return as_json(
        {
            "RoleArn": role,
            "AccessKeyId": key,
            "SecretAccessKey": "sandbox",
            "Token": "sandbox",
            "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    )


def _values(machine: Machine, region: str, now_ms: int) -> dict[str, str]:
    values = {
        "meta-data/instance-id": machine.id,
        "meta-data/instance-type": machine.type.name,
        "meta-data/instance-life-cycle": "spot" if machine.spot else "on-demand",
        "meta-data/local-ipv4": machine.address,
        "meta-data/placement/region": region,
        "meta-data/placement/availability-zone": region + "a",
    }
    announced = machine.notice_ms is not None and machine.notice_ms <= now_ms
    if announced and machine.lost_ms is not None:
        end = datetime.fromtimestamp(machine.lost_ms / 1000, tz=timezone.utc)
        at = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        action = json.dumps({"action": "terminate", "time": at})
        values |= {"meta-data/spot/instance-action": action, "meta-data/spot/termination-time": at}
    return values


def _text(body: str, status: int = 200, ttl: str | None = None) -> Answer:
    headers = {"Content-Type": "text/plain"}
    if ttl:
        headers["X-Aws-Ec2-Metadata-Token-Ttl-Seconds"] = ttl
    return Answer(status, body.encode(), headers)
