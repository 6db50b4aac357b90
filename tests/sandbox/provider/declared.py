"""What pulumi_aws declares of resource types and functions, by their tokens."""

from __future__ import annotations

import collections.abc
import functools
import importlib
import inspect
import re
import typing
import warnings
from typing import Any

from pulumi import _types

Types = dict[str, Any]


@functools.cache
def outputs(token: str) -> Types:
    """Type of each output."""
    return dict(_types.resource_types(_resource(token)))


@functools.cache
def inputs(token: str) -> Types:
    """Type of each input."""
    return dict(_types.input_type_types(_arguments(token)))


@functools.cache
def required(token: str) -> frozenset[str]:
    """Inputs without which there is no such resource."""
    parameters = inspect.signature(_arguments(token).__init__).parameters.values()
    return frozenset(
        _camel(parameter.name)
        for parameter in parameters
        if parameter.default is parameter.empty and not parameter.name.startswith("__")
    )


def nested_inputs(token: str, path: str) -> frozenset[str]:
    """The properties of the objects at that path among the inputs."""
    types = inputs(token)
    for name in path.split("."):
        types = dict(_types.input_type_types(_member(types[name])))
    return frozenset(types)


def function(token: str) -> tuple[frozenset[str], Types]:
    """Arguments of a function, and type of each of its results."""
    module, name = _module(token), token.rpartition(":")[2]
    call = getattr(module, re.sub("(?<!^)(?=[A-Z])", "_", name).lower())
    arguments = frozenset(_camel(p) for p in inspect.signature(call).parameters) - {"opts"}
    result = getattr(module, f"{name[0].upper()}{name[1:]}Result")
    return arguments, dict(_types.output_type_types(result))


def misfits(token: str, state: dict[str, Any]) -> list[str]:
    """The outputs that are not as they are declared: path, value and type."""
    return _misfits(state, outputs(token), "")


def result_misfits(token: str, result: dict[str, Any]) -> list[str]:
    """The same for a function's results."""
    return _misfits(result, function(token)[1], "")


def input_misfits(token: str, given: dict[str, Any]) -> list[str]:
    """The inputs that are not as they are declared, and those that are missing."""
    missing = sorted(required(token) - set(given))
    return [f"{name} is missing" for name in missing] + _unfit(given, inputs(token), "")


def _unfit(given: dict[str, Any], types: Types, lead: str) -> list[str]:
    found = []
    for name, value in given.items():
        if name not in types:
            found.append(f"{lead}{name} is not declared")
        elif value is not None:
            found += _unfit_value(value, types[name], f"{lead}{name}")
    return found


def _unfit_value(value: Any, declared: Any, path: str) -> list[str]:
    if typing.get_origin(declared) is typing.Union:  # what may be known later
        declared = typing.get_args(declared)[0]
    kind = typing.get_origin(declared) or declared
    if kind is collections.abc.Mapping and isinstance(value, dict):
        item = typing.get_args(declared)[1]
        return [f for key, one in value.items() for f in _unfit_value(one, item, f"{path}.{key}")]
    if kind is collections.abc.Sequence and isinstance(value, list):
        item = typing.get_args(declared)[0]
        return [f for one in value for f in _unfit_value(one, item, f"{path}[]")]
    if _types.is_input_type(kind) and isinstance(value, dict):
        return _unfit(value, dict(_types.input_type_types(kind)), f"{path}.")
    whole = isinstance(value, float) and value.is_integer() and kind is int
    return [] if whole or isinstance(value, kind) else [f"{path} is {value!r}, not {kind.__name__}"]


def _misfits(values: dict[str, Any], types: Types, lead: str) -> list[str]:
    found = []
    for name, value in values.items():
        path = f"{lead}{name}"
        if name not in types:
            found.append(f"{path} is not declared")
        else:
            found += _misfit(value, types[name], path)
    return found


def _misfit(value: Any, declared: Any, path: str) -> list[str]:
    kind = typing.get_origin(declared) or declared
    if kind is collections.abc.Mapping:
        item = typing.get_args(declared)[1]
        pairs = value.items() if isinstance(value, dict) else [("", None)]
        return [f for key, one in pairs for f in _misfit(one, item, f"{path}.{key}")]
    if kind is collections.abc.Sequence:
        item = typing.get_args(declared)[0]
        if not isinstance(value, list):
            return [f"{path} is {value!r}, not a list"]
        return [f for n, one in enumerate(value) for f in _misfit(one, item, f"{path}[{n}]")]
    if _types.is_output_type(kind):
        if not isinstance(value, dict):
            return [f"{path} is {value!r}, not an object"]
        return _misfits(value, dict(_types.output_type_types(kind)), f"{path}.")
    number = isinstance(value, float) and not isinstance(value, bool)
    fits = (
        number and value.is_integer()
        if kind is int
        else number
        if kind is float
        else isinstance(value, kind)
    )
    return [] if fits else [f"{path} is {value!r}, not {kind.__name__}"]


def _module(token: str) -> Any:
    package, path, _ = token.split(":")
    assert package == "aws"
    service, _, name = path.partition("/")
    snake = re.sub("(?<!^)(?=[A-Z])", "_", name).lower()
    parts = ["pulumi_aws", *([] if service == "index" else [service]), snake]
    with warnings.catch_warnings():  # it warns of its own old modules when they are loaded
        warnings.simplefilter("ignore", DeprecationWarning)
        if service != "index":  # whole, before a part of it is: it loads its parts when asked
            _ = importlib.import_module(f"pulumi_aws.{service}").outputs
        module = importlib.import_module(".".join(parts))
        if service != "index":
            importlib.import_module(f"pulumi_aws.{service}.outputs")
            importlib.import_module(f"pulumi_aws.{service}._inputs")
    return module


def _resource(token: str) -> Any:
    return getattr(_module(token), token.rpartition(":")[2])


def _arguments(token: str) -> Any:
    module, name = _module(token), token.rpartition(":")[2]
    # Where a nested type has taken the name, the resource's arguments have another.
    return getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")


def _member(declared: Any) -> Any:
    """The type of the objects, whatever lists they are in."""
    while not _types.is_input_type(declared):
        declared = typing.get_args(declared)[0]
    return declared


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
