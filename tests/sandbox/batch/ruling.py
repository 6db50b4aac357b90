"""Ties tests to the rules and limits that they prove."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from botocore.exceptions import ClientError

from sandbox.batch import limits
from sandbox.batch.rules import RULES

_Test = TypeVar("_Test", bound=Callable[..., None])
LIMITS = {row.what: row for row in vars(limits).values() if isinstance(row, limits.Limit)}
PROOFS: dict[str, set[str]] = defaultdict(set)
"""By rule or limit, the tests that prove it."""


def proves(*rules: str) -> Callable[[_Test], _Test]:
    """The test fails where one of the rules is not kept."""
    for rule in rules:
        assert rule in RULES or rule in LIMITS, rule

    def note(test: _Test) -> _Test:
        for rule in rules:
            PROOFS[rule].add(f"{test.__module__}.{test.__qualname__}")
        return test

    return note


def cases(*rows: tuple[str | None, Any, str]) -> Callable[[_Test], _Test]:
    """The test takes a `rule`, a `change` that breaks it, and what the answer `says`; without a rule
    it is what the sandbox does not have.
    """
    known: Sequence[str] = [rule for rule, _, _ in rows if rule]

    def parametrized(test: _Test) -> _Test:
        marked = pytest.mark.parametrize(("rule", "change", "says"), rows, ids=str)
        return proves(*known)(marked(test))

    return parametrized


def refused(rule: str | None, call: Callable[[], Any]) -> str:
    """The message with which that rule refuses the call; without one it is what the sandbox lacks."""
    with pytest.raises(ClientError) as caught:
        call()
    answer: Any = caught.value.response
    assert answer["Error"]["Code"] == "ClientException"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
    message = str(answer["Error"]["Message"])
    by = answer["ResponseMetadata"]["HTTPHeaders"].get("x-sandbox-rule")
    assert by == rule, message
    assert rule or message.startswith("this sandbox does not have "), message
    return message
