"""From the texts that Pulumi hands over to typed values: every mistake, not the first. Pure.

A Struct is the schema: its fields are the keys, their types and `Meta` the values allowed, the
`Meta` description says in words what a pattern means. A Struct with `shorthand` may be written
as a plain text, which then is that field.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import inspect

from infra.mistakes import Mistake, nearest, shown

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_BEGINS_WITH_NUMBER = re.compile(
    r"\s*([+-]?[0-9]{1,18}(?:\.[0-9]{1,9})?(?:e[0-9]{1,2})?)", re.IGNORECASE
)
_PAIR = re.compile(r"\s*([^=,]+?)\s*=\s*([^,]*?)\s*")
_UNREADABLE = object()


class Reader:
    """Reads values and collects `mistakes`.

    What is wrong is left out of the result; of a list of Structs the good members of the good
    items stay, and an item without its required members is None, so that they can be checked
    further and indices keep their meaning.
    """

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def read_fields(
        self,
        struct: type[msgspec.Struct],
        raw: Mapping[str, object],
        *,
        path: Callable[[str], str],
        top: bool = False,
    ) -> dict[str, Any]:
        """The good fields of `struct` in `raw`, by their names in Python.

        `top` says that the keys are whole configuration keys, for which a command can be named.
        """
        fields = {f.encode_name: f for f in _struct_type(struct).fields}
        values: dict[str, Any] = {}
        for key, value in raw.items():
            at = path(key)
            if key not in fields:
                remove = f"pulumi config rm {at}" if top else ""
                self._wrong(at, f"no such key{nearest(key, fields)}", remove)
                continue
            field = fields[key]
            before = len(self.mistakes)
            read = self.read(field.type, value, at, top=top)
            if len(self.mistakes) == before or _is_list_of_structs(field.type):
                values[field.name] = read
        for key, field in fields.items():
            if field.required and key not in raw:
                self._wrong(path(key), "is missing")
        return values

    def read(self, kind: inspect.Type, raw: object, path: str, *, top: bool = False) -> Any:
        """`raw` as a value of `kind`. After a mistake the result means nothing."""
        kind, words = _plain(kind)
        match kind:
            case inspect.VarTupleType():
                return self._read_list(kind, raw, path)
            case inspect.DictType():
                return self._read_map(kind, raw, path)
            case inspect.StructType():
                return self._read_struct(kind, raw, path)
        value, allowed, close = _read_scalar(kind, raw)
        if value is _UNREADABLE:
            problem = f"{shown(raw)} is not allowed; must be {words or allowed}"
            command = f"pulumi config set {path} {close}" if top and close else ""
            self._wrong(path, f"{problem}; nearest: {close}" if close else problem, command)
        return value

    def _read_list(self, kind: inspect.VarTupleType, raw: object, path: str) -> tuple[Any, ...]:
        items = _json_or(raw, lambda text: [item.strip() for item in text.split(",")])
        if raw == "":
            items = []
        if not isinstance(items, list):
            self._wrong(path, f"{shown(raw)} is not a list")
            return ()
        return tuple(
            self.read(kind.item_type, item, f"{path}[{index}]") for index, item in enumerate(items)
        )

    def _read_map(self, kind: inspect.DictType, raw: object, path: str) -> dict[str, Any]:
        members = _json_or(raw, _pairs)
        if not isinstance(members, dict):
            self._wrong(path, f"{shown(raw)} is not a map of names to texts")
            return {}
        read = {}
        for name, value in members.items():
            at = f"{path}.{name}"
            good_name = self.read(kind.key_type, name, at)
            read[good_name] = self.read(kind.value_type, value, at)
        return read

    def _read_struct(self, kind: inspect.StructType, raw: object, path: str) -> Any:
        struct = kind.cls
        shorthand = getattr(struct, "shorthand", None)
        members = {shorthand: raw} if shorthand and isinstance(raw, str) else raw
        if not isinstance(members, dict):
            self._wrong(path, f"{shown(raw)} is neither a text nor a map")
            return None
        whole = members is not raw
        values = self.read_fields(
            struct,
            members,
            path=lambda key: path if whole else f"{path}.{key}",
        )
        needed = {field.name for field in kind.fields if field.required}
        return struct(**values) if needed <= set(values) else None

    def _wrong(self, path: str, problem: str, command: str = "") -> None:
        self.mistakes.append(Mistake(path=path, problem=problem, command=command))


def _read_scalar(kind: inspect.Type, raw: object) -> tuple[object, str, str]:
    """The value (or _UNREADABLE), what is allowed in words, and the nearest allowed value."""
    match kind:
        case inspect.BoolType():
            return _read_bool(raw)
        case inspect.IntType():
            return _read_int(kind, raw)
        case inspect.FloatType():
            return _read_float(kind, raw)
        case inspect.LiteralType():
            return _read_choice(kind.values, raw)
        case inspect.StrType():
            return _read_text(kind, raw)
    raise TypeError(f"no settings of type {kind}")


def _read_bool(raw: object) -> tuple[object, str, str]:
    said = str(raw).strip().lower()
    if said in {"true", "false"}:
        return said == "true", "", ""
    guess = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}
    return _UNREADABLE, "true or false", guess.get(said, "")


def _read_int(kind: inspect.IntType, raw: object) -> tuple[object, str, str]:
    low, high = kind.ge or 0, cast("int", kind.le)
    number = _whole(raw)
    if number is not None and low <= number <= high:
        return number, "", ""
    guess = number if number is not None else _nearly_whole(raw)
    close = "" if guess is None else str(min(max(guess, low), high))
    return _UNREADABLE, f"a whole number from {low} to {high}", close


def _read_float(kind: inspect.FloatType, raw: object) -> tuple[object, str, str]:
    low, high = cast("float", kind.ge), cast("float", kind.le)
    number = _number(raw)
    if number is not None and low <= number <= high:
        return number, "", ""
    close = "" if number is None else repr(min(max(number, low), high))
    return _UNREADABLE, f"a number from {low:g} to {high}", close


def _read_choice(values: tuple[Any, ...], raw: object) -> tuple[object, str, str]:
    if all(isinstance(value, str) for value in values):
        return _read_word(values, raw)
    number = _whole(raw)
    if number in values:
        return number, "", ""
    close = "" if number is None else str(min(values, key=lambda v: abs(v - number)))
    return _UNREADABLE, f"one of {', '.join(map(str, values))}", close


def _read_word(values: tuple[str, ...], raw: object) -> tuple[object, str, str]:
    said = str(raw).strip().lower()
    for value in values:
        if isinstance(raw, str) and said == value.lower():
            return value, "", ""
    close = difflib.get_close_matches(said, [value.lower() for value in values], n=1, cutoff=0.5)
    by_lower = {value.lower(): value for value in values}
    return _UNREADABLE, f"one of {', '.join(values)}", by_lower[close[0]] if close else ""


def _read_text(kind: inspect.StrType, raw: object) -> tuple[object, str, str]:
    text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw
    if isinstance(text, str) and (not kind.pattern or re.fullmatch(kind.pattern, text)):
        return text, "", ""
    return _UNREADABLE, "a text", _repaired(text, kind.pattern or "")


def _repaired(text: object, pattern: str) -> str:
    """The text as it may have been meant, if that is allowed: in lower case, between slashes."""
    if not isinstance(text, str):
        return ""
    bare = text.strip()
    guesses = (bare, bare.lower(), f"/{bare.strip('/')}/")
    return next((guess for guess in guesses if guess and re.fullmatch(pattern, guess)), "")


def _whole(raw: object) -> int | None:
    """The whole number that a text or a number from JSON stands for."""
    if isinstance(raw, str) and _WHOLE.fullmatch(bare := raw.strip()):
        return int(bare)  # which takes fewer characters for space than strip does
    if isinstance(raw, float) and math.isfinite(raw) and raw == int(raw):
        return int(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _nearly_whole(raw: object) -> int | None:
    """What `100%`, `100 GB`, `256.0` or `2e3` may have been meant to be."""
    found = _BEGINS_WITH_NUMBER.match(str(raw)) if isinstance(raw, (str, float)) else None
    number = _number(found[1]) if found else None
    return None if number is None else round(number)


def _number(raw: object) -> float | None:
    """The finite number that a text or a number from JSON stands for."""
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        return None
    try:
        number = float(raw)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _json_or(raw: object, otherwise: Callable[[str], object]) -> object:
    """`raw` itself if it is no text; what it is as JSON, if it looks so; else `otherwise` of it."""
    if not isinstance(raw, str):
        return raw
    if not raw.lstrip().startswith(("[", "{")):
        return otherwise(raw)
    try:
        return cast("object", json.loads(raw))
    except (ValueError, RecursionError):  # broken, or nested without end
        return None


def _pairs(text: str) -> dict[str, str] | None:
    """`a=1,b=2` as a map."""
    if not text.strip():
        return {}
    found = [_PAIR.fullmatch(part) for part in text.split(",")]
    if not all(found):
        return None
    return {pair[1]: pair[2] for pair in found if pair}


def _struct_type(struct: type[msgspec.Struct]) -> inspect.StructType:
    return cast("inspect.StructType", inspect.type_info(struct))


def _is_list_of_structs(kind: inspect.Type) -> bool:
    kind = _plain(kind)[0]
    if not isinstance(kind, inspect.VarTupleType):
        return False
    return isinstance(_plain(kind.item_type)[0], inspect.StructType)


def _plain(kind: inspect.Type) -> tuple[inspect.Type, str]:
    """`kind` without `Meta` and without `| None`, and the words that `Meta` has for it."""
    words = ""
    while True:
        if isinstance(kind, inspect.Metadata):
            words = (kind.extra_json_schema or {}).get("description", words)
            kind = kind.type
        elif isinstance(kind, inspect.UnionType):
            (kind,) = (t for t in kind.types if not isinstance(t, inspect.NoneType))
        else:
            return kind, words
