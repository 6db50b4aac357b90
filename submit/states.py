"""States of runs, and what the service's states mean for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum


class RunState(str, Enum):
    """What has become of a run."""

    UNSENT = "unsent"
    """No job stands for it: sending was cut off. The same `submit run` sends it."""
    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """Its command ended with another status than 0, or could not be started."""
    LOST = "lost"
    """The machine was taken, and no attempt is left: worth a retry."""
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    """The service does not know its job any more, and it had not ended when last seen."""


OVER = frozenset({RunState.DONE, RunState.FAILED, RunState.LOST, RunState.CANCELLED})
BAD = frozenset({RunState.FAILED, RunState.LOST, RunState.CANCELLED})

BATCH_STATES: Mapping[str, RunState] = {
    "SUBMITTED": RunState.WAITING,
    "PENDING": RunState.WAITING,
    "RUNNABLE": RunState.WAITING,
    "STARTING": RunState.STARTING,
    "RUNNING": RunState.RUNNING,
    "SUCCEEDED": RunState.DONE,
    "FAILED": RunState.FAILED,
}
"""Every member of Batch's JobStatus."""

CANCEL_REASON = "cancelled by runfleet"
"""What TerminateJob is given; it comes back as the statusReason."""
WHY_FAILED: Mapping[str, RunState] = {
    "Host EC2": RunState.LOST,  # "Host EC2 (instance i-…) terminated."
    CANCEL_REASON: RunState.CANCELLED,
}
"""What a FAILED job's status reason begins with, where it is not the command's own end."""


def run_state(status: str, reason: str | None) -> RunState:
    """The state that a job's status and status reason stand for."""
    state = BATCH_STATES.get(status, RunState.UNKNOWN)
    if state is RunState.FAILED:
        return next(
            (why for text, why in WHY_FAILED.items() if (reason or "").startswith(text)), state
        )
    return state


def may_be(status: str, states: Collection[RunState]) -> bool:
    """Whether a job with that status may be in one of these states."""
    if BATCH_STATES[status] is RunState.FAILED:
        return any(state in states for state in BAD)
    return BATCH_STATES[status] in states


def bad_count(counts: Mapping[RunState, int]) -> int:
    """How many of the runs, counted by state, ended otherwise than done."""
    return sum(count for state, count in counts.items() if state in BAD)
