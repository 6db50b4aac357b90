"""infra.plan: what each further setting changes in a fleet, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from infra.choices import choose
from infra.mistakes import Refused
from infra.plan import plan_fleet
from infra.plans import FleetPlan, TimeLimit
from infra.settings import Settings, TypeSettings

from .test_plan import ACCOUNT, CATALOG, planned

C6G = (TypeSettings(type="c6g.medium"),)
DEFAULT = planned(Settings(instance_types=C6G))


def with_(**settings: Any) -> FleetPlan:
    return planned(Settings(**{"instance_types": C6G} | settings))


def mistakes(*items: TypeSettings, **settings: Any) -> dict[str, str]:
    _, found = choose(Settings(instance_types=items or C6G, **settings), CATALOG)
    return {mistake.path.removeprefix("runfleet:"): mistake.problem for mistake in found}


def test_flex_queue() -> None:
    """Spot machines first, and no machine more than the other two queues have."""
    plan = with_(flex=True)
    assert plan.types[0].compute == DEFAULT.types[0].compute
    on_demand, spot, flex = plan.types[0].queues
    assert (on_demand, spot) == DEFAULT.types[0].queues
    assert (flex.name, flex.compute) == ("c6g-medium-flex", ("c6g-medium-spot", "c6g-medium"))
    assert flex.facts == msgspec.structs.replace(spot.facts, max_vcpus=512)


def test_flex_of_one_type() -> None:
    items = (TypeSettings(type="c6g.medium", flex=True), TypeSettings(type="c5a.large"))
    first, second = planned(Settings(instance_types=items)).types
    assert (len(first.queues), len(second.queues)) == (3, 2)


def test_flex_leaves_out_types_with_one_market() -> None:
    items = (TypeSettings(type="c6g.medium", spot=False),)
    assert len(planned(Settings(instance_types=items, flex=True)).types[0].queues) == 1


def test_flex_needs_both_markets() -> None:
    assert "onDemand is false" in mistakes(flex=True, on_demand=False)["flex"]
    item = TypeSettings(type="c6g.medium", flex=True, spot=False)
    assert "c6g.medium has only one kind" in mistakes(item)["instanceTypes[0]"]


def test_queues_and_environments_are_counted_apart() -> None:
    names = sorted(t.name for t in CATALOG.values() if t.family in {"c5", "m5", "r5"})[:17]
    items = tuple(TypeSettings(type=name) for name in names)
    problem = mistakes(*items, flex=True, max_vcpus=100)["instanceTypes"]
    assert problem.startswith("these are 34 compute environments and 51 queues; AWS gives")


def test_priority() -> None:
    items = (TypeSettings(type="c6g.medium", priority=0), TypeSettings(type="c5a.large"))
    plan = planned(Settings(instance_types=items, priority=9))
    assert [queue.priority for t in plan.types for queue in t.queues] == [0, 0, 9, 9]


def test_best_fit() -> None:
    """Spot needs a role then; on demand does not."""
    plan = with_(allocation_strategy="BEST_FIT")
    assert [c.allocation_strategy for c in plan.types[0].compute] == [
        "BEST_FIT",
        "SPOT_PRICE_CAPACITY_OPTIMIZED",
    ]
    assert plan.roles.spot_fleet is None
    plan = with_(spot_allocation_strategy="BEST_FIT")
    assert [c.spot_fleet_role for c in plan.types[0].compute] == [False, True]
    assert plan.roles.spot_fleet is not None


def test_service_role() -> None:
    plan = with_(batch_service_role=True)
    assert all(compute.service_role for compute in plan.types[0].compute)
    assert plan.roles.batch_service is not None


def test_capacity_wait() -> None:
    plan = with_(capacity_wait_hours=3)
    assert plan.types[0].queues[0].time_limits == (
        *DEFAULT.types[0].queues[0].time_limits,
        TimeLimit(reason="CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", max_time_seconds=10_800),
    )


def test_fair_share() -> None:
    plan = with_(fair_share=True, share_decay_hours=2, share_reservation=10, shares={"a*": 0.5})
    assert plan.share is not None
    assert (plan.share.share_decay_seconds, plan.share.compute_reservation) == (7200, 10)
    assert plan.share.weights == {"a*": 0.5}
    assert all(queue.fair_share and queue.facts.fair_share for queue in plan.types[0].queues)
    assert "fairShare is true" in mistakes(shares={"a": 2.0})["shares"]


def test_instance_store() -> None:
    """Of the types that have one; a type that is asked by name must."""
    items = (TypeSettings(type="m6gd.medium"), TypeSettings(type="c6g.medium"))
    first, second = planned(Settings(instance_types=items, instance_store=True)).types
    assert first.compute[0].user_data
    assert second.compute == DEFAULT.types[0].compute
    told = mistakes(TypeSettings(type="c6g.medium", instance_store=True))
    assert "c6g.medium has no local disk" in told["instanceTypes[0]"]


def test_secrets() -> None:
    choices, _ = choose(Settings(instance_types=C6G), CATALOG)
    settings = Settings(instance_types=C6G)
    plan = plan_fleet(
        settings, choices, ACCOUNT, stack="rl", project="runfleet", secret_names=["B", "A"]
    )
    assert plan.secrets is not None
    assert [secret.name for secret in plan.secrets.secrets] == ["A", "B"]
    assert plan.secrets.secrets[0].name_prefix == "runfleet/rl/A-"
    assert DEFAULT.secrets is None
    assert msgspec.structs.replace(plan, secrets=None) == DEFAULT


@pytest.mark.parametrize(
    ("item", "image", "told"),
    [
        (TypeSettings(type="c5a.large", image_id="ami-12345678"), {}, "is an image for arm64"),
        (
            TypeSettings(type="c6g.medium", image_id="ami-12345678"),
            {"platform": "windows"},
            "Linux",
        ),
        (
            TypeSettings(type="c6g.medium", image_id="ami-12345678"),
            {"root_volume_gib": 101},
            "needs at least 101 GiB",
        ),
    ],
)
def test_images_that_do_not_fit(item: TypeSettings, image: dict[str, Any], told: str) -> None:
    changed = msgspec.structs.replace(ACCOUNT.images["ami-12345678"], **image)
    account = msgspec.structs.replace(ACCOUNT, images={"ami-12345678": changed})
    with pytest.raises(Refused) as refused:
        planned(Settings(instance_types=(item,)), account)
    (mistake,) = refused.value.mistakes
    assert told in mistake.problem
