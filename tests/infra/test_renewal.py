"""infra.renewal: edits that would end what runs, because Batch can not make them in place."""

from __future__ import annotations

from typing import Any

import pytest

from infra.capacity import Standing, StandingEnvironment, StandingQueue
from infra.ending import Jobs
from infra.renewal import harmful, renewed, served
from infra.settings import Settings, TypeSettings

from .test_plan import planned

C6G = (TypeSettings(type="c6g.medium"),)
BOTH, SPOT, ON_DEMAND = ["c6g-medium", "c6g-medium-spot"], ["c6g-medium-spot"], ["c6g-medium"]


def standing(stack: str = "rl", **facts: Any) -> Standing:
    """The default pair; `facts` differ in each."""
    strategies = ("BEST_FIT_PROGRESSIVE", "SPOT_PRICE_CAPACITY_OPTIMIZED")
    return Standing(
        environments=tuple(
            StandingEnvironment(
                **{"name": name, "stack": stack, "queue": name, "allocation_strategy": s} | facts
            )
            for name, s in zip(BOTH, strategies, strict=True)
        ),
        queues=tuple(
            StandingQueue(name=f"{stack}-{name}", stack=stack, queue=name, fair_share=False)
            for name in [*BOTH, "c6g-medium-flex"]
        ),
    )


@pytest.mark.parametrize(
    ("stands", "wanted", "found"),
    [
        ({}, {}, {}),
        ({}, {"spot_allocation_strategy": "SPOT_CAPACITY_OPTIMIZED"}, {}),
        ({}, {"root_volume_gib": 500, "max_vcpus": 4, "spot_bid_percentage": 50}, {}),
        ({}, {"batch_service_role": True}, {"batchServiceRole": BOTH}),
        ({"own_service_role": True}, {}, {"batchServiceRole": BOTH}),
        ({}, {"allocation_strategy": "BEST_FIT"}, {"allocationStrategy": ON_DEMAND}),
        ({}, {"spot_allocation_strategy": "BEST_FIT"}, {"spotAllocationStrategy": SPOT}),
        ({}, {"spot_fleet_role": True}, {"spotFleetRole": SPOT}),
        (
            {"own_service_role": True},
            {"batch_service_role": True, "spot_allocation_strategy": "SPOT_CAPACITY_OPTIMIZED"},
            {"spotAllocationStrategy": SPOT},
        ),
        ({"stack": "dl"}, {"batch_service_role": True}, {}),
    ],
)
def test_what_batch_does_not_change_in_place(
    stands: dict[str, Any], wanted: dict[str, Any], found: dict[str, list[str]]
) -> None:
    plan = planned(Settings(instance_types=C6G, **wanted))
    assert renewed(plan, standing(**stands)) == found


def test_whose_jobs_may_run_there() -> None:
    """A flex queue's, too."""
    plan = planned(Settings(instance_types=C6G, flex=True))
    assert [q.queue for q in served(plan, standing(), SPOT)] == [*SPOT, "c6g-medium-flex"]
    assert served(plan, standing("dl"), SPOT) == []


def test_what_only_waits_is_not_harmed() -> None:
    waiting = Jobs(status="RUNNABLE", jobs=9, runs=9)
    assert list(harmful("spotFleetRole", {"q": [waiting]})) == []
    (mistake,) = harmful("spotFleetRole", {"q": [waiting, Jobs(status="RUNNING", jobs=1, runs=40)]})
    assert mistake.path == "runfleet:spotFleetRole"
    assert "would end: q: 1 RUNNING (40 runs); wait for" in mistake.problem
