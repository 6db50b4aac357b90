"""An experiment's description in YAML → Asked. Pure; loads yaml, which only a file needs.

Fields are called as the options are. Values are taken as they are written, `1e-3` and `yes` too:
YAML's own types play no part. Every complaint has the file, the line and the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from submit.asked import Asked, parse_command
from submit.checks import check_axes, check_environment, check_labels, check_seeds
from submit.errors import WrongUse
from submit.experiment import Axis, Cell, Experiment
from submit.grid import axis, env_ids, parse_cell, parse_names, parse_values
from submit.nearest import did_you_mean
from submit.plan import MAX_RETRIES
from submit.units import parse_duration, parse_memory, parse_seeds, parse_variable

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

MENDED = "submit run -f FILE --dry-run, once it is mended"
"""What to type next, where the file itself does not tell what was meant."""
MAX_BYTES = 256 * 1024
"""A grid that AWS takes is a tenth of that; YAML is read at some 100 KB a second."""
MAX_DEPTH = 8
"""Lists and mappings within each other; the deepest that means something is 3."""


def parse_description(text: bytes, origin: str) -> Asked:
    """What the file asks for; `origin` is what it is called in complaints.

    Raises WrongUse, whatever the file holds.
    """
    file = _File(origin)
    root = _compose(text, file)
    if root is None:
        raise WrongUse("experiment-file", f"{origin} is empty", "queue: g4dn-xlarge-spot")
    asked: dict[str, Any] = {}
    for name, key, value in file.pairs(root, ""):
        if name not in FIELDS:
            file.refuse(key, f"there is no field {name!r}{did_you_mean(name, list(FIELDS))}", name)
        target, read = FIELDS[name]
        got = read(file, value, name)
        asked[target] = (*asked[target], *got) if target in asked else got
    return Asked(**asked)


class _File:
    """Reads nodes, and refuses them by their line and the path of their field."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def refuse(self, node: Node, message: str, path: str, hint: str = MENDED) -> NoReturn:
        where = f"{self.origin}:{node.start_mark.line + 1}: "
        raise WrongUse("experiment-file", f"{where}{path + ': ' if path else ''}{message}", hint)

    def pairs(self, node: Node, path: str) -> Iterator[tuple[str, Node, Node]]:
        """(name, its node, the value's node) of a mapping, no name twice."""
        seen: set[str] = set()
        for key, value in self._mapping(node, path).value:
            name = self.text(key, path)
            if name in seen:
                self.refuse(key, f"{name!r} is given twice", path or name)
            seen.add(name)
            yield name, key, value

    def _mapping(self, node: Node, path: str) -> MappingNode:
        from yaml.nodes import MappingNode  # noqa: PLC0415 # loaded by now

        if not isinstance(node, MappingNode):
            self.refuse(node, f"names and values were expected, this is {_kind(node)}", path)
        return node

    def text(self, node: Node, path: str) -> str:
        """A value as it is written."""
        if _shape(node) != "scalar":
            self.refuse(node, f"one value was expected, this is {_kind(node)}", path)
        if not node.value and getattr(node, "style", None) is None:
            self.refuse(node, "has no value", path, "an empty one is written ''")
        return str(node.value)

    def items(self, node: Node, path: str) -> list[Node]:
        """The items of a list; what is no list is one item."""
        if _shape(node) != "sequence":
            return [node]
        if not node.value:
            self.refuse(node, "the list is empty", path)
        return list(node.value)

    def parsed(self, node: Node, path: str, parse: Callable[[str], Any]) -> Any:
        """What the option's parser makes of the value."""
        return self._told(node, path, lambda: parse(self.text(node, path)))

    def checked(self, node: Node, path: str, got: Any, check: Callable[[Any], None]) -> Any:
        """What was read, if the check of the whole experiment will let it pass."""
        self._told(node, path, lambda: check(got))
        return got

    def _told(self, node: Node, path: str, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except WrongUse as err:
            if err.slug == "experiment-file":
                raise
            self.refuse(node, err.message, path, err.hint)


Read = Callable[[_File, "Node", str], Any]


def _one(parse: Callable[[str], Any] = str) -> Read:
    return lambda file, node, path: file.parsed(node, path, parse)


def _count(*, least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers from `least` on, up to `most`."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text.strip()) or int(text) < least:
            raise WrongUse("count", f"{text!r} is no whole number from {least} on", MENDED)
        if most is not None and int(text) > most:
            raise WrongUse("count", f"{int(text)} is more than {most}", MENDED)
        return int(text)

    return parse


def _checked(read: Read, check: Callable[[Any], None]) -> Read:
    return lambda file, node, path: file.checked(node, path, read(file, node, path), check)


def _label(field: str) -> Callable[[Any], None]:
    """The check of what is for people, for that field of an Experiment."""
    return lambda got: check_labels(Experiment(command=("x",), **{field: got}))


def _texts(file: _File, node: Node, path: str) -> tuple[str, ...]:
    """A list of values, or as the option has them, with commas between."""
    if _shape(node) == "scalar":
        return parse_values(file.text(node, path))
    return tuple(file.text(item, path) for item in file.items(node, path))


def _command(file: _File, node: Node, path: str) -> tuple[str, ...]:
    if _shape(node) == "scalar":
        words: tuple[str, ...] = file.parsed(node, path, parse_command)
        return words
    return tuple(file.text(item, path) for item in file.items(node, path))


def _seeds(file: _File, node: Node, path: str) -> tuple[int, ...]:
    if _shape(node) == "scalar":
        seeds: tuple[int, ...] = file.parsed(node, path, parse_seeds)
        return seeds
    count = _count(least=0)
    return tuple(file.parsed(item, path, count) for item in file.items(node, path))


def _grid(file: _File, node: Node, path: str) -> tuple[Axis, ...]:
    found: list[Axis] = []
    for name, _, value in file.pairs(node, path):
        field = f"{path}.{name}"
        found += file.checked(value, field, (axis(name, _texts(file, value, field)),), check_axes)
    return tuple(found)


def _env_ids(file: _File, node: Node, path: str) -> tuple[Axis, ...]:
    if _shape(node) == "scalar":
        return (file.parsed(node, path, env_ids),)
    names = _texts(file, node, path)
    if not all(name.strip() for name in names):
        file.refuse(node, "names an empty environment", path)
    return (axis("env-id", names),)


def _zips(file: _File, node: Node, path: str) -> tuple[tuple[str, ...], ...]:
    """`[a, b]`, `a,b`, or a list of such."""
    items = file.items(node, path)
    if _shape(node) == "sequence" and all(
        _shape(item) == "scalar" and "," not in getattr(item, "value", "") for item in items
    ):
        items = [node]
    return tuple(
        _names(file, item, path)
        if _shape(item) == "sequence"
        else file.parsed(item, path, parse_names)
        for item in items
    )


def _names(file: _File, node: Node, path: str) -> tuple[str, ...]:
    names = tuple(file.text(item, path) for item in file.items(node, path))
    if len(names) < 2:  # noqa: PLR2004 # one alone goes with nothing
        file.refuse(node, f"{names[0]!r} alone goes with nothing", path, "[a, b]")
    return names


def _cells(file: _File, node: Node, path: str) -> tuple[Cell, ...]:
    return tuple(
        tuple(
            (name, file.text(value, f"{path}.{name}")) for name, _, value in file.pairs(item, path)
        )
        if _shape(item) == "mapping"
        else file.parsed(item, path, parse_cell)
        for item in file.items(node, path)
    )


def _variables(file: _File, node: Node, path: str) -> tuple[tuple[str, str], ...]:
    if _shape(node) == "mapping":
        found: list[tuple[str, str]] = []
        for name, _, value in file.pairs(node, path):
            field = f"{path}.{name}"
            pair = (name, file.text(value, field))
            found += file.checked(value, field, (pair,), check_environment)
        return tuple(found)
    return tuple(file.parsed(item, path, parse_variable) for item in file.items(node, path))


FIELDS: dict[str, tuple[str, Read]] = {
    "queue": ("queue", _one()),
    "command": ("command", _command),
    "seeds": ("seeds", _checked(_seeds, check_seeds)),
    "env-ids": ("axes", _checked(_env_ids, check_axes)),
    "grid": ("axes", _grid),
    "zip": ("zips", _zips),
    "include": ("include", _cells),
    "exclude": ("exclude", _cells),
    "image": ("image", _one()),
    "nodes": ("nodes", _one(_count(least=1))),
    "vcpus": ("vcpus", _one(_count(least=1))),
    "memory": ("memory_mib", _one(parse_memory)),
    "gpus": ("gpus", _one(_count(least=0))),
    "shm": ("shm_mib", _one(parse_memory)),
    "hours": ("timeout_s", _one(parse_duration)),
    "env": ("environment", _checked(_variables, check_environment)),
    "secret": ("secrets", _texts),
    "retries": ("retries", _one(_count(least=0, most=MAX_RETRIES))),
    "fallback": ("fallback", _one()),
    "after": ("after", _one(_count(least=1, most=MAX_RETRIES + 1))),
    "name": ("name", _checked(_one(), _label("name"))),
    "group": ("group", _checked(_one(), _label("group"))),
    "wandb-project": ("project", _one()),
    "wandb-entity": ("entity", _one()),
    "tag": ("tags", _checked(_texts, _label("tags"))),
    "share": ("share", _checked(_one(), _label("share"))),
    "workers": ("workers", _one(_count(least=1))),
}
"""Each field: what it is in Asked, and how it is read."""


def _shape(node: Node) -> str:
    """`scalar`, `sequence` or `mapping`."""
    return str(getattr(node, "id", ""))


def _kind(node: Node) -> str:
    return {"mapping": "a mapping", "sequence": "a list"}.get(_shape(node), "a single value")


def _compose(text: bytes, file: _File) -> Node | None:
    """The file's one document, as nodes that keep their lines and the very text of values."""
    if len(text) > MAX_BYTES:
        raise WrongUse(
            "experiment-file",
            f"{file.origin} has more than {MAX_BYTES:,} bytes",
            "values that many belong into a file of the image",
        )
    import yaml  # noqa: PLC0415 # takes as long as a whole dry run

    from submit.experiment_yaml import compose  # noqa: PLC0415 # loads yaml

    try:
        return compose(_decode(text, file), MAX_DEPTH)
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem = err.problem or err.context
        raise WrongUse(
            "experiment-file",
            f"{file.origin}{line}: {problem}",
            MENDED,
        ) from err
    except (yaml.YAMLError, ValueError, OverflowError) as err:
        # ValueError: PyYAML lets through what int() and chr() say of absurd escapes and versions.
        at = text.count(b"\n", 0, getattr(err, "position", 0)) + 1
        what = getattr(err, "reason", "") or str(err)
        raise WrongUse(
            "experiment-file",
            f"{file.origin}:{at}: no YAML: {what}",
            MENDED,
        ) from err


def _decode(text: bytes, file: _File) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = text.count(b"\n", 0, err.start) + 1
        raise WrongUse(
            "experiment-file", f"{file.origin}:{line}: is not UTF-8", "iconv -t UTF-8"
        ) from err
