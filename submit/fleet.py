"""The fleet document: what a stack exports and `submit` reads. Pure.

The one contract between infra and submit. Readers ignore keys they do not know (a newer
program may have written them) and refuse a newer major version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

FLEET_VERSION = 1
SPOT_SUFFIX = "-spot"
LOCAL = "local"
"""The queue, the stack and the account that the own machine is."""


class FleetError(ValueError):
    """The text is not a fleet document that this program can read."""


class Queue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """One Batch job queue with the facts needed to choose it and to plan for it.

    `memory_mib` is what one job can have on one instance (less than the type's nominal
    memory: the kernel and the ECS agent keep a part). `gpus` are whole NVIDIA GPUs.
    """

    arn: str
    instance_type: str
    arch: str
    """`x86_64` or `arm64`, as EC2 names them."""
    vcpus: int
    memory_mib: int
    gpus: int = 0
    gpu_model: str | None = None
    spot: bool = False
    max_vcpus: int
    fair_share: bool = False
    """Whether Batch wants a share identifier with each job."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The queues of one stack (one team), by logical name, and what their jobs run with."""

    version: int
    stack: str
    account: str
    region: str
    queues: dict[str, Queue]
    job_role_arn: str
    execution_role_arn: str
    log_group: str
    secrets: dict[str, str] = {}
    """Name → ARN in Secrets Manager; never a value."""
    image: str | None = None
    """The image of jobs that name none."""
    image_repository: str | None = None
    artifacts: str | None = None
    """Where jobs leave what they make, `s3://bucket/prefix/`; they may use no more of the bucket."""
    tags: dict[str, str] = {}
    """Cost-allocation tags that every job of the team carries."""


def queue_name(instance_type: str, *, spot: bool) -> str:
    """The logical queue name: `g4dn.xlarge` → `g4dn-xlarge`, with `-spot` for a spot queue."""
    return instance_type.replace(".", "-") + (SPOT_SUFFIX if spot else "")


def parse_fleet(text: str | bytes) -> Fleet:
    """The fleet document in `text` (JSON).

    Raises FleetError: no JSON, a member that is missing or of the wrong type (with its
    path), or a version newer than this program's.
    """
    try:
        version = msgspec.json.decode(text, type=_Versioned).version
        if version > FLEET_VERSION:
            raise FleetError(
                f"the fleet document has version {version}, this program reads up to "
                f"{FLEET_VERSION}: upgrade runfleet (pip install --upgrade runfleet)"
            )
        return msgspec.json.decode(text, type=Fleet)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise FleetError(f"not a fleet document: {err}") from err


def fleet_to_builtins(fleet: Fleet) -> dict[str, Any]:
    """The document as plain dicts, lists, strings and numbers, ready for a stack output."""
    builtins: dict[str, Any] = msgspec.to_builtins(fleet)
    return builtins


def fleet_to_parameters(fleet: Fleet) -> dict[str, str]:
    """The document in parts, each small enough for an SSM parameter: by name below the stack's
    path, `fleet`, `tags`, and one each of `queues/<name>` and `secrets/<name>`.
    """
    head = msgspec.structs.replace(fleet, queues={}, secrets={}, tags={})
    return {
        "fleet": _text(head),
        "tags": _text(fleet.tags),
        **{f"queues/{name}": queue_text(queue) for name, queue in fleet.queues.items()},
        **{f"secrets/{name}": arn for name, arn in fleet.secrets.items()},
    }


def queue_text(queue: Queue) -> str:
    """A queue as its part of the document."""
    return _text(queue)


def fleet_from_parameters(parameters: Mapping[str, str]) -> Fleet:
    """The document that these parts make. Raises FleetError as parse_fleet does."""
    if "fleet" not in parameters:
        raise FleetError("not a fleet document: there is no parameter named fleet")
    head = parse_fleet(parameters["fleet"])
    try:
        return msgspec.structs.replace(
            head,
            queues={
                name.removeprefix("queues/"): msgspec.json.decode(text, type=Queue)
                for name, text in parameters.items()
                if name.startswith("queues/")
            },
            secrets={
                name.removeprefix("secrets/"): arn
                for name, arn in parameters.items()
                if name.startswith("secrets/")
            },
            tags=msgspec.json.decode(parameters.get("tags", "{}"), type=dict[str, str]),
        )
    except msgspec.DecodeError as err:
        raise FleetError(f"not a fleet document: {err}") from err


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


class _Versioned(msgspec.Struct, frozen=True):
    version: int
