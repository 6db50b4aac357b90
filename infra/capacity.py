"""What stacks use of the compute environments and queues that an account has in a region. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from infra.catalog import Catalog
from infra.choices import MAX_COMPUTE_ENVIRONMENTS, MAX_QUEUES, choose
from infra.mistakes import Mistake
from infra.plans import FleetPlan, QueuePlan
from infra.settings import NAMESPACE, read_settings

NO_STACK = ""
BEST_FIT = "BEST_FIT"


class Use(msgspec.Struct, frozen=True, kw_only=True):
    environments: int
    queues: int

    def __add__(self, other: Use) -> Use:
        return Use(
            environments=self.environments + other.environments,
            queues=self.queues + other.queues,
        )

    @property
    def fits(self) -> bool:
        return self.environments <= MAX_COMPUTE_ENVIRONMENTS and self.queues <= MAX_QUEUES

    def told(self) -> str:
        return f"{self.environments} compute environments and {self.queues} queues"


NOTHING = Use(environments=0, queues=0)
LIMIT = Use(environments=MAX_COMPUTE_ENVIRONMENTS, queues=MAX_QUEUES)


class StackFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a stack's settings ask for, read without AWS."""

    stack: str
    place: str
    """Account and region, as far as the file tells: limits are counted for each apart."""
    use: Use
    mistakes: tuple[Mistake, ...]


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A stack's place in its account."""

    file: StackFile
    total: Use
    """With all that come before it."""
    fits: bool


def read_stack(
    stack: str,
    config: Mapping[str, str],
    catalog: Catalog,
    *,
    region: str,
    secret_keys: frozenset[str] = frozenset(),
) -> StackFile:
    """What the stack with these settings will use; `region` where they name none."""
    settings, mistakes = read_settings(config, secret_keys=secret_keys)
    choices, impossible = choose(settings, catalog)
    profile = config.get("aws:profile")
    where = config.get("aws:region") or region or "(no region)"
    return StackFile(
        stack=stack,
        place=f"{where} of profile {profile}" if profile else where,
        use=Use(
            environments=sum(len(choice.markets) for choice in choices),
            queues=sum(len(choice.queues) for choice in choices),
        ),
        mistakes=tuple(sorted([*mistakes, *impossible], key=lambda mistake: mistake.path)),
    )


def share_out(files: Iterable[StackFile]) -> dict[str, list[Share]]:
    """For each place its stacks by name, each with what is used up to it: first come, first
    served. One that does not fit takes nothing from those behind it.
    """
    shares: dict[str, list[Share]] = {}
    taken: dict[str, Use] = {}
    for file in sorted(files, key=lambda file: (file.place, file.stack)):
        total = taken.get(file.place, NOTHING) + file.use
        if total.fits:
            taken[file.place] = total
        shares.setdefault(file.place, []).append(Share(file=file, total=total, fits=total.fits))
    return shares


class StandingQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A job queue in the account, whosever it is."""

    name: str
    stack: str
    """By its tags; empty for one that is of no stack."""
    queue: str
    """Logical name."""
    fair_share: bool


class Machines(msgspec.Struct, frozen=True, kw_only=True):
    """What the machines of a compute environment are made of."""

    subnet_ids: frozenset[str]
    bid_percentage: int
    image_id: str | None
    instance_profile_arn: str
    root_device: str
    root_volume_gib: int
    user_data: str | None
    tags: Mapping[str, str]


class StandingEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    stack: str
    queue: str
    allocation_strategy: str = ""
    own_service_role: bool = False
    """Whether it works with another role than Batch's service-linked one."""
    spot_fleet_role: bool = False
    machines: Machines | None = None
    """Only of the stack's own, and only where Batch can not change them in place."""

    @property
    def in_place(self) -> bool:
        """Whether Batch can change its machines (Batch User Guide, "Updating compute environments")."""
        return not self.own_service_role and self.allocation_strategy != BEST_FIT


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What the account has in the region."""

    environments: tuple[StandingEnvironment, ...]
    queues: tuple[StandingQueue, ...]


def crowded(plan: FleetPlan, standing: Standing, *, renewed: Collection[str] = ()) -> list[Mistake]:
    """Whether the fleet has room beside what stands. New ones are made before old ones go: for a
    moment the stack has both. `renewed` are the compute environments that others take the place of.
    """
    own = [e for e in standing.environments if e.stack == plan.stack]
    own_queues = [q for q in standing.queues if q.stack == plan.stack]
    others = Counter(e.stack for e in standing.environments if e.stack != plan.stack)
    other_queues = Counter(q.stack for q in standing.queues if q.stack != plan.stack)
    foreign = Use(environments=others.total(), queues=other_queues.total())
    wanted = {c.name for t in plan.types for c in t.compute}
    wanted_queues = {q.name for t in plan.types for q in t.queues}
    going = Use(
        environments=sum(e.queue not in wanted for e in own),
        queues=sum(q.queue not in wanted_queues for q in own_queues),
    )
    will_be = Use(environments=len(wanted), queues=len(wanted_queues))
    twice = Use(environments=len(renewed), queues=0)
    if (foreign + will_be + going + twice).fits:
        return []
    path = f"{NAMESPACE}:instanceTypes"
    beside = (
        f"beside {foreign.told()} of {_told(others | other_queues)}" if foreign != NOTHING else ""
    )
    if not (foreign + will_be).fits:
        problem = (
            f"the fleet's {will_be.told()} {beside} are too many: AWS gives an account "
            f"{LIMIT.environments} and {LIMIT.queues} in {plan.region}; drop instance types, or set "
            "spot, onDemand or flex to false for some"
        )
    elif (foreign + will_be + going).fits:
        problem = (
            f"{twice.environments} of the fleet's {will_be.told()} {beside} are renewed, and new "
            f"ones are made before the old ones go: AWS gives an account {LIMIT.environments} in "
            f"{plan.region}; take instance types out for the edit and type pulumi up, then add them "
            "again"
        )
    else:
        problem = (
            f"the fleet's {will_be.told()} {beside} have room only when {going.told()} are gone "
            "that you take out, and new ones are made first: take those out, type pulumi up, then "
            "add the others"
        )
    return [Mistake(path=path, problem=" ".join(problem.split()))]


def unchangeable(plan: FleetPlan, standing: Standing) -> list[Mistake]:
    """Settings that Batch fixes when a queue is made, and that differ from a queue that stands."""
    mistakes = []
    own = {queue.queue: queue for queue in standing.queues if queue.stack == plan.stack}
    by_name = {queue.name: queue for queue in standing.queues}
    fair = [
        q.name for q in _queues(plan) if q.name in own and own[q.name].fair_share != q.fair_share
    ]
    if fair:
        problem = (
            f"Batch fixes when a queue is made whether it shares fairly, and {', '.join(fair)} "
            f"{'stands' if len(fair) == 1 else 'stand'}, with jobs perhaps; set it back, or make "
            "another stack with it and move there"
        )
        mistakes.append(Mistake(path=f"{NAMESPACE}:fairShare", problem=problem))
    renamed = [
        q.name
        for q in _queues(plan)
        if q.name in own and (own[q.name].name == q.name) != (q.fixed_name is not None)
    ]
    if renamed:
        problem = (
            f"a queue can not be renamed, and {', '.join(renamed)} "
            f"{'stands' if len(renamed) == 1 else 'stand'}, with jobs perhaps; set it back, or "
            "destroy the stack first"
        )
        mistakes.append(Mistake(path=f"{NAMESPACE}:naming", problem=problem))
    names = [q.fixed_name for q in _queues(plan) if q.fixed_name in by_name]
    others = [by_name[name] for name in names if name and by_name[name].stack != plan.stack]
    if others:
        problem = (
            f"the account has {', '.join(q.name for q in others)} already, of "
            f"{_told(Counter(q.stack for q in others))}; plain names are for one team in an account"
        )
        command = f"pulumi config set {NAMESPACE}:naming stack"
        mistakes.append(Mistake(path=f"{NAMESPACE}:naming", problem=problem, command=command))
    return mistakes


def leaving(plan: FleetPlan, standing: Standing) -> list[StandingQueue]:
    """The queues that the stack has and will not have; their jobs end with them."""
    stay = {queue.name for queue in _queues(plan)}
    return [q for q in standing.queues if q.stack == plan.stack and q.queue not in stay]


def _queues(plan: FleetPlan) -> Sequence[QueuePlan]:
    return [queue for type_plan in plan.types for queue in type_plan.queues]


def _told(stacks: Counter[str]) -> str:
    named = sorted(stack for stack in stacks if stack != NO_STACK)
    words = [f"stack {stack}" for stack in named]
    if NO_STACK in stacks:
        words.append("no stack")
    return ", ".join(words)
