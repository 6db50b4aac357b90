"""Values between the engine and a provider: protobuf structs ↔ Python. Pure."""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What the engine sends for a value that is known only after an update (Pulumi's wire format)."""

Properties = dict[str, Any]


def load(struct: struct_pb2.Struct) -> Properties:
    """The struct as Python values; whole numbers come out as int."""
    return {key: _load(value) for key, value in struct.fields.items()}


def dump(properties: Properties) -> struct_pb2.Struct:
    """The struct of the properties; those that are None are left out."""
    struct = struct_pb2.Struct()
    struct.update(_without_none(properties))
    return struct


def has_unknown(value: Any) -> bool:
    """Whether something within is known only after the update."""
    if isinstance(value, dict):
        return any(map(has_unknown, value.values()))
    if isinstance(value, list):
        return any(map(has_unknown, value))
    return bool(value == UNKNOWN)


def _load(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return load(value.struct_value)
    if kind == "list_value":
        return [_load(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return None if kind in {None, "null_value"} else getattr(value, kind)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value
