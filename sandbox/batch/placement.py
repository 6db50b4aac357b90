"""Where a job is to run, and why nowhere. No I/O."""

from __future__ import annotations

from typing import Any, NamedTuple

from sandbox.batch.environments import instance_types
from sandbox.batch.instances import InstanceType
from sandbox.batch.machines import Machine, Machines, Need, NoRoom
from sandbox.batch.store import Job, Resource, Store
from sandbox.batch.tasks import containers

MISFIT = (
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) "
    "is higher than that can be met by the CE(s) attached to the job queue."
)
TOO_LARGE = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - The job needs more vCPUs than the "
    "maxvCpus of the CE(s) attached to the job queue."
)
NO_CAPACITY = (
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested for "
    "instance type [{}]"
)
NOT_ON_SPOT = "UNDETERMINED - Multi-node parallel jobs do not run on SPOT compute resources."
NO_ENVIRONMENT = "UNDETERMINED - No CE attached to the job queue is ENABLED and VALID."
_GRAVITY = (NO_ENVIRONMENT, NOT_ON_SPOT, MISFIT, TOO_LARGE)
"""Reasons for never starting; with several environments the last of them counts."""


class Placement(NamedTuple):
    """An environment, and a machine in it for each node; one for a single job."""

    environment: Resource
    machines: list[Machine]

    def is_ready(self, now_ms: int) -> bool:
        return all(machine.ready_ms <= now_ms for machine in self.machines)


def place(
    store: Store, machines: Machines, queue: Resource, job: Job, now_ms: int
) -> Placement | str | None:
    """Where the job is to run, perhaps once the machines are up; a reason when it can't; None
    when it only has to wait for others to end.

    A queue's environments are tried in their order.
    """
    needs = needs_of(job)
    worst = 0
    lacking: str | None = None
    may_wait = False
    for item in queue.detail["computeEnvironmentOrder"]:
        environment = store.environment(item["computeEnvironment"])
        if environment is None or not _is_usable(environment.detail):
            continue
        fault = _misfit(environment, job, needs)
        if fault:
            worst = max(worst, _GRAVITY.index(fault))
            continue
        found = machines.find_room(environment, _fitting(environment, job, needs), needs, now_ms)
        if not isinstance(found, NoRoom):
            return Placement(environment, found)
        may_wait = may_wait or found.lacking is None
        lacking = lacking or found.lacking
        if job.nodes and found.lacking:
            break  # it blocks the queue (User Guide, Jobs stuck in RUNNABLE due to capacity)
    if may_wait:
        return None
    return NO_CAPACITY.format(lacking) if lacking else _GRAVITY[worst]


def needs_of(job: Job) -> list[Need]:
    """What each container of the job asks for: one, or one for each node."""
    if job.nodes:
        return [_task_need(node.spec)._replace(whole=True) for node in job.nodes.children]
    return [_task_need(job.spec)]


def vcpus(job: Job) -> int:
    """The vCPUs that the job asks for."""
    return sum(need.vcpus for need in needs_of(job))


def need_of(container: dict[str, Any]) -> Need:
    """What one container asks for."""
    wanted = {r["type"]: int(r["value"]) for r in container["resourceRequirements"]}
    return Need(
        vcpus=wanted.get("VCPU", container.get("vcpus", 0)),
        memory_mib=wanted.get("MEMORY", container.get("memory", 0)),
        gpus=wanted.get("GPU", 0),
    )


def _task_need(spec: dict[str, Any]) -> Need:
    needs = [need_of(container) for container in containers(spec)]
    if len(needs) == 1:
        return needs[0]
    return Need(
        vcpus=sum(need.vcpus for need in needs),
        memory_mib=sum(need.memory_mib for need in needs),
        gpus=sum(need.gpus for need in needs),
    )


def _misfit(environment: Resource, job: Job, needs: list[Need]) -> str | None:
    """Why the environment could never run the job, None if it could."""
    resources = environment.detail.get("computeResources", {})
    if job.nodes and resources.get("type") == "SPOT":
        return NOT_ON_SPOT
    fitting = _fitting(environment, job, needs)
    if not fitting:
        return MISFIT
    smallest = min(found.vcpus for found in fitting)
    wanted = smallest * len(needs) if job.nodes else needs[0].vcpus
    return TOO_LARGE if wanted > resources["maxvCpus"] else None


def _fitting(environment: Resource, job: Job, needs: list[Need]) -> list[InstanceType]:
    """The environment's types that can hold each of the containers."""
    wanted = job.spec.get("instanceType")
    return [
        found
        for found in instance_types(environment)
        if all(
            need.vcpus <= found.vcpus
            and need.memory_mib <= found.memory_mib
            and need.gpus <= found.gpus
            for need in needs
        )
        and wanted in {None, found.name, found.name.partition(".")[0]}
    ]


def _is_usable(detail: dict[str, Any]) -> bool:
    return detail["state"] == "ENABLED" and detail["status"] in {"VALID", "UPDATING"}
