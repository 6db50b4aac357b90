"""Edits that put a new compute environment in the place of one on which jobs run. Pure.

The queue is led to the new one before the old one goes, so nothing that waits is lost; what runs
goes with the machines under it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from infra.capacity import Standing, StandingEnvironment, StandingQueue
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
        for setting in _not_in_place(compute, own[compute.name]):
            found.setdefault(setting, []).append(compute.name)
    return found


def served(plan: FleetPlan, standing: Standing, computes: Sequence[str]) -> list[StandingQueue]:
    """The stack's queues whose jobs may run there."""
    led = {q.name for t in plan.types for q in t.queues if {*q.compute} & {*computes}}
    return [q for q in standing.queues if q.stack == plan.stack and q.queue in led]


def harmful(setting: str, jobs: Mapping[str, Sequence[Jobs]]) -> Iterator[Mistake]:
    """A mistake if any of the jobs, by queue, are on machines."""
    running = {
        queue: on
        for queue, found in jobs.items()
        if (on := [j for j in found if j.status in ON_MACHINES])
    }
    if running:
        problem = (
            "Batch can not change this where compute environments stand: new ones take their "
            f"place, and what runs on the old ones would end: {told(running)}; wait for these jobs "
            "or end them (submit cancel), then type pulumi up, or set it back"
        )
        yield Mistake(path=f"{NAMESPACE}:{setting}", problem=problem)


def _not_in_place(plan: ComputePlan, stands: StandingEnvironment) -> Iterator[str]:
    """Batch User Guide, "Updating compute environments": only from and to its service-linked
    role, and strategies other than BEST_FIT.
    """
    if plan.service_role != stands.own_service_role:
        yield "batchServiceRole"
    if plan.allocation_strategy != stands.allocation_strategy and (
        "BEST_FIT" in {plan.allocation_strategy, stands.allocation_strategy}
        or stands.own_service_role
    ):
        yield "spotAllocationStrategy" if plan.market == "SPOT" else "allocationStrategy"
    elif plan.spot_fleet_role != stands.spot_fleet_role:
        yield "spotFleetRole"
