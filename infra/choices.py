"""Which queues the settings ask for, and whether AWS can have them so. Pure.

Settings that are well-formed one by one still may not go together; each rule here says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from infra.catalog import (
    Catalog,
    InstanceType,
    nearest_types,
    why_no_type,
    why_not_on_batch,
    why_own_image,
)
from infra.mistakes import Mistake, shown
from infra.settings import NAMESPACE, Settings, TypeSettings
from submit.fleet import queue_name

MAX_COMPUTE_ENVIRONMENTS = 50
"""Per account and region, as are MAX_QUEUES (Batch service quotas); AWS raises neither."""
MAX_QUEUES = 50
MAX_SHARES = 500
FLEX_SUFFIX = "-flex"
"""Of the queue that takes spot machines first and on-demand ones after them."""
MAX_TAGS = 40
"""AWS takes 50 on a resource or a job; the rest is for this program's own."""
_INSTEAD = {
    "arm64": "c6g.medium",
    "arm64_mac": "c6g.medium",
    "x86_64": "c5a.large",
    "x86_64_mac": "c5a.large",
}
"""Small types that Batch does take, by the architecture of one that it does not."""
OWN_TAGS = ("stack", "queue")
DEFAULT_TAGS = ("team", "project")
"""Set by this program unless the settings do."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One instance type of the fleet, with the stack's settings and its own put together."""

    instance_type: InstanceType
    spot: bool
    on_demand: bool
    max_vcpus: int
    spot_bid_percentage: int
    image_id: str | None
    instance_store: bool
    flex: bool
    priority: int
    allocation_strategy: str
    spot_allocation_strategy: str

    @property
    def markets(self) -> tuple[bool, ...]:
        """For each queue of this type whether it is a spot one."""
        return tuple(
            spot for spot, wanted in ((False, self.on_demand), (True, self.spot)) if wanted
        )

    @property
    def queues(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each queue with its compute environments, the one to fill first in front."""
        pools = tuple(queue_name(self.instance_type.name, spot=spot) for spot in self.markets)
        pairs = tuple((name, (name,)) for name in pools)
        if not self.flex:
            return pairs
        on_demand, spot = pools
        return (*pairs, (on_demand + FLEX_SUFFIX, (spot, on_demand)))


def choose(settings: Settings, catalog: Catalog) -> tuple[list[Choice], list[Mistake]]:
    """The instance types to build queues for, and every reason why some can not be built."""
    choices: list[Choice] = []
    mistakes = [
        *_wrong_lists(settings),
        *_wrong_tags(settings.tags),
        *_wrong_together(settings),
    ]
    for index, item in enumerate(settings.instance_types):
        if item is None:
            continue  # told by read_settings
        path = f"{NAMESPACE}:instanceTypes[{index}]"
        instance_type = catalog.get(item.type)
        if instance_type is None:
            mistakes.append(Mistake(path=path, problem=_no_such_type(item.type, catalog)))
            continue
        choice = _put_together(settings, item, instance_type)
        mistakes += [Mistake(path=path, problem=problem) for problem in _impossible(choice, item)]
        choices.append(choice)
    return choices, [*mistakes, *_too_many(choices)]


def _no_such_type(name: str, catalog: Catalog) -> str:
    why = why_no_type(name, catalog)
    close = ", ".join(nearest_types(name, catalog))
    parts = [
        f"there is no EC2 instance type {shown(name)}",
        why,
        f"nearest: {close}" if close else "",
    ]
    return "; ".join(filter(None, parts))


def _too_many(choices: list[Choice]) -> Iterator[Mistake]:
    environments = sum(len(choice.markets) for choice in choices)
    queues = sum(len(choice.queues) for choice in choices)
    if environments > MAX_COMPUTE_ENVIRONMENTS or queues > MAX_QUEUES:
        problem = (
            f"these are {environments} compute environments and {queues} queues; AWS gives an "
            f"account {MAX_COMPUTE_ENVIRONMENTS} and {MAX_QUEUES} in a region: drop instance "
            "types, or set spot, onDemand or flex to false for some"
        )
        yield Mistake(path=f"{NAMESPACE}:instanceTypes", problem=problem)


def _put_together(settings: Settings, item: TypeSettings, instance_type: InstanceType) -> Choice:
    def own(name: str) -> Any:
        """What the type's settings say, else what the stack's say."""
        value = getattr(item, name)
        return getattr(settings, name) if value is None else value

    spot, on_demand = own("spot"), own("on_demand")
    return Choice(
        instance_type=instance_type,
        spot=spot,
        on_demand=on_demand,
        max_vcpus=own("max_vcpus"),
        spot_bid_percentage=own("spot_bid_percentage"),
        image_id=item.image_id,
        instance_store=own("instance_store") and instance_type.instance_store_gb > 0,
        flex=own("flex") and spot and on_demand,
        priority=own("priority"),
        allocation_strategy=own("allocation_strategy"),
        spot_allocation_strategy=own("spot_allocation_strategy"),
    )


def _impossible(choice: Choice, item: TypeSettings) -> Iterator[str]:
    """What AWS or Batch would refuse, or never start, for one instance type."""
    name = choice.instance_type.name
    if never := why_not_on_batch(choice.instance_type):
        yield f"{name} can not be had: {never}; drop it, or take {_INSTEAD[choice.instance_type.arch]}"
        return
    reason = why_own_image(choice.instance_type)
    if reason and not choice.image_id:
        yield (
            f"{name} needs an image of your own: {reason}; "
            f"write {{type: {name}, imageId: ami-…}}, or drop it"
        )
    if choice.spot and not choice.instance_type.spot:
        yield f"EC2 sells no {name} as spot; write {{type: {name}, spot: false}}"
    if not choice.markets:
        yield f"{name} has neither a spot nor an on-demand queue; set one to true, or drop it"
    if item.flex and not choice.flex:
        yield (
            f"a flex queue takes spot machines and on-demand ones, {name} has only one kind; "
            f"write {{type: {name}, spot: true, onDemand: true, flex: true}}, or drop flex"
        )
    if item.instance_store and not choice.instance_store:
        yield f"{name} has no local disk; drop instanceStore, or take a type with a d in its family"
    if choice.max_vcpus < choice.instance_type.vcpus:
        whose = "its" if item.max_vcpus else "the stack's"
        yield (
            f"one {name} has {choice.instance_type.vcpus} vCPUs, {whose} maxVcpus is "
            f"{choice.max_vcpus}: none would start; "
            f"write {{type: {name}, maxVcpus: {choice.instance_type.vcpus}}} or more"
        )


def _wrong_lists(settings: Settings) -> Iterator[Mistake]:
    if not settings.instance_types:
        problem = "the list is empty; a fleet has at least one instance type, such as c6g.medium"
        yield Mistake(path=f"{NAMESPACE}:instanceTypes", problem=problem)
    lists = {
        "instanceTypes": [item.type if item else "" for item in settings.instance_types],
        "subnetIds": list(settings.subnet_ids),
    }
    for key, names in lists.items():
        for index, name in enumerate(names):
            if name and name in names[:index]:
                path = f"{NAMESPACE}:{key}[{index}]"
                yield Mistake(path=path, problem=f"{shown(name)} is there twice; drop one")


def _wrong_together(settings: Settings) -> Iterator[Mistake]:
    """Settings of the stack that mean nothing beside each other."""
    if settings.flex and not (settings.spot and settings.on_demand):
        off = "onDemand" if settings.spot else "spot"
        yield Mistake(
            path=f"{NAMESPACE}:flex",
            problem=f"a flex queue takes spot machines and on-demand ones, and {off} is false",
            command=f"pulumi config set {NAMESPACE}:{off} true",
        )
    if settings.shares and not settings.fair_share:
        yield Mistake(
            path=f"{NAMESPACE}:shares",
            problem="shares have weights only where fairShare is true",
            command=f"pulumi config set {NAMESPACE}:fairShare true",
        )
    if len(settings.shares) > MAX_SHARES:
        problem = f"these are {len(settings.shares)} shares; Batch takes {MAX_SHARES} of a queue"
        yield Mistake(path=f"{NAMESPACE}:shares", problem=problem)


def _wrong_tags(tags: dict[str, str]) -> Iterator[Mistake]:
    """Tags that another of the fleet's services would refuse, or that are not the team's to set."""
    path = f"{NAMESPACE}:tags"
    if len(tags) > MAX_TAGS:
        yield Mistake(path=path, problem=f"these are {len(tags)} tags; at most {MAX_TAGS}")
    seen: dict[str, str] = dict.fromkeys(OWN_TAGS, "") | {name: name for name in DEFAULT_TAGS}
    for name in tags:
        known = seen.setdefault(name.lower(), name)
        if not known:
            problem = f"runfleet sets the tag {name.lower()}; choose another name"
            yield Mistake(path=f"{path}.{name}", problem=problem)
        elif known != name:  # IAM takes Team and team for one
            problem = f"differs from {known} in upper and lower case only; write {known}"
            yield Mistake(path=f"{path}.{name}", problem=problem)
