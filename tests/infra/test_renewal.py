"""infra.renewal: edits that would end what runs, because Batch can not make them in place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from infra.capacity import Machines, Standing, StandingEnvironment, StandingQueue
from infra.ending import Jobs
from infra.renewal import harmful, renewed, served
from infra.settings import Settings, TypeSettings

from .test_plan import ACCOUNT, DEFAULT_COMPUTE, planned

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


MACHINES = Machines(
    subnet_ids=frozenset(DEFAULT_COMPUTE.subnet_ids),
    bid_percentage=100,
    image_id=None,
    instance_profile_arn="arn:aws:iam::123456789012:instance-profile/runfleet-rl-instance-1",
    root_device=DEFAULT_COMPUTE.root_device,
    root_volume_gib=DEFAULT_COMPUTE.root_volume_gib,
    user_data=DEFAULT_COMPUTE.user_data,
    tags=DEFAULT_COMPUTE.tags,
)
"""Of the on-demand one with a role of its own, as the plan with no other wish has them."""


@pytest.mark.parametrize(
    ("wanted", "setting"),
    [
        ({"max_vcpus": 4, "priority": 7, "longest_job_hours": 1}, None),
        ({"root_volume_gib": 200}, "rootVolumeGib"),
        ({"tags": {"cost-center": "4711"}}, "tags"),
        ({"role_path": "/teams/rl/"}, "rolePath"),
        ({"subnet_ids": ("subnet-aaaaaaaa",)}, "subnetIds"),
    ],
)
def test_with_a_service_role_of_its_own_hardly_anything_changes_in_place(
    wanted: dict[str, Any], setting: str | None
) -> None:
    settings = Settings(instance_types=C6G, spot=False, batch_service_role=True, **wanted)
    chosen = settings.subnet_ids
    subnets = tuple(s for s in ACCOUNT.subnets if not chosen or s.id in chosen)
    plan = planned(settings, msgspec.structs.replace(ACCOUNT, subnets=subnets))
    there = standing(own_service_role=True, machines=MACHINES)
    assert renewed(plan, there) == ({setting: ON_DEMAND} if setting else {})


@pytest.mark.parametrize(
    ("stands", "setting"),
    [
        ({"bid_percentage": 50}, "spotBidPercentage"),
        ({"user_data": "Zm9v"}, "instanceStore"),
        ({"image_id": "ami-12345678"}, "instanceTypes"),
    ],
)
def test_what_stood_before_counts(stands: dict[str, Any], setting: str) -> None:
    plan = planned(Settings(instance_types=C6G, spot=False, allocation_strategy="BEST_FIT"))
    machines = msgspec.structs.replace(MACHINES, **stands)
    there = standing(allocation_strategy="BEST_FIT", machines=machines)
    assert renewed(plan, there) == {setting: ON_DEMAND}


def test_what_only_waits_is_not_harmed() -> None:
    plan = planned(Settings(instance_types=C6G, spot_fleet_role=True))
    waiting = Jobs(status="RUNNABLE", jobs=9, runs=9)
    busy = Jobs(status="RUNNING", jobs=1, runs=40)
    assert list(harmful(plan, standing(), {"rl-c6g-medium-spot": [waiting]})) == []
    assert list(harmful(plan, standing(), {"rl-c6g-medium": [busy]})) == []
    (mistake,) = harmful(plan, standing(), {"rl-c6g-medium-spot": [waiting, busy]})
    assert mistake.path == "runfleet:spotFleetRole"
    assert "would end: rl-c6g-medium-spot: 1 RUNNING (40 runs); wait for" in mistake.problem
