"""Edits that put a new compute environment in the place of one on which jobs run. Pure.

The queue is led to the new one before the old one goes, so nothing that waits is lost; what runs
goes with the machines under it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from infra.capacity import BEST_FIT, Machines, Standing, StandingEnvironment, StandingQueue
from infra.ending import Jobs, told
from infra.mistakes import Mistake
from infra.plans import ComputePlan, FleetPlan
from infra.settings import NAMESPACE

ON_MACHINES = frozenset({"STARTING", "RUNNING"})


def renewed(plan: FleetPlan, standing: Standing) -> dict[str, list[str]]:
    """By setting the compute environments, by logical name, that Batch can not change to it."""
    own = {e.queue: e for e in standing.environments if e.stack == plan.stack}
    found: dict[str, list[str]] = {}
    for compute in (c for t in plan.types for c in t.compute if c.name in own):
        stands = own[compute.name]
        settings = [*_never_in_place(compute, stands)]
        if stands.machines:
            settings += _other_machines(compute, stands.machines, path=plan.roles.instance.path)
        for setting in settings:
            found.setdefault(setting, []).append(compute.name)
    return found


def served(plan: FleetPlan, standing: Standing, computes: Collection[str]) -> list[StandingQueue]:
    """The stack's queues whose jobs may run there."""
    led = {q.name for t in plan.types for q in t.queues if {*q.compute} & {*computes}}
    return [q for q in standing.queues if q.stack == plan.stack and q.queue in led]


def harmful(
    plan: FleetPlan, standing: Standing, jobs: Mapping[str, Sequence[Jobs]]
) -> Iterator[Mistake]:
    """A mistake for each setting by which jobs on machines would end; `jobs` by queue, of all that
    are served by what is renewed.
    """
    running = {
        queue: on
        for queue, found in jobs.items()
        if (on := [j for j in found if j.status in ON_MACHINES])
    }
    for setting, computes in renewed(plan, standing).items():
        names = [queue.name for queue in served(plan, standing, computes)]
        ending = {name: running[name] for name in names if name in running}
        if ending:
            where = "" if setting in _OF_ENVIRONMENTS else " with batchServiceRole or BEST_FIT"
            problem = (
                f"Batch can not change this where compute environments stand{where}: new ones take "
                f"their place, and what runs on the old ones would end: {told(ending)}; wait for "
                "these jobs or end them (submit cancel), then type pulumi up, or set it back"
            )
            yield Mistake(path=f"{NAMESPACE}:{setting}", problem=problem)


_OF_ENVIRONMENTS = (
    "batchServiceRole",
    "allocationStrategy",
    "spotAllocationStrategy",
    "spotFleetRole",
)


def _never_in_place(plan: ComputePlan, stands: StandingEnvironment) -> Iterator[str]:
    """Batch User Guide, "Updating compute environments": only from and to its service-linked
    role, and strategies other than BEST_FIT.
    """
    if plan.service_role != stands.own_service_role:
        yield "batchServiceRole"
    if plan.allocation_strategy != stands.allocation_strategy and (
        BEST_FIT in {plan.allocation_strategy, stands.allocation_strategy}
        or stands.own_service_role
    ):
        yield "spotAllocationStrategy" if plan.market == "SPOT" else "allocationStrategy"
    elif plan.spot_fleet_role != stands.spot_fleet_role:
        yield "spotFleetRole"


def _other_machines(plan: ComputePlan, stands: Machines, *, path: str) -> Iterator[str]:
    """What differs of the machines; of such a compute environment Batch changes its size alone."""
    differs = {
        "instanceTypes": plan.image_id != stands.image_id or plan.root_device != stands.root_device,
        "spotBidPercentage": (plan.bid_percentage or 100) != stands.bid_percentage,
        "subnetIds": {*plan.subnet_ids} != stands.subnet_ids,
        "rootVolumeGib": plan.root_volume_gib != stands.root_volume_gib,
        "instanceStore": plan.user_data != stands.user_data,
        "rolePath": path != _path(stands.instance_profile_arn),
        "tags": plan.tags != stands.tags,
    }
    return (setting for setting, is_so in differs.items() if is_so)


def _path(instance_profile_arn: str) -> str:
    """`/teams/rl/` of `arn:aws:iam::…:instance-profile/teams/rl/NAME`."""
    return instance_profile_arn.partition(":instance-profile")[2].rpartition("/")[0] + "/"
