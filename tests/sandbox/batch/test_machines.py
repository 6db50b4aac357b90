"""Simulated instances, without a sandbox around them: which are launched, when, how many."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.batch.environments import instance_types
from sandbox.batch.instances import expand
from sandbox.batch.machines import Machine, Machines, Need, NoRoom, rank
from sandbox.batch.store import Resource
from sandbox.conditions import Conditions, Settings
from tests.sandbox.batch.ruling import proves

ONE = Need(1, 100, 0)


def environment(*types: str, **resources: Any) -> Resource:
    whole = {
        "type": "SPOT",
        "allocationStrategy": "SPOT_PRICE_CAPACITY_OPTIMIZED",
        "maxvCpus": 8,
        "instanceTypes": list(types),
    } | resources
    detail = {"state": "ENABLED", "status": "VALID", "computeResources": whole}
    return Resource("ce", "arn:ce", detail)


def fleet(conditions: Conditions | None = None, boot_s: float = 0, idle_s: float = 10) -> Machines:
    return Machines(conditions or Conditions(), boot_s=boot_s, idle_s=idle_s)


def ask(machines: Machines, where: Resource, *needs: Need, now: int = 0) -> list[Machine]:
    found = machines.find_room(where, instance_types(where), needs, now)
    assert not isinstance(found, NoRoom)
    return found


def test_an_instance_is_shared_until_it_is_full() -> None:
    machines, where = fleet(), environment("c6g.large")
    first = ask(machines, where, ONE)[0]
    machines.take(first, "a", ONE)
    assert ask(machines, where, ONE)[0] is first
    machines.take(first, "b", ONE)
    assert ask(machines, where, ONE)[0] is not first


def test_what_is_on_its_way_is_not_launched_again() -> None:
    """Each round asks anew; two jobs of one round get two places."""
    machines, where = fleet(boot_s=60), environment("c6g.medium")
    for now in (0, 1000, 2000):
        machines.next_round()
        one, two = ask(machines, where, ONE, now=now), ask(machines, where, ONE, now=now)
        assert one[0] is not two[0]
        assert one[0].ready_ms == 60_000
    assert len(machines.everyone()) == 2


@proves("an instance a node")
@proves("most vCPUs")
def test_never_above_the_most_vcpus_but_by_one_instance() -> None:
    three = environment("c6g.large", maxvCpus=3)
    machines = fleet()
    for number in range(2):  # 2, then 4: the strategy may exceed by one instance
        for job in "ab":
            machines.take(ask(machines, three, ONE)[0], f"{number}{job}", ONE)
    assert machines.find_room(three, instance_types(three), [ONE], 0) == NoRoom(None)
    best = environment("c6g.large", maxvCpus=3, allocationStrategy="BEST_FIT")
    machines = fleet()
    for job in "ab":
        machines.take(ask(machines, best, ONE)[0], job, ONE)
    assert machines.find_room(best, instance_types(best), [ONE], 0) == NoRoom(None)


def test_all_nodes_or_none() -> None:
    machines, where = fleet(), environment("c6g.medium", maxvCpus=2)
    whole = ONE._replace(whole=True)
    assert machines.find_room(where, instance_types(where), [whole] * 3, 0) == NoRoom(None)
    assert machines.everyone() == []
    assert len({machine.id for machine in ask(machines, where, whole, whole)}) == 2
    assert len({machine.address for machine in machines.everyone()}) == 2


@proves("sizes by themselves")
def test_idle_instances_go_and_the_least_number_stays() -> None:
    where = environment("c6g.medium", minvCpus=1)
    machines = fleet(idle_s=10)
    machines.tend([where], 0)
    assert len(machines.everyone()) == 1
    for number in range(3):
        machines.take(ask(machines, where, ONE)[0], str(number), ONE)
    machines.tend([where], 0)
    assert where.detail["computeResources"]["desiredvCpus"] == 3
    for machine in machines.everyone():
        machines.give_back(machine, next(iter(machine.jobs)), ONE, 5_000)
    machines.next_round()
    machines.tend([where], 14_999)
    assert len(machines.everyone()) == 3
    machines.tend([where], 15_000)
    assert len(machines.everyone()) == 1
    assert where.detail["computeResources"]["desiredvCpus"] == 1
    where.detail["state"] = "DISABLED"
    machines.tend([where], 15_001)
    assert machines.everyone() == []


def test_capacity_by_type_sends_a_strategy_on_to_the_next() -> None:
    log: list[tuple[str, str]] = []
    conditions = Conditions(lambda kind, **facts: log.append((kind, facts["type"])))
    conditions.change(Settings(capacity={"c6g.medium": 1}))
    machines, where = fleet(conditions), environment("c6g.medium", "c6g.large")
    names = []
    for number in range(3):
        machine = ask(machines, where, ONE)[0]
        machines.take(machine, str(number), ONE)
        names.append(machine.type.name)
    assert names == ["c6g.medium", "c6g.large", "c6g.large"]
    none = environment("c6g.medium")
    for _ in range(2):
        assert machines.find_room(none, expand("c6g.medium"), [ONE], 0) == NoRoom("c6g.medium")
    assert log == [("capacity", "c6g.medium")]


def test_best_fit_waits_for_the_one_that_fits_best() -> None:
    conditions = Conditions()
    conditions.change(Settings(capacity={"c6g.medium": 0}))
    best = environment("c6g.large", "c6g.medium", allocationStrategy="BEST_FIT")
    found = fleet(conditions).find_room(best, instance_types(best), [ONE], 0)
    assert found == NoRoom("c6g.medium")


@proves("strategies")
@pytest.mark.parametrize(
    ("strategy", "first"),
    [
        ("BEST_FIT", "c6g.large"),
        ("BEST_FIT_PROGRESSIVE", "c6g.large"),
        ("BEST_FIT_PROGRESSIVE_ORDERED", "m6g.4xlarge"),
        ("SPOT_CAPACITY_OPTIMIZED", "r6g.xlarge"),
        ("SPOT_CAPACITY_OPTIMIZED_PRIORITIZED", "m6g.4xlarge"),
        ("SPOT_PRICE_CAPACITY_OPTIMIZED", "c6g.large"),
    ],
)
def test_strategies_choose(strategy: str, first: str) -> None:
    conditions = Conditions()
    conditions.change(Settings(capacity={"m6g.4xlarge": 1, "c6g.large": 5}))
    names = ("m6g.4xlarge", "r6g.xlarge", "c6g.large")
    types = [found for name in names for found in expand(name)]
    assert rank(types, strategy, conditions)[0].name == first


def lost(seed: int) -> list[int | None]:
    conditions = Conditions()
    conditions.change(Settings(interruptions_per_hour=60, seed=seed, notice_s=2))
    machines, where = fleet(conditions), environment("c6g.medium")
    found = [ask(machines, where, ONE._replace(whole=True))[0] for _ in range(5)]
    assert all(m.notice_ms is not None and m.lost_ms is not None for m in found)
    return [machine.lost_ms for machine in found]


def test_interruptions_are_the_same_for_the_same_seed() -> None:
    assert lost(7) == lost(7) != lost(8)


def test_on_demand_is_not_interrupted_and_spot_is_at_its_time() -> None:
    conditions = Conditions()
    conditions.change(Settings(interruptions_per_hour=3600, notice_s=0))
    steady = environment("c6g.medium", type="EC2", allocationStrategy="BEST_FIT")
    machines, spot = fleet(conditions), environment("c6g.medium")
    assert ask(machines, steady, ONE)[0].lost_ms is None
    spot.arn = "arn:spot"
    taken = ask(machines, spot, ONE)[0]
    assert taken.lost_ms is not None
    assert machines.tend([steady, spot], taken.lost_ms - 1) == []
    assert machines.tend([steady, spot], taken.lost_ms) == [taken]
    assert taken not in machines.everyone()


@pytest.mark.parametrize(
    "bad", [{"lag_s": -1.0}, {"notice_s": float("nan")}, {"capacity": {"c6g.medium": -1}}]
)
def test_conditions_that_make_no_sense(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Conditions().change(Settings(**bad))
