"""States of runs, and what the service's states mean for them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class RunState(str, Enum):
    """What has become of a run."""

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
    """The service does not know the job, or could not be asked."""


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
_LOST_REASON = "Host EC2"


def run_state(status: str, reason: str | None) -> RunState:
    """The state that a job's status and status reason stand for."""
    state = BATCH_STATES.get(status, RunState.UNKNOWN)
    if state is RunState.FAILED and reason:
        if reason.startswith(_LOST_REASON):
            return RunState.LOST
        if reason.startswith(CANCEL_REASON):
            return RunState.CANCELLED
    return state
