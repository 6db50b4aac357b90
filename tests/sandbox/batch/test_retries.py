"""Retry strategies, by example and for any strategy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.batch.retries import grants_retry
from tests.sandbox.batch.ruling import proves

LOST = {"onStatusReason": "Host EC2*", "action": "RETRY"}
REST = {"onReason": "*", "action": "EXIT"}


@proves("all conditions")
@pytest.mark.parametrize(
    ("rules", "status_reason", "reason", "exit_code", "again"),
    [
        ([], "Essential container in task exited", None, 1, True),
        ([LOST, REST], "Host EC2 (instance i-0) terminated.", None, None, True),
        ([LOST, REST], "Essential container in task exited", None, 1, False),
        ([LOST], "Essential container in task exited", None, 1, True),
        ([{"onExitCode": "137", "action": "exit"}], "x", None, 137, False),
        ([{"onExitCode": "13*", "action": "EXIT"}], "x", None, 137, False),
        ([{"onExitCode": "13", "action": "EXIT"}], "x", None, 137, True),
        ([{"onReason": "cannotpull*", "action": "EXIT"}], "x", "CannotPullContainer", None, False),
        ([LOST | {"onExitCode": "1"}, REST], "Host EC2 x", None, 2, False),
    ],
)
def test_the_first_rule_that_matches_decides(
    rules: list[dict[str, Any]],
    status_reason: str,
    reason: str | None,
    exit_code: int | None,
    again: object,
) -> None:
    strategy = {"attempts": 2, "evaluateOnExit": rules}
    asked = {"status_reason": status_reason, "reason": reason, "exit_code": exit_code}
    assert grants_retry(strategy, 1, **asked) is again  # type: ignore[arg-type] # of three types


@proves("all conditions")
@given(
    attempts=st.integers(1, 10),
    done=st.integers(1, 12),
    rules=st.lists(st.sampled_from([LOST, REST]), max_size=5),
)
def test_never_more_attempts_than_the_strategy_says(
    attempts: int, done: int, rules: list[dict[str, Any]]
) -> None:
    strategy = {"attempts": attempts, "evaluateOnExit": rules}
    again = grants_retry(strategy, done, status_reason="Host EC2 x", reason=None, exit_code=None)
    assert not (again and done >= attempts)
