"""How long jobs may wait and run. In a sandbox of its own, with its own clock."""

from __future__ import annotations

import pytest

from sandbox.testing import running
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow
TWO_VCPUS = [{"type": "VCPU", "value": "2"}]


def test_a_queue_gives_up_on_a_job_that_can_never_start() -> None:
    """jobStateTimeLimitActions: CANCEL after so many seconds of RUNNABLE for that reason."""
    now = [1_800_000_000.0]
    with running(clock=lambda: now[0]) as sandbox:
        world = World(sandbox)
        world.environment("ce")
        action = {
            "reason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
            "state": "RUNNABLE",
            "maxTimeSeconds": 600,
            "action": "CANCEL",
        }
        world.queue("q", "ce", jobStateTimeLimitActions=[action])
        world.definition("d")
        job_id = world.submit("true", containerOverrides={"resourceRequirements": TWO_VCPUS})
        until(lambda: world.job(job_id).get("statusReason"))
        now[0] += 599
        world.over(world.submit("true"))
        assert world.job(job_id)["status"] == "RUNNABLE"
        now[0] += 1
        job = world.over(job_id)
        assert (job["status"], job["isCancelled"]) == ("FAILED", True)
        assert job["statusReason"] == (
            f"Canceled by JobStateTimeLimit action due to reason: {action['reason']}"
        )


def test_a_timeout_ends_the_attempt_and_is_not_retried() -> None:
    """SIGTERM first; 60 s at least, counted from RUNNING."""
    now = [1_800_000_000.0]
    with running(clock=lambda: now[0]) as sandbox:
        world = World(sandbox)
        world.environment("ce")
        world.queue("q", "ce")
        world.definition("d", timeout={"attemptDurationSeconds": 60})
        job_id = world.submit(
            *("sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait"),
            retryStrategy={"attempts": 2},
        )
        until(lambda: world.job(job_id)["status"] == "RUNNING" and world.lines(world.job(job_id)))
        now[0] += 59
        world.over(world.submit("true"))
        assert world.job(job_id)["status"] == "RUNNING"
        now[0] += 1
        job = world.over(job_id)
        assert (job["status"], len(job["attempts"])) == ("FAILED", 1)
        assert job["statusReason"] == "Job attempt duration exceeded timeout"
        assert world.lines(job) == ["up", "bye"]
