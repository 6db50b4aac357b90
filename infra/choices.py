"""Which queues the settings ask for, and whether AWS can have them so. Pure.

Settings that are well-formed one by one still may not go together; each rule here says why.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from infra.catalog import Catalog, InstanceType, nearest_types, why_own_image
from infra.mistakes import Mistake, shown
from infra.settings import NAMESPACE, Settings, TypeSettings

MAX_COMPUTE_ENVIRONMENTS = 50
"""Per account and region, as are queues (Batch service quotas); AWS does not raise it."""
MAX_TAGS = 40
"""AWS takes 50 on a resource or a job; the rest is for this program's own."""
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

    @property
    def markets(self) -> tuple[bool, ...]:
        """For each queue of this type whether it is a spot one."""
        return tuple(
            spot for spot, wanted in ((False, self.on_demand), (True, self.spot)) if wanted
        )


def choose(settings: Settings, catalog: Catalog) -> tuple[list[Choice], list[Mistake]]:
    """The instance types to build queues for, and every reason why some can not be built."""
    choices: list[Choice] = []
    mistakes = [*_wrong_lists(settings), *_wrong_tags(settings.tags)]
    for index, item in enumerate(settings.instance_types):
        if item is None:
            continue  # told by read_settings
        path = f"{NAMESPACE}:instanceTypes[{index}]"
        instance_type = catalog.get(item.type)
        if instance_type is None:
            close = ", ".join(nearest_types(item.type, catalog))
            problem = f"there is no EC2 instance type {shown(item.type)}"
            mistakes.append(
                Mistake(path=path, problem=problem + (f"; nearest: {close}" if close else ""))
            )
            continue
        choice = _put_together(settings, item, instance_type)
        mistakes += [Mistake(path=path, problem=problem) for problem in _impossible(choice, item)]
        choices.append(choice)
    count = sum(len(choice.markets) for choice in choices)
    if count > MAX_COMPUTE_ENVIRONMENTS:
        problem = (
            f"these are {count} queues; AWS gives an account {MAX_COMPUTE_ENVIRONMENTS} in a "
            "region: drop instance types, or set spot or onDemand to false for some"
        )
        mistakes.append(Mistake(path=f"{NAMESPACE}:instanceTypes", problem=problem))
    return choices, mistakes


def _put_together(settings: Settings, item: TypeSettings, instance_type: InstanceType) -> Choice:
    return Choice(
        instance_type=instance_type,
        spot=settings.spot if item.spot is None else item.spot,
        on_demand=settings.on_demand if item.on_demand is None else item.on_demand,
        max_vcpus=item.max_vcpus or settings.max_vcpus,
        spot_bid_percentage=item.spot_bid_percentage or settings.spot_bid_percentage,
        image_id=item.image_id,
    )


def _impossible(choice: Choice, item: TypeSettings) -> Iterator[str]:
    """What AWS or Batch would refuse, or never start, for one instance type."""
    name = choice.instance_type.name
    if choice.instance_type.arch.endswith("_mac"):
        yield f"{name} is a Mac: Batch runs Linux containers; drop it"
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
