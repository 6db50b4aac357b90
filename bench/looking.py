"""Prints what looking at experiments and sending runs again costs on this machine.

python -m bench.looking
"""

from __future__ import annotations

import os
import platform
import random
import sys
import tempfile
from pathlib import Path

from bench.__main__ import RUNS, World, run, show
from bench.batch import Account
from bench.submitting import make_fleet

FAILED = 137
EXPERIMENTS = 100
PROGRAM = "from submit.__main__ import main; main()"
MANY = f"""
import sys
from submit.commands import run_command
for number in range({EXPERIMENTS}):
    words = ["run", "--queue", "q", "--image", "x", "--env", f"N={{number}}", "--", "sleep", "9999"]
    assert run_command(words) == 0
"""


def measure(world: World, what: str, *words: str) -> None:
    """A line's wall time, and its calls."""
    before = world.calls()
    seconds = run(world.env, sys.executable, "-c", PROGRAM, *words)
    after = world.calls()
    made = {name: after[name] - before.get(name, 0) for name in after}
    told = ", ".join(
        f"{count} {name.removeprefix('batch.')}" for name, count in made.items() if count
    )
    show(what, f"{seconds:.2f} s: {told or 'no call'}")


def large(world: World, account: Account) -> None:
    """One experiment of RUNS runs, of which FAILED fail."""
    line = ("--image", "x", "--seeds", str(RUNS), "--", "sh", "-c", "exec sleep 9999", "x")
    measure(world, f"submit run of {RUNS:,} runs", "run", "--queue", "q", *line)
    measure(world, f"status of {RUNS:,} runs", "status")
    (job,) = account.batch.list_jobs(jobQueue="q", filters=[{"name": "JOB_NAME", "values": ["*"]}])[
        "jobSummaryList"
    ]
    children = random.Random(1).sample(range(RUNS), FAILED)
    for start in range(0, FAILED, 50):
        ids = [f"{job['jobId']}:{child}" for child in children[start : start + 50]]
        account.batch.terminate_jobs(jobs=ids, reason="bench")
    measure(world, f"retry of {FAILED} of {RUNS:,}", "retry", "latest")
    measure(world, f"status of {RUNS:,} runs, {FAILED} of them twice", "status")
    measure(world, f"cancel of {RUNS:,} runs", "cancel", "latest", "--yes")


def first_time(world: World) -> None:
    """A first submission, from one job to ten."""
    for runs in (1, 10 * RUNS):
        line = ("--image", "x", "--seeds", str(runs), "--", "sh", "-c", f"exec sleep {runs}", "x")
        measure(
            world,
            f"first submit run of {runs:,} run{'s' * (runs > 1)}",
            "run",
            "--queue",
            "q",
            *line,
        )
        run(world.env, sys.executable, "-c", PROGRAM, "cancel", "latest", "--yes")
        run(world.env, sys.executable, "-c", PROGRAM, "rm", "--force", "latest")


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
            large(world, account)
            first_time(world)
            run(world.env, sys.executable, "-c", MANY)
            run(world.env, sys.executable, "-c", PROGRAM, "rm", "--force", "sh")
            measure(world, f"status of {EXPERIMENTS} experiments", "status", "--all")
            measure(world, f"cancel of {EXPERIMENTS} experiments", "cancel", "--mine", "--yes")
        finally:
            world.end()


if __name__ == "__main__":
    main()
