"""HTTP requests ↔ Batch operations, driven by botocore's own service model. Pure.

Batch is a rest-json service whose JSON members are the model's member names, so that the
model alone says what is a legal request: operations, required members, types, enums, ranges,
patterns. Answers are held against the same model, so that no client meets a member that AWS
does not have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import botocore.session
from botocore.model import (
    ListShape,
    MapShape,
    OperationModel,
    ServiceModel,
    Shape,
    StringShape,
    StructureShape,
)

from sandbox.batch.errors import ServerError
from sandbox.batch.rules import refusal

_ANY_CASE = frozenset({"RetryAction"})
"""Enums whose values come in either case (API Reference, EvaluateOnExit, action)."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float, str),
    "structure": (dict,),
    "list": (list,),
    "map": (dict,),
}


class Protocol:
    """The Batch API: `route` finds the operation, `parse` its parameters, `render` its answer."""

    def __init__(self) -> None:
        self.model: ServiceModel = botocore.session.get_session().get_service_model("batch")
        self._routes = [
            (operation.http["method"], _pattern(operation.http["requestUri"]), operation)
            for operation in map(self.model.operation_model, self.model.operation_names)
        ]

    def route(self, method: str, path: str) -> tuple[OperationModel, dict[str, str]]:
        """The operation at that address, and the parameters that the address holds.

        Raises ClientError for an address that AWS Batch does not have.
        """
        for verb, pattern, operation in self._routes:
            if verb == method and (match := pattern.fullmatch(path)):
                return operation, {key: unquote(value) for key, value in match.groupdict().items()}
        raise refusal("service model", f"AWS Batch has no operation at {method} {path}")

    def parse(
        self,
        operation: OperationModel,
        uri: Mapping[str, str],
        query: Mapping[str, list[str]],
        body: bytes,
    ) -> dict[str, Any]:
        """The operation's parameters.

        Raises ClientError with every fault: a body that is no JSON object, unknown and
        missing members, wrong types, values that the model does not allow.
        """
        parameters: dict[str, Any] = dict(uri)
        shape = operation.input_shape
        members = shape.members if isinstance(shape, StructureShape) else {}
        for name, member in members.items():
            if member.serialization.get("location") == "querystring":
                key = member.serialization.get("name", name)
                if key in query:
                    values = query[key]
                    parameters[name] = values if isinstance(member, ListShape) else values[0]
        if operation.http["method"] == "POST" and body:
            parameters |= _json_object(body)
        if shape is not None:
            faults = list(_faults(shape, parameters, ""))
            if faults:
                raise refusal(
                    "service model", f"Error executing request, Exception : {'; '.join(faults)}"
                )
        return parameters

    def render(self, operation: OperationModel, answer: dict[str, Any]) -> bytes:
        """The answer as JSON, without members that are None.

        Raises ServerError when the answer is not one that the model allows.
        """
        answer = without_none(answer)
        if operation.output_shape is not None:
            faults = list(_faults(operation.output_shape, answer, ""))
            if faults:
                raise ServerError(f"{operation.name}: {'; '.join(faults)}")
        return json.dumps(answer).encode()


def without_none(value: Any) -> Any:
    """`value` with all members that are None left out, at every depth."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_none(item) for item in value]
    return value


def _pattern(uri: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(uri)))


def _json_object(body: bytes) -> dict[str, Any]:
    """The body's members; null is the same as not given, at every depth."""
    try:
        parsed = without_none(json.loads(body))
    except (ValueError, RecursionError) as err:
        raise refusal("service model", "Unable to parse the request: it is not JSON") from err
    if not isinstance(parsed, dict):
        raise refusal("service model", "Unable to parse the request: it is not a JSON object")
    return parsed


def _faults(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """What the model does not allow in `value`, a sentence for each."""
    kind = shape.type_name
    if not _is_of(kind, value):
        yield f"{path or 'request'} must be of type {kind}, not {_json_type(value)}"
    elif isinstance(shape, StructureShape):
        yield from _structure_faults(shape, value, path)
    elif isinstance(shape, ListShape):
        yield from _size_faults(shape, len(value), "length", path)
        for number, item in enumerate(value):
            yield from _faults(shape.member, item, f"{path}[{number}]")
    elif isinstance(shape, MapShape):
        yield from _map_faults(shape, value, path)
    elif isinstance(shape, StringShape):
        yield from _size_faults(shape, len(value), "length", path)
        yield from _text_faults(shape, value, path)
    elif shape.type_name in {"integer", "long", "float", "double"}:
        yield from _size_faults(shape, value, "value", path)
        bits = {"integer": 31, "long": 63}.get(shape.type_name)
        if bits and not -(1 << bits) <= value < 1 << bits:
            yield f"{path} does not fit into {shape.type_name}"


def _map_faults(shape: MapShape, value: dict[str, Any], path: str) -> Iterator[str]:
    if value:  # AWS takes and sends empty tags, which the model gives a least size
        yield from _size_faults(shape, len(value), "size", path)
    for key, item in value.items():
        yield from _faults(shape.key, key, f"{path}.{key}")
        yield from _faults(shape.value, item, f"{path}.{key}")


def _is_of(kind: str, value: Any) -> bool:
    return isinstance(value, _TYPES.get(kind, ())) and (kind == "boolean") == isinstance(
        value, bool
    )


def _structure_faults(shape: StructureShape, value: dict[str, Any], path: str) -> Iterator[str]:
    for name in shape.required_members:
        if name not in value:
            yield f"{_join(path, name)} is required"
    for name, item in value.items():
        member = shape.members.get(name)
        if member is None:
            yield f"{_join(path, name)} is not a member of {shape.name}"
        elif item is not None:
            yield from _faults(member, item, _join(path, name))


def _size_faults(shape: Shape, size: float, what: str, path: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and size < low:
        yield f"{path} has a {what} of {size}, the least is {low}"
    if high is not None and size > high:
        yield f"{path} has a {what} of {size}, the most is {high}"


def _text_faults(shape: StringShape, value: str, path: str) -> Iterator[str]:
    shown = value.upper() if shape.name in _ANY_CASE else value
    if shape.enum and shown not in shape.enum:
        yield f"{path} is {value!r}, the values are {', '.join(shape.enum)}"
    pattern = shape.metadata.get("pattern")
    if pattern and not re.fullmatch(pattern, value):
        yield f"{path} is {value!r}, which does not match {pattern}"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _json_type(value: Any) -> str:
    return {bool: "boolean", dict: "object", list: "array", str: "string"}.get(
        type(value), "number" if isinstance(value, (int, float)) else "null"
    )
