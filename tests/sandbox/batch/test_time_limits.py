"""How long jobs may wait and run. In a sandbox of its own, with its own clock."""

from __future__ import annotations

import pytest

from sandbox.testing import running
from tests.sandbox.batch.ruling import proves
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow
TWO_VCPUS = [{"type": "VCPU", "value": "2"}]


@proves("time limits")
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


@proves("timeout")
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


@proves("kept a week")
def test_jobs_are_forgotten_after_a_week_but_those_that_others_wait_for() -> None:
    now = [1_800_000_000.0]
    with running(clock=lambda: now[0], grace_s=0.2) as sandbox:
        world = World(sandbox)
        world.environment("ce")
        world.queue("q", "ce")
        world.definition("d")
        old = world.over(world.submit("true"))["jobId"]
        needed = world.over(world.submit("true"))["jobId"]
        blocker = world.submit("sleep", "60")
        world.submit("true", dependsOn=[{"jobId": needed}, {"jobId": blocker}])
        now[0] += 7 * 86_400 - 1
        world.over(world.submit("true"))
        assert world.job(old)["status"] == "SUCCEEDED"
        now[0] += 3602
        until(lambda: not world.batch.describe_jobs(jobs=[old])["jobs"])
        assert world.job(needed)["status"] == "SUCCEEDED"
        world.batch.terminate_job(jobId=blocker, reason="r")
        world.over(blocker)


EATER = """
import os, time
if os.fork() == 0:
    held = bytearray(150 * 1024 * 1024)
    print("held", flush=True)
time.sleep(60)
"""


def test_a_job_that_uses_more_memory_than_it_asked_for_is_killed() -> None:
    """The limit is the job's, not a process's; a smaller one lives."""
    with running(memory_limits=True) as sandbox:
        world = World(sandbox)
        world.environment("ce")
        world.queue("q", "ce")
        world.definition("d")
        job = world.over(world.submit("python3", "-c", EATER))
        assert (job["status"], job["container"]["exitCode"]) == ("FAILED", 137)
        assert job["container"]["reason"].startswith("OutOfMemoryError")
        needs = [{"type": "MEMORY", "value": "400"}]
        job_id = world.submit(
            *("python3", "-c", EATER), containerOverrides={"resourceRequirements": needs}
        )
        until(lambda: world.job(job_id)["status"] == "RUNNING" and world.lines(world.job(job_id)))
        assert world.job(job_id)["status"] == "RUNNING"
        world.batch.terminate_job(jobId=job_id, reason="r")
        world.over(job_id)
