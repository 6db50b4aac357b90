"""Real processes that are killed in the middle: each run goes on in exactly one job."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox.testing import Running, running
from submit.job_names import job_chunk, job_number
from submit.ranges import decode_ranges
from tests.sandbox.conftest import World as SandboxWorld
from tests.sandbox.conftest import trust, until

from .fake import FLEET

pytestmark = pytest.mark.slow

SUBMIT = (
    "import submit.plan; submit.plan.MAX_ARRAY_SIZE = 2\n"  # so that eight runs are four jobs
    "from submit.commands import main; main()"
)
RUN = (
    "run",
    "--queue",
    "spot",
    "--seeds",
    "8",
    "--name",
    "cut",
    "--",
    "sh",
    "-c",
    "exec sleep 600",
    "x",
)
FAULTS = ("lost", "reset", "error", "throttle", "")


class World:
    """A sandbox with two queues, and a home for the ledger."""

    def __init__(self, sandbox: Running, home: Path) -> None:
        self.sandbox = sandbox
        made = SandboxWorld(sandbox)
        self.batch = made.batch
        made.queue("spot", made.environment("spot-ce"))
        demand = {"type": "EC2", "allocationStrategy": "BEST_FIT_PROGRESSIVE"}
        made.queue("demand", made.environment("demand-ce", **demand))
        for role in ("job", "execution"):
            made.iam.create_role(
                RoleName=role, AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com")
            )
        made.logs.create_log_group(logGroupName=FLEET.log_group)
        like = FLEET.queues["c6g-medium"]
        queues = {
            name: msgspec.structs.replace(like, arn=made.queue_detail(name)["jobQueueArn"])
            for name in ("spot", "demand")
        }
        document = home / "fleet.json"
        fleet = msgspec.structs.replace(FLEET, region="us-east-1", queues=queues)
        document.write_bytes(msgspec.json.encode(fleet))
        self._env = dict(os.environ) | sandbox.env()
        self._env |= {
            "RUNFLEET_FLEET": str(document),
            "RUNFLEET_SHARED": str(home / "shared"),
            "USER": "ada",
        }
        self._home = home

    def start(self, *words: str, home: str = "home") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", SUBMIT, *words],
            cwd=Path(__file__).parents[2],
            env=self._env | {"RUNFLEET_HOME": str(self._home / home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def submit(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out + err

    def cut_off(self, words: tuple[str, ...], after: int, delay_s: float) -> None:
        """Kills the line once it has made so many calls of SubmitJob, or has ended by itself."""
        goal = self.sandbox.calls().get("batch.SubmitJob", 0) + after
        process = self.start(*words)
        until(
            lambda: (
                process.poll() is not None or self.sandbox.calls().get("batch.SubmitJob", 0) >= goal
            ),
            seconds=60,
        )
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for queue in ("spot", "demand"):
            pages = self.batch.list_jobs(
                jobQueue=queue, filters=[{"name": "JOB_NAME", "values": ["*"]}]
            )
            found += pages["jobSummaryList"]
        ids = [job["jobId"] for job in found]
        return list(self.batch.describe_jobs(jobs=ids)["jobs"]) if ids else []

    def going(self) -> Counter[int]:
        """In how many jobs that are not over each run is."""
        counted: Counter[int] = Counter()
        for job in self.jobs():
            if job["status"] not in {"SUCCEEDED", "FAILED"}:
                pairs = {pair["name"]: pair["value"] for pair in job["container"]["environment"]}
                counted.update(decode_ranges(pairs["RUNFLEET_PLAN_RUNS"]))
        return counted

    def end_all(self) -> None:
        """Every job fails, as a bug would have it."""
        for job in self.jobs():
            self.batch.terminate_job(jobId=job["jobId"], reason="a test ends it")
        until(lambda: not self.going())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(slots=2, grace_s=0.1) as sandbox:
        yield World(sandbox, tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_random_points_each_run_goes_on_in_one_job(world: World, seed: int) -> None:
    """A submission, a retry, and a retry on another queue, each killed time and again."""
    chance = random.Random(seed)  # noqa: S311 # to be repeated
    run = (*RUN[:5], "--env", f"N={seed}", *RUN[5:])
    retry, other = ("retry", "latest"), ("retry", "latest", "--queue", "demand")
    for words in (run, retry, other):
        before = len(world.jobs())
        for _ in range(2):
            fault = chance.choice(FAULTS)
            if fault:
                world.sandbox.fault(
                    fault, service="batch", operation="SubmitJob", after=chance.randrange(3)
                )
            world.cut_off(words, after=chance.randrange(4), delay_s=chance.uniform(0, 0.05))
        world.sandbox.app.faults.clear()
        code, said = world.submit(*words)
        assert code == 0, said
        assert world.going() == Counter(range(8)), said
        jobs = world.jobs()
        names = [job["jobName"].split("-")[0] for job in jobs]
        places = [
            (name, job_number(job["jobName"]), job_chunk(job["jobName"]))
            for name, job in zip(names, jobs, strict=True)
        ]
        assert len(places) == len(set(places))
        assert len(jobs) - before == 4
        world.end_all()


@pytest.mark.parametrize("homes", [("home", "home"), ("ada", "bob", "ada")])
@pytest.mark.parametrize("lag_s", [0.0, 1.0])
def test_several_at_once_send_once(world: World, homes: tuple[str, ...], lag_s: float) -> None:
    """Though the definition stands, so that nothing but the machine tells that others are at it."""
    words = (*RUN[:5], "--env", f"N={homes}{lag_s}", *RUN[5:])
    try:
        for line in (words, ("retry", "latest"), ("retry", "latest")):
            time.sleep(lag_s)  # the jobs that were ended are known
            world.sandbox.conditions(lag_s=lag_s)
            processes = [world.start(*line, home=home) for home in homes]
            said = [process.communicate(timeout=120) for process in processes]
            assert [process.returncode for process in processes] == [0] * len(homes), said
            world.sandbox.conditions()
            assert world.going() == Counter(range(8)), said
            world.end_all()
    finally:
        world.sandbox.conditions()


def test_a_run_that_loses_its_spot_machine_goes_on_elsewhere(world: World) -> None:
    """Its one try on spot is over; the next look sends it on, and leaves the others alone."""
    line = ("run", "--queue", "spot", "--seeds", "2", "--fallback", "demand", "--after", "1")
    code, said = world.submit(*line, "--", "sh", "-c", "exec sleep 600", "lost")
    assert code == 0, said
    (job,) = [job for job in world.jobs() if job["status"] not in {"SUCCEEDED", "FAILED"}]
    child = f"{job['jobId']}:1"
    until(lambda: world.batch.describe_jobs(jobs=[child])["jobs"][0]["status"] == "RUNNING")
    world.sandbox.interrupt(child)
    until(lambda: world.batch.describe_jobs(jobs=[child])["jobs"][0]["status"] == "FAILED")
    code, said = world.submit("status", "latest")
    assert "1 of" in said
    assert "went on to demand" in said
    moved = [job for job in world.jobs() if job["jobName"].split("-")[1] == "1"]
    here = [one for one in moved if one["jobName"].startswith(job["jobName"].split("-")[0])]
    assert [one["jobQueue"].rpartition("/")[2] for one in here] == ["demand"]
    code, said = world.submit("cancel", "latest")
    assert "told to stop" in said
    until(lambda: not world.going())
