"""Multi-node parallel jobs: what their definitions and requests may say, and their nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sandbox.batch import limits, tasks
from sandbox.batch.rules import refusal, unsupported
from sandbox.batch.store import Job, Nodes

_RANGE = re.compile(r"([0-9]{0,4})(:?)([0-9]{0,4})")


def check_definition(
    properties: dict[str, Any] | None, check_container: Callable[[dict[str, Any]], None]
) -> None:
    """Raises ClientError for nodeProperties that AWS refuses."""
    if not properties:
        raise refusal(
            "kinds of definitions", "nodeProperties must be provided for a multinode job definition"
        )
    count, groups = properties["numNodes"], properties["nodeRangeProperties"]
    limits.NODES.check(count)
    limits.NODE_GROUPS.check(len(groups))
    if not 0 <= properties["mainNode"] < count:
        raise refusal(
            "node ranges", f"mainNode {properties['mainNode']} must be one of the {count} nodes"
        )
    for group in groups:
        parse_range(group["targetNodes"], count)
        for member in ("eksProperties", "consumableResourceProperties"):
            if group.get(member) is not None:
                raise unsupported(f"nodeRangeProperties.{member}")
        if bool(group.get("container")) == bool(group.get("ecsProperties")):
            raise refusal(
                "node ranges", "nodeRangeProperties needs one of container and ecsProperties"
            )
        if group.get("container"):
            check_container(group["container"])
        else:
            tasks.check_definition(group["ecsProperties"], check_container)
    _check_types(groups)
    missing = [index for index in range(count) if _group_of(groups, index, count) is None]
    if missing:
        raise refusal("node ranges", f"nodeRangeProperties leave out node {missing[0]}")


def parse_range(text: str, count: int) -> range:
    """`2`, `0:3`, `:3`, `3:` and `:`, both ends counted.

    Raises ClientError for anything else, and for nodes that are not there.
    """
    match = _RANGE.fullmatch(text)
    if not match or text == "":
        raise refusal("node ranges", f"targetNodes is {text!r}: give a node, or a range as 0:3")
    low, colon, high = match.groups()
    first = int(low or 0)
    last = int(high) if high else count - 1 if colon else first
    if not first <= last < count:
        raise refusal("node ranges", f"targetNodes is {text!r}: the nodes are 0:{count - 1}")
    return range(first, last + 1)


def check_overrides(properties: dict[str, Any], overrides: dict[str, Any]) -> int:
    """The number of nodes that the request asks for.

    Raises ClientError for nodeOverrides that AWS refuses (API Reference, NodeOverrides).
    """
    count: int = overrides.get("numNodes", properties["numNodes"])
    if count != properties["numNodes"]:
        limits.NODES.check(count)
        texts = [group["targetNodes"] for group in properties["nodeRangeProperties"]]
        if not any(text.endswith(":") for text in texts):
            raise refusal(
                "number of nodes", "numNodes can be overridden where a range is open, as 0: is"
            )
        if any(int(text.partition(":")[0] or 0) >= count for text in texts):
            raise refusal(
                "number of nodes", f"a node range begins after the {count} nodes of the override"
            )
        if properties["mainNode"] >= count:
            raise refusal("number of nodes", "the main node must be one of the nodes")
    for item in overrides.get("nodePropertyOverrides", []):
        targets = parse_range(item["targetNodes"], count)
        if len(item.get("instanceTypes", [])) > 1:  # API Reference, NodeRangeProperty
            raise refusal(
                "one type for all nodes", "nodePropertyOverrides.instanceTypes takes one type"
            )
        if item.get("eksPropertiesOverride") is not None:
            raise unsupported("nodePropertyOverrides.eksPropertiesOverride")
        for index in targets:
            _check_kind(_group_of(properties["nodeRangeProperties"], index, count), item)
    return count


def instance_type(properties: dict[str, Any], overrides: dict[str, Any]) -> str | None:
    """The one type that all nodes are to have, None for any."""
    for item in overrides.get("nodePropertyOverrides", []):
        override = item.get("containerOverrides", {}).get("instanceType")
        if override:
            return str(override)
        if item.get("instanceTypes"):
            return str(item["instanceTypes"][0])
    return next(iter(_types(properties["nodeRangeProperties"])), None)


def make(
    parent: Job,
    properties: dict[str, Any],
    overrides: dict[str, Any],
    merge: tasks.MergeContainer,
) -> Nodes:
    """The nodes of a job; `merge` makes a container of a definition's and a request's."""
    count = overrides.get("numNodes", properties["numNodes"])
    children = []
    for index in range(count):
        group = _group_of(properties["nodeRangeProperties"], index, count)
        assert group is not None
        own: dict[str, Any] = {}
        for item in overrides.get("nodePropertyOverrides", []):
            if index in parse_range(item["targetNodes"], count):
                own = item
        spec = {**parent.spec, **_merged(group, own, merge)}
        node = Job(f"{parent.id}#{index}", f"{parent.arn}#{index}", spec, parent.created_ms)
        node.parent, node.index = parent, index
        children.append(node)
    return Nodes(children, properties["mainNode"])


def renew(node: Job) -> Job:
    """The node as it is before another attempt of the whole job."""
    fresh = Job(node.id, node.arn, node.spec, node.created_ms)
    fresh.parent, fresh.index, fresh.attempts = node.parent, node.index, node.attempts
    return fresh


def _group_of(groups: list[dict[str, Any]], index: int, count: int) -> dict[str, Any] | None:
    """The group of a node: the narrowest range that holds it."""
    holding = [
        (len(found), group)
        for group in groups
        if index in (found := _open_range(group["targetNodes"], count))
    ]
    best = min(holding, key=lambda item: item[0], default=None)
    return best[1] if best else None


def _merged(
    group: dict[str, Any], item: dict[str, Any], merge: tasks.MergeContainer
) -> dict[str, Any]:
    if "container" in group:
        own = item.get("containerOverrides", {})
        overrides = [{"name": tasks.DEFAULT_NAME, **own}]
        return {"container": merge(group["container"], own), "overrides": overrides}
    own = item.get("ecsPropertiesOverride", {})
    return {
        "ecsProperties": tasks.merge(group["ecsProperties"], own, merge),
        "overrides": tasks.override_of(own),
    }


def _check_kind(group: dict[str, Any] | None, item: dict[str, Any]) -> None:
    """Overrides are of the kind of the group's own properties."""
    own = item.get("ecsPropertiesOverride")
    if group and "ecsProperties" in group:
        if item.get("containerOverrides"):
            raise refusal(
                "kinds of overrides", "containerOverrides is for node groups with a container"
            )
        if own:
            tasks.check_overrides(group["ecsProperties"], own)
    elif own:
        raise refusal(
            "kinds of overrides", "ecsPropertiesOverride is for node groups with ecsProperties"
        )


def _open_range(text: str, count: int) -> range:
    """As parse_range; what is beyond the nodes of an override is cut off."""
    low, colon, high = text.partition(":")
    first = int(low or 0)
    last = int(high) if high else count - 1 if colon else first
    return range(first, min(last, count - 1) + 1)


def _types(groups: list[dict[str, Any]]) -> set[str]:
    named = {name for group in groups for name in group.get("instanceTypes", [])}
    return named | {
        group["container"]["instanceType"]
        for group in groups
        if group.get("container", {}).get("instanceType")
    }


def _check_types(groups: list[dict[str, Any]]) -> None:
    if len(_types(groups)) > 1:
        raise refusal(
            "one type for all nodes",
            "all node groups of a multi-node job must have the same instance type",
        )
