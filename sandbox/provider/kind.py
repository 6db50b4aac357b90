"""What a kind of resource is to the provider: properties, names, what replaces it. Pure.

Its deeds speak to AWS, in kinds/; all else is common. A new kind is a class with its tables
and deeds, listed in kinds/__init__.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

from sandbox.provider.cloud import UNIQUE_HEX, Cloud
from sandbox.provider.wire import UNKNOWN, Properties

AUTONAME_HEX = 7
"""Digits that Pulumi puts behind the name of a resource that was given none."""
DEFAULTS = "__defaults"
"""Among the inputs: the names of those that the provider has chosen (Pulumi's bridge)."""


class Kind:
    """One resource type. Subclasses are tables and four deeds."""

    token: ClassVar[str]
    label: ClassVar[str]
    """What AWS calls it, for messages."""
    inputs: ClassVar[frozenset[str]]
    """Properties that a program may give."""
    nested: ClassVar[Mapping[str, frozenset[str]]] = {}
    """For each property that holds objects (path with dots), the properties of those."""
    required: ClassVar[frozenset[str]] = frozenset()
    outputs: ClassVar[frozenset[str]]
    """All properties that the real provider declares."""
    replaces: ClassVar[frozenset[str]] = frozenset()
    """Properties that can't be changed on an existing resource."""
    name_length: ClassVar[int] = 0
    """The most characters of its name; 0 where it has none."""

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        """Makes it and returns its id: one call that changes something, so that none is lost."""
        raise NotImplementedError

    def complete(self, cloud: Cloud, resource_id: str, inputs: Properties) -> None:
        """Does what has to follow its creation; done again if it failed the last time."""

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        """All its outputs as they are now, None when it is gone."""
        raise NotImplementedError

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        """Makes it what the new inputs say."""
        raise NotImplementedError

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        """Makes it go; silent when it is gone already."""
        raise NotImplementedError

    def also_replaces(self, _old: Properties, _new: Properties) -> set[str]:
        """Properties whose change replaces it under the circumstances."""
        return set()

    def recomputed(self, _changed: set[str]) -> set[str]:
        """Outputs that change by themselves when these inputs do."""
        return set()

    def comparable(self, inputs: Properties) -> Properties:
        """The inputs without what makes no difference."""
        apart = {DEFAULTS} if inputs.get("tags") else {DEFAULTS, "tags"}
        return {key: value for key, value in inputs.items() if key not in apart}

    def faults(self, inputs: Properties) -> list[tuple[str, str]]:
        """What is wrong with the inputs: property and reason. Nothing is ever ignored."""
        found = [
            (name, f"{self.label} has no property {name!r}, or this sandbox does not have it")
            for name in sorted(set(inputs) - self.inputs - {DEFAULTS})
        ]
        found += [(name, "is required") for name in sorted(self.required - set(inputs))]
        for path, known in self.nested.items():
            for part in _at(inputs, path.split(".")):
                found += [
                    (f"{path}.{name}", "this sandbox does not have it")
                    for name in sorted(set(part) - known)
                ]
        if "name" in inputs and "namePrefix" in inputs:
            found.append(("namePrefix", "conflicts with name"))
        prefix = inputs.get("namePrefix", "")
        if self.name_length and len(prefix) > self.name_length - UNIQUE_HEX:
            most = self.name_length - UNIQUE_HEX
            found.append(("namePrefix", f"expected length to be in the range (1 - {most})"))
        if self.name_length and len(inputs.get("name", "")) > self.name_length:
            found.append(("name", f"expected length to be in the range (1 - {self.name_length})"))
        return found

    def named(self, urn_name: str, seed: bytes, old: Properties, new: Properties) -> Properties:
        """The inputs with a name where the program gave neither name nor prefix."""
        if not self.name_length or new.get("name") or new.get("namePrefix"):
            return new
        name = old.get("name") if "name" in old.get(DEFAULTS, []) else None
        if name is None:
            suffix = hashlib.sha256(seed + urn_name.encode()).hexdigest()[:AUTONAME_HEX]
            name = f"{urn_name[: self.name_length - AUTONAME_HEX - 1]}-{suffix}"
        return {**new, "name": name, DEFAULTS: ["name"]}

    def final_name(self, inputs: Properties, unique: str) -> str:
        """The name to create it with; a prefix gets a suffix that no other has."""
        if "namePrefix" in inputs:
            return f"{inputs['namePrefix']}{unique}"
        return str(inputs.get("name", ""))

    def changes(self, old: Properties, new: Properties) -> list[str]:
        """The properties in which the inputs differ."""
        old, new = self.comparable(old), self.comparable(new)
        if not new.get("region"):  # where it is, for all that the program says
            old.pop("region", None)
        return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))

    def replacements(self, old: Properties, new: Properties) -> list[str]:
        """Those of the changes that need a new resource."""
        needs = self.replaces | self.also_replaces(old, new) | {"name", "namePrefix", "region"}
        return [key for key in self.changes(old, new) if key in needs]

    def delete_first(self, new: Properties) -> bool:
        """Whether a replacement can't stand beside the old one: they would share a name."""
        chosen = "name" in new.get(DEFAULTS, [])
        return bool(self.name_length) and "namePrefix" not in new and not chosen

    def preview_new(self, inputs: Properties) -> Properties:
        """What is known of it before it is made."""
        state = {key: inputs.get(key, UNKNOWN) for key in self.outputs}
        return state | self._tag_outputs(inputs)

    def preview_changed(self, state: Properties, old: Properties, new: Properties) -> Properties:
        """What is known of it before it is updated."""
        given = {key: value for key, value in new.items() if key != DEFAULTS}
        unknown = self.recomputed(set(self.changes(old, new))) | (set(old) - set(new) - {DEFAULTS})
        return {**state, **given, **dict.fromkeys(unknown, UNKNOWN), **self._tag_outputs(new)}

    def observed_inputs(self, inputs: Properties, state: Properties) -> Properties:
        """The inputs as they are now: what the program gave, with the values that AWS has."""
        apart = {key: inputs[key] for key in (DEFAULTS,) if key in inputs}
        given = {key: value for key, value in inputs.items() if key not in apart}
        return {**self._like("", given, state), **apart}

    def _tag_outputs(self, inputs: Properties) -> Properties:
        return {"tagsAll": inputs.get("tags", {})} if "tagsAll" in self.outputs else {}

    def _like(self, path: str, given: Any, now: Any) -> Any:
        """`now` in the shape in which it was given: no members that the program left out."""
        if isinstance(given, dict) and isinstance(now, dict):
            if path and path not in self.nested:  # a map, such as tags
                return now
            lead = f"{path}." if path else ""
            return {
                key: self._like(lead + key, value, now.get(key)) for key, value in given.items()
            }
        if isinstance(given, list) and isinstance(now, list) and len(given) == len(now):
            return [self._like(path, a, b) for a, b in zip(given, now, strict=True)]
        return given if now is None and given in ({}, []) else now


def tags_of(inputs: Properties) -> dict[str, str]:
    """The tags of a resource."""
    return dict(inputs.get("tags") or {})


def key_values(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as most of AWS's APIs take them."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def from_key_values(tags: list[dict[str, str]] | None) -> dict[str, str]:
    """The other way, without the tags that AWS itself gives."""
    return {t["Key"]: t["Value"] for t in tags or [] if not t["Key"].startswith("aws:")}


def with_tags(state: Properties, tags: Mapping[str, str]) -> Properties:
    """The state with its two tag outputs."""
    return {**state, "tags": dict(tags) or None, "tagsAll": dict(tags)}


def changed_tags(
    old: Mapping[str, str], new: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The tags to be set and the keys to be taken away."""
    return {k: v for k, v in new.items() if old.get(k) != v}, sorted(set(old) - set(new))


def _at(value: Any, path: list[str]) -> list[dict[str, Any]]:
    """The objects at that path, whatever lists lie between."""
    if isinstance(value, list):
        return [found for item in value for found in _at(item, path)]
    if not isinstance(value, dict):
        return []
    return _at(value.get(path[0]), path[1:]) if path else [value]
