"""What a case is, and the policies that cases use."""

from __future__ import annotations

import json
from typing import Any

import msgspec

Inputs = dict[str, Any]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`edits` are made one after the other; `replacing` are only asked about."""

    token: str
    inputs: Inputs
    edits: tuple[Inputs, ...] = ()
    replacing: tuple[Inputs, ...] = ()
    gone: tuple[str, ...] = ()
    """Properties that the last edit leaves out."""
    stays: bool = False
    """AWS can't take it away: it goes with what it is on."""


def allow(action: str) -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
