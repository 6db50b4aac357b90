"""Prints what submitting costs on this machine, beside a plain loop of boto3 calls.

    python -m bench.submitting

The loop is what CleanRL's submit_exp does for each run: register, submit, deregister. Both send to
the same sandbox, first as it answers, then with 50 ms added to each call, as from another country.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench.__main__ import FLOOR, World, compare, run, show
from bench.batch import Account
from sandbox.client import control
from sandbox.state import read_state
from submit.fleet import Fleet, Queue

LOOP_RUNS = 100
LATENCY_S = 0.05
SIZES = (3, 100_000)
MEMORY = (
    "import re, sys\n"
    "from pathlib import Path\n"
    "from submit.commands import run_command\n"
    "run_command(sys.argv[1:])\n"
    "status = Path('/proc/self/status').read_text()\n"
    "print(re.search(r'VmHWM:\\s+(\\d+)', status)[1], file=sys.stderr)\n"
)


def submit_line(runs: int, *options: str) -> list[str]:
    """`submit run` of so many runs of `true`."""
    program = "from submit.__main__ import main; main()"
    words = ["run", "--queue", "q", "--image", "x", "--seeds", str(runs), *options, "--", "true"]
    return [sys.executable, "-c", program, *words]


def dry_runs(env: Mapping[str, str]) -> None:
    """Wall time and memory of a dry run, small and large."""
    for runs in SIZES:
        line = submit_line(runs, "--dry-run")
        show(f"dry run of {runs:,} runs, import click", compare(env, line, FLOOR))
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, *line[3:]],
            env=env,
            check=True,
            capture_output=True,
            text=True,
        )
        show(f"dry run of {runs:,} runs, memory", f"{int(done.stderr.split()[-1]) // 1024} MiB")


def loop(batch: Any) -> float:
    """Seconds that a plain loop takes for LOOP_RUNS runs."""
    started = time.perf_counter()
    for seed in range(LOOP_RUNS):
        definition = batch.register_job_definition(
            jobDefinitionName="plain",
            type="container",
            containerProperties={
                "image": "x",
                "command": ["true", "--seed", str(seed)],
                "resourceRequirements": [
                    {"type": "VCPU", "value": "1"},
                    {"type": "MEMORY", "value": "100"},
                ],
            },
        )["jobDefinitionArn"]
        batch.submit_job(jobName=f"plain-{seed}", jobQueue="q", jobDefinition=definition)
        batch.deregister_job_definition(jobDefinition=definition)
    return time.perf_counter() - started


def side_by_side(world: World, account: Account, latency_s: float) -> None:
    """The same runs by the loop and by us; and 100 times as many by us."""
    label = f"{latency_s * 1000:.0f} ms added"
    for runs in (LOOP_RUNS, 100 * LOOP_RUNS):
        ours = run(world.env, *submit_line(runs, "--again"))
        show(f"{label}: submit run of {runs:,} runs", f"{ours:.2f} s")
        if runs == LOOP_RUNS:
            theirs = loop(account.batch)
            show(f"{label}: plain boto3 loop of {runs:,}", f"{theirs:.2f} s, {theirs / ours:.1f} ×")
        _empty(account)


def _empty(account: Account) -> None:
    """Nothing of it is to run while the next is measured."""
    for status in ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING"):
        found = account.batch.list_jobs(jobQueue="q", jobStatus=status)["jobSummaryList"]
        for job in found:
            account.batch.terminate_job(jobId=job["jobId"], reason="bench")


def make_fleet(account: Account, env: Mapping[str, str], folder: Path) -> Path:
    """A fleet document for the queue, and what its jobs need."""
    account.make_queue()
    (found,) = account.batch.describe_job_queues(jobQueues=["q"])["jobQueues"]
    number = found["jobQueueArn"].split(":")[4]
    role = f"arn:aws:iam::{number}:role/instance"
    queue = Queue(
        arn=found["jobQueueArn"],
        instance_type="c5.large",
        arch="x86_64",
        vcpus=2,
        memory_mib=3000,
        max_vcpus=16,
    )
    fleet = Fleet(
        version=1,
        stack="bench",
        account=number,
        region=env["AWS_REGION"],
        queues={"q": queue},
        job_role_arn=role,
        execution_role_arn=role,
        log_group="/aws/batch/job",
    )
    document = folder / "fleet.json"
    document.write_bytes(msgspec.json.encode(fleet))
    return document


def main() -> None:
    """All figures, in a sandbox that is gone afterwards."""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    with tempfile.TemporaryDirectory(prefix="runfleet-bench-") as name:
        folder = Path(name)
        world = World(folder)
        try:
            account = Account(dict(world.env))
            document = make_fleet(account, world.env, folder)
            own = {"RUNFLEET_FLEET": str(document), "RUNFLEET_HOME": str(folder / "home")}
            world.env = dict(world.env) | own
            dry_runs(world.env)
            for latency_s in (0.0, LATENCY_S):
                if latency_s:
                    state = read_state(folder / "sandbox")
                    assert state is not None
                    fault = {"kind": "latency", "count": 10**6, "seconds": latency_s}
                    control(state.port, state.key, "POST", "faults", fault)
                side_by_side(world, account, latency_s)
        finally:
            world.end()


if __name__ == "__main__":
    main()
