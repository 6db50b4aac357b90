"""submit.states: every state of the service has a meaning."""

from __future__ import annotations

import botocore.session
import pytest

from submit.states import BAD, BATCH_STATES, CANCEL_REASON, OVER, RunState, run_state


def test_every_job_status_of_batch_has_a_meaning() -> None:
    shape = botocore.session.get_session().get_service_model("batch").shape_for("JobStatus")
    assert set(shape.enum) == set(BATCH_STATES)


def test_what_is_over_is_done_or_bad() -> None:
    assert {RunState.DONE} | BAD == OVER
    assert {state for state in BATCH_STATES.values() if state in OVER} == {
        RunState.DONE,
        RunState.FAILED,
    }


@pytest.mark.parametrize(
    ("status", "reason", "state"),
    [
        ("RUNNABLE", None, RunState.WAITING),
        ("SUCCEEDED", "Essential container in task exited", RunState.DONE),
        ("FAILED", None, RunState.FAILED),
        ("FAILED", "Essential container in task exited", RunState.FAILED),
        ("FAILED", "Host EC2 (instance i-0123) terminated.", RunState.LOST),
        ("FAILED", CANCEL_REASON, RunState.CANCELLED),
        ("FAILED", "cancelled by hand", RunState.FAILED),
        ("RUNNING", "Host EC2 (instance i-0123) terminated.", RunState.RUNNING),
        ("PAUSED", None, RunState.UNKNOWN),
    ],
)
def test_run_state(status: str, reason: str | None, state: RunState) -> None:
    assert run_state(status, reason) is state
