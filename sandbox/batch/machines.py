"""Simulated instances: they are launched when jobs need them, and go when they are idle. No I/O.

Time comes in as an argument. What EC2 gives or takes away is decided by `Conditions`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sandbox.batch.environments import instance_types
from sandbox.batch.instances import InstanceType, relative_price
from sandbox.batch.store import Resource, new_id
from sandbox.conditions import Conditions

PROGRESSIVE = frozenset(
    {
        "BEST_FIT_PROGRESSIVE",
        "BEST_FIT_PROGRESSIVE_ORDERED",
        "SPOT_CAPACITY_OPTIMIZED",
        "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED",
        "SPOT_PRICE_CAPACITY_OPTIMIZED",
    }
)
"""Strategies that may go above maxvCpus, by one instance at most (User Guide, Instance type
allocation strategies)."""
_ORDERED = frozenset({"BEST_FIT_PROGRESSIVE_ORDERED", "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED"})


class Need(NamedTuple):
    """What a container asks for, or what an instance has left. `whole`: it shares with nobody."""

    vcpus: int
    memory_mib: int
    gpus: int
    whole: bool = False


class Machine:
    """An instance, from its launch on."""

    __slots__ = (
        "address",
        "environment",
        "free",
        "id",
        "idle_ms",
        "jobs",
        "launched_ms",
        "lost_ms",
        "notice_ms",
        "outdated",
        "ready_ms",
        "secret",
        "spot",
        "type",
    )

    def __init__(
        self, environment: Resource, of: InstanceType, now_ms: int, ready_ms: int, address: str
    ) -> None:
        self.id = "i-" + new_id().replace("-", "")[:17]
        self.environment = environment
        self.type = of
        self.spot = environment.detail["computeResources"]["type"] == "SPOT"
        self.launched_ms = now_ms
        self.ready_ms = ready_ms
        self.idle_ms = ready_ms
        """Since when it has had no job."""
        self.free = Need(of.vcpus, of.memory_mib, of.gpus)
        self.jobs: set[str] = set()
        self.notice_ms: int | None = None
        """When its end is announced to those on it."""
        self.outdated = False
        """Its environment has changed: it takes no new jobs."""
        self.lost_ms: int | None = None
        """When EC2 takes it away."""
        self.address = address
        self.secret = new_id()
        """Names its metadata endpoint: only its own jobs know it."""

    def is_usable(self, now_ms: int) -> bool:
        """Whether it takes new jobs, now or once it is up: not when its end is near."""
        return not self.outdated and (self.notice_ms is None or now_ms < self.notice_ms)


class NoRoom(NamedTuple):
    """Why an environment gives no instance: EC2 has none of the type, or it has all it may."""

    lacking: str | None


class Machines:
    """All instances of one region."""

    def __init__(self, conditions: Conditions, *, boot_s: float, idle_s: float) -> None:
        self._conditions = conditions
        self._boot_ms = int(boot_s * 1000)
        self._idle_ms = int(idle_s * 1000)
        self._all: dict[str, list[Machine]] = {}
        self._planned: dict[str, Need] = {}
        """What the jobs before will leave of an instance, in this round."""
        self._launches = 0

    def everyone(self) -> list[Machine]:
        return [machine for some in self._all.values() for machine in some]

    def find(self, *, secret: str) -> Machine | None:
        """The machine whose metadata endpoint that is."""
        return next((m for m in self.everyone() if m.secret == secret), None)

    def next_round(self) -> None:
        """Nothing is planned any more: each job in turn says anew what it needs."""
        self._planned.clear()

    def take(self, machine: Machine, job_id: str, need: Need) -> None:
        """The job runs there from now on."""
        machine.free = _less(machine.free, need)
        self._planned.pop(machine.id, None)
        machine.jobs.add(job_id)

    def give_back(self, machine: Machine, job_id: str, need: Need, now_ms: int) -> None:
        """The job is gone from there."""
        machine.jobs.discard(job_id)
        machine.free = _more(machine.free, need, machine.type)
        if not machine.jobs:
            machine.idle_ms = now_ms

    def find_room(
        self,
        environment: Resource,
        fitting: Sequence[InstanceType],
        needs: Sequence[Need],
        now: int,
    ) -> list[Machine] | NoRoom:
        """A machine for each need: there, on its way, or launched for it; all or none.

        What it returns is planned for whoever asked until the next round. A machine runs jobs
        from its `ready_ms` on.
        """
        names = {found.name for found in fitting}
        able = [
            machine
            for machine in self._all.get(environment.arn, ())
            if machine.type.name in names and machine.is_usable(now)
        ]
        able.sort(key=lambda machine: machine.ready_ms > now)
        before = dict(self._planned)
        found: list[Machine] = []
        for need in needs:
            machine = next((m for m in able if _holds(self._room(m), need, m.type)), None)
            if machine is None:
                break
            self._planned[machine.id] = _less(self._room(machine), need)
            found.append(machine)
        rest = needs[len(found) :]
        launched = self._launch_all(environment, fitting, rest, now) if rest else []
        if isinstance(launched, NoRoom):
            self._planned = before
            return launched
        for machine, need in zip(launched, rest, strict=True):
            self._planned[machine.id] = _less(machine.free, need)
        return found + launched

    def tend(self, environments: Iterable[Resource], now: int) -> list[Machine]:
        """What time brings: idle ones go, the least number is kept; returns those EC2 took."""
        lost: list[Machine] = []
        known = {environment.arn: environment for environment in environments}
        for arn, machines in list(self._all.items()):
            if arn in known:
                _replace(known[arn], machines, now)
            lost += [m for m in machines if m.lost_ms is not None and m.lost_ms <= now]
            kept = [m for m in machines if m.lost_ms is None or m.lost_ms > now]
            environment = known.get(arn)
            self._all[arn] = self._without_idle(environment, kept, now) if environment else []
            if environment is None:
                del self._all[arn]
        for environment in known.values():
            self._keep_the_least(environment, now)
        return lost

    def announce_loss(self, machine: Machine, now: int, notice_s: float) -> None:
        """EC2 wants it back, after that notice."""
        machine.notice_ms = now
        machine.lost_ms = now + int(notice_s * 1000)

    def next_event(self, now: int) -> float | None:
        """Seconds until a machine is ready or lost; None when nothing is to come."""
        times = [
            at - now
            for machine in self.everyone()
            for at in (machine.ready_ms, machine.lost_ms)
            if at is not None and at > now
        ]
        return min(times) / 1000 if times else None

    def _room(self, machine: Machine) -> Need:
        return self._planned.get(machine.id, machine.free)

    def _without_idle(
        self, environment: Resource, machines: list[Machine], now: int
    ) -> list[Machine]:
        resources = environment.detail["computeResources"]
        allowed = {found.name for found in instance_types(environment)}
        total = _vcpus(machines)
        kept: list[Machine] = []
        for machine in machines:
            wanted = environment.detail["state"] == "ENABLED" and machine.type.name in allowed
            spare = total - machine.type.vcpus >= resources.get("minvCpus", 0)
            rested = machine.ready_ms <= now and now - machine.idle_ms >= self._idle_ms
            if not machine.jobs and machine.id not in self._planned and (
                not wanted or machine.outdated or (spare and rested)
            ):  # fmt: skip
                total -= machine.type.vcpus
            else:
                kept.append(machine)
        resources["desiredvCpus"] = max(total, resources.get("minvCpus", 0))
        return kept

    def _keep_the_least(self, environment: Resource, now: int) -> None:
        detail = environment.detail
        least = detail.get("computeResources", {}).get("minvCpus", 0)
        if detail["state"] != "ENABLED" or detail["status"] != "VALID":
            return
        while _vcpus(self._all.get(environment.arn, ())) < least:
            types = instance_types(environment)
            if isinstance(self._launch_all(environment, types, [Need(0, 0, 0)], now), NoRoom):
                return

    def _launch_all(
        self,
        environment: Resource,
        fitting: Sequence[InstanceType],
        needs: Sequence[Need],
        now: int,
    ) -> list[Machine] | NoRoom:
        have = self._all.setdefault(environment.arn, [])
        launched: list[Machine] = []
        for _ in needs:
            of = self._choose(environment, fitting, [*have, *launched])
            if isinstance(of, NoRoom):
                return of
            launched.append(self._made(environment, of, now))
        have += launched
        return launched

    def _choose(
        self, environment: Resource, fitting: Sequence[InstanceType], have: Sequence[Machine]
    ) -> InstanceType | NoRoom:
        resources = environment.detail["computeResources"]
        strategy = resources.get("allocationStrategy", "BEST_FIT")
        used, most = _vcpus(have), resources["maxvCpus"]
        affordable = [found for found in fitting if used + found.vcpus <= most]
        if not affordable and strategy in PROGRESSIVE and used < most:
            affordable = list(fitting)
        if not affordable:
            return NoRoom(None)
        ranked = rank(affordable, strategy, self._conditions)
        for found in ranked:
            elsewhere = (m for m in self.everyone() if m.environment is not environment)
            launched = sum(m.type.name == found.name for m in (*elsewhere, *have))
            if self._conditions.grants(found.name, launched):
                return found
        self._conditions.note("capacity", type=ranked[0].name)
        return NoRoom(ranked[0].name)

    def _made(self, environment: Resource, of: InstanceType, now: int) -> Machine:
        self._launches += 1
        machine = Machine(environment, of, now, now + self._boot_ms, _address(self._launches))
        after_s = self._conditions.lifetime_s() if machine.spot else None
        if after_s is not None:
            machine.lost_ms = machine.ready_ms + int(after_s * 1000)
            notice_ms = int(self._conditions.now.notice_s * 1000)
            machine.notice_ms = max(machine.ready_ms, machine.lost_ms - notice_ms)
        return machine


def _replace(environment: Resource, machines: Iterable[Machine], now: int) -> None:
    """Instances from before an infrastructure update go, those with jobs after their time."""
    if environment.replace_after_s is None:
        return
    end = now + int(environment.replace_after_s * 1000)
    for machine in machines:
        machine.outdated = True
        if machine.jobs:
            machine.lost_ms = end if machine.lost_ms is None else min(machine.lost_ms, end)
    environment.replace_after_s = None


def rank(
    types: Sequence[InstanceType], strategy: str, conditions: Conditions
) -> list[InstanceType]:
    """The types in the order in which the strategy asks for them.

    EC2's prices and the depth of its Spot pools are not known here: vCPUs, memory and GPUs stand
    for the price, the capacity that conditions leave for the depth.
    """
    if strategy in _ORDERED:
        return list(dict.fromkeys(types))
    cheap = sorted(set(types), key=lambda t: (relative_price(t) / t.vcpus, t.vcpus, t.name))
    if strategy == "BEST_FIT":  # it waits for the one that fits best
        return [min(cheap, key=lambda t: (relative_price(t), t.name))]
    if strategy == "SPOT_CAPACITY_OPTIMIZED":
        return sorted(cheap, key=lambda t: -conditions.depth(t.name))
    if strategy == "SPOT_PRICE_CAPACITY_OPTIMIZED":
        return sorted(
            cheap, key=lambda t: (conditions.depth(t.name) == 0, relative_price(t) / t.vcpus)
        )
    return cheap


def _vcpus(machines: Iterable[Machine]) -> int:
    return sum(machine.type.vcpus for machine in machines)


def _holds(room: Need, need: Need, of: InstanceType) -> bool:
    if need.whole:
        return room == Need(of.vcpus, of.memory_mib, of.gpus)
    return (
        room.vcpus >= need.vcpus and room.memory_mib >= need.memory_mib and room.gpus >= need.gpus
    )


def _less(room: Need, need: Need) -> Need:
    if need.whole:
        return Need(0, 0, 0)
    return Need(room.vcpus - need.vcpus, room.memory_mib - need.memory_mib, room.gpus - need.gpus)


def _more(room: Need, need: Need, of: InstanceType) -> Need:
    if need.whole:
        return Need(of.vcpus, of.memory_mib, of.gpus)
    return Need(room.vcpus + need.vcpus, room.memory_mib + need.memory_mib, room.gpus + need.gpus)


def _address(number: int) -> str:
    """A loopback address of its own where the system has more than one (Linux)."""
    if sys.platform != "linux":
        return "127.0.0.1"
    return f"127.{64 + number // 62_500 % 64}.{1 + number // 250 % 250}.{1 + number % 250}"
