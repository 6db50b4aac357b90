"""Where a job may run, and why nowhere. Pure, but for moto's list of instance types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sandbox.batch.environments import instance_types
from sandbox.batch.instances import InstanceType
from sandbox.batch.store import Job, Resource, Store, new_id

MISFIT = (
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) "
    "is higher than that can be met by the CE(s) attached to the job queue."
)
TOO_LARGE = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - The job needs more vCPUs than the "
    "maxvCpus of the CE(s) attached to the job queue."
)
NO_ENVIRONMENT = "UNDETERMINED - No CE attached to the job queue is ENABLED and VALID."


class Placement(NamedTuple):
    """An environment, and a made-up instance in it."""

    environment: Resource
    instance_id: str


def place(
    store: Store, queue: Resource, job: Job, vcpus_in_use: Mapping[str, int]
) -> Placement | str | None:
    """Where the job is to run; a reason when it never can; None when it only has to wait.

    `vcpus_in_use` by environment ARN: an environment takes jobs up to its maxvCpus.
    """
    wanted = vcpus(job)
    reason: str | None = NO_ENVIRONMENT
    for item in queue.detail["computeEnvironmentOrder"]:
        environment = store.environment(item["computeEnvironment"])
        if environment is None or not _is_usable(environment.detail):
            continue
        most = environment.detail["computeResources"]["maxvCpus"]
        if not any(fits(job, found) for found in instance_types(environment)):
            reason = MISFIT if reason == NO_ENVIRONMENT else reason
        elif wanted > most:
            reason = reason and TOO_LARGE
        elif vcpus_in_use.get(environment.arn, 0) + wanted > most:
            reason = None
        else:
            return Placement(environment, "i-" + new_id().replace("-", "")[:17])
    return reason


def fits(job: Job, found: InstanceType) -> bool:
    """Whether one instance of the type could ever hold the job."""
    container = job.spec["container"]
    wanted = _requirements(container)
    return (
        vcpus(job) <= found.vcpus
        and wanted.get("MEMORY", container.get("memory", 0)) <= found.memory_mib
        and wanted.get("GPU", 0) <= found.gpus
    )


def vcpus(job: Job) -> int:
    """The vCPUs that the job asks for."""
    container = job.spec["container"]
    return int(_requirements(container).get("VCPU", container.get("vcpus", 0)))


def _requirements(container: dict[str, Any]) -> dict[str, int]:
    return {r["type"]: int(r["value"]) for r in container["resourceRequirements"]}


def _is_usable(detail: dict[str, Any]) -> bool:
    return detail["state"] == "ENABLED" and detail["status"] in {"VALID", "UPDATING"}
