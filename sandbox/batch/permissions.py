"""What IAM policies allow: actions on resources, a denial above all. Pure.

Conditions count as met: what they ask of (source addresses, tags) does not exist here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any


def allows(documents: Iterable[Any], action: str, resource: str) -> bool:
    """Whether the policies together allow it (IAM User Guide, Policy evaluation logic)."""
    effects = {
        statement.get("Effect")
        for document in documents
        for statement in _statements(document)
        if _names(statement, "Action", action, re.IGNORECASE)
        and _names(statement, "Resource", resource, 0)
    }
    return "Allow" in effects and "Deny" not in effects


def _statements(document: Any) -> list[dict[str, Any]]:
    parsed = json.loads(document) if isinstance(document, str) else document
    statements = parsed.get("Statement", [])
    return statements if isinstance(statements, list) else [statements]


def _names(statement: dict[str, Any], element: str, value: str, flags: int) -> bool:
    if element in statement:
        return any(_matches(pattern, value, flags) for pattern in _listed(statement[element]))
    excluded = _listed(statement.get("Not" + element, ["*"]))
    return not any(_matches(pattern, value, flags) for pattern in excluded)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _matches(pattern: str, value: str, flags: int) -> bool:
    """`*` is any text, `?` any one letter."""
    parts = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return bool(re.fullmatch(parts, value, flags | re.DOTALL))
