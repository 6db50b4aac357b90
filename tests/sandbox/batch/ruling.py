"""Ties a test to the rule that it proves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from sandbox.batch.rules import RULES

_Test = TypeVar("_Test", bound=Callable[..., None])
PROOFS: dict[str, set[str]] = defaultdict(set)
"""By rule, the tests that prove it."""


def proves(rule: str) -> Callable[[_Test], _Test]:
    """The test fails where the rule is not kept."""
    assert rule in RULES, rule

    def note(test: _Test) -> _Test:
        PROOFS[rule].add(f"{test.__module__}.{test.__qualname__}")
        return test

    return note
