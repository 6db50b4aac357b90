"""States and legal moves of jobs, compute environments and job queues. Pure.

As the User Guide draws them ("Job states"); anything else is a mistake of this program and
changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

SUBMITTED, PENDING, RUNNABLE, STARTING, RUNNING = (
    "SUBMITTED",
    "PENDING",
    "RUNNABLE",
    "STARTING",
    "RUNNING",
)
SUCCEEDED, FAILED = "SUCCEEDED", "FAILED"
OVER = frozenset({SUCCEEDED, FAILED})

JOB_MOVES: Mapping[str, frozenset[str]] = {
    SUBMITTED: frozenset({PENDING, RUNNABLE, FAILED}),
    PENDING: frozenset({RUNNABLE, SUCCEEDED, FAILED}),  # an array parent ends from here
    RUNNABLE: frozenset({STARTING, FAILED}),
    STARTING: frozenset({RUNNING, RUNNABLE, FAILED}),
    RUNNING: frozenset({RUNNABLE, SUCCEEDED, FAILED}),  # RUNNABLE: another attempt
    SUCCEEDED: frozenset(),
    FAILED: frozenset(),
}

RESOURCE_MOVES: Mapping[str, frozenset[str]] = {
    "CREATING": frozenset({"VALID", "INVALID"}),
    "UPDATING": frozenset({"VALID", "INVALID"}),
    "VALID": frozenset({"UPDATING", "DELETING", "INVALID"}),
    "INVALID": frozenset({"UPDATING", "DELETING", "VALID"}),
    "DELETING": frozenset({"DELETED", "INVALID"}),
    "DELETED": frozenset(),
}


def move(moves: Mapping[str, frozenset[str]], old: str, new: str) -> str:
    """`new`, if one may come there from `old`.

    Raises AssertionError else.
    """
    if new not in moves[old]:
        raise AssertionError(f"no way from {old} to {new}")
    return new
