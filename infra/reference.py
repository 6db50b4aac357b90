"""The page on settings: each key with its default, what is allowed, and what it does. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from infra.settings import NAMESPACE, Settings, TypeSettings

_HEAD = f"""\
# Settings of a stack

A team's fleet is a Pulumi stack; its settings stand in `Pulumi.<stack>.yaml` under `{NAMESPACE}:`.
`pulumi config set {NAMESPACE}:KEY VALUE` writes one; lists may be written `a,b`, maps `a=1,b=2`.
Secrets are written `pulumi config set --secret {NAMESPACE}:wandbApiKey`, further ones
`pulumi config set --secret --path {NAMESPACE}:secrets.NAME`; jobs get them as environment variables.
`pulumi preview` tells all that is wrong with the settings at once, before anything is changed.

This page is what `python -m infra settings` prints.
"""


def settings_page(declared: Mapping[str, Any]) -> str:
    """Markdown. `declared` is the `config` block of Pulumi.yaml."""
    allowed = {field.encode_name: _allowed(field.type) for field in _fields(Settings)}
    rows = [
        f"| `{key}` | {_default(entry['default'])} | {allowed.get(key, 'a secret')} | "
        f"{_escaped(entry['description'])} |"
        for key, entry in declared.items()
    ]
    own = [f"| `{field.encode_name}` | {_allowed(field.type)} |" for field in _fields(TypeSettings)]
    return "\n".join(
        [
            _HEAD,
            "| key | default | allowed | what it does |",
            "|---|---|---|---|",
            *rows,
            "",
            "## Of one instance type",
            "",
            "An item of `instanceTypes` is a name, or a map of these; what is left out is as the",
            "stack has it.",
            "",
            "| member | allowed |",
            "|---|---|",
            *own,
            "",
        ]
    )


def _fields(struct: type) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(struct)
    assert isinstance(found, inspect.StructType)
    return found.fields


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "&#124;")


def _default(value: object) -> str:
    if isinstance(value, list) and value:
        return ", ".join(f"`{item}`" for item in value)
    return "none" if value in ("", [], {}) else f"`{json.dumps(value).strip(chr(34))}`"


def _allowed(kind: inspect.Type) -> str:  # a table of types
    match kind:
        case inspect.Metadata():
            schema = kind.extra_json_schema or {}
            return str(schema.get("description") or _allowed(kind.type))
        case inspect.UnionType():
            return " or ".join(
                _allowed(t) for t in kind.types if not isinstance(t, inspect.NoneType)
            )
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return f"{kind.ge} to {kind.le}"
        case inspect.FloatType():
            return f"{kind.ge!r} to {kind.le!r}"
        case inspect.LiteralType():
            return ", ".join(map(str, kind.values))
        case inspect.VarTupleType():
            return f"a list, each {_allowed(kind.item_type)}"
        case inspect.DictType():
            return f"a map of {_allowed(kind.key_type)} to {_allowed(kind.value_type)}"
        case inspect.StructType():
            return "a name or a map, see below"
    return "a text"
