"""What a registry wants to be shown before it answers: its WWW-Authenticate. Pure.

RFC 9110, 11.6.1: a header may hold several challenges, a value may stand without quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_PART = re.compile(
    r"[\s,]*(?:"
    r'(?P<name>[\w-]+)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s,"]+))'
    r"|(?P<scheme>[\w-]+)(?=[\s,]|$))"
)


class Challenge(msgspec.Struct, frozen=True):
    """One way to be let in. `scheme` and the names of what it says are in small letters."""

    scheme: str
    says: dict[str, str]


def parse_challenges(headers: Sequence[str]) -> list[Challenge]:
    """All the ways, in their order; what can't be read is left out."""
    found: list[Challenge] = []
    for header in headers:
        for part in _PART.finditer(header):
            if part["scheme"]:
                found.append(Challenge(part["scheme"].lower(), {}))
            elif found:
                value = part["bare"] or re.sub(r"\\(.)", r"\1", part["quoted"] or "")
                found[-1].says.setdefault(part["name"].lower(), value)
    return found
