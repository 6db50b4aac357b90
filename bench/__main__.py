"""Prints the figures of runfleet on this machine. Nothing is asserted: read them."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.own_machine import own_machine
from sandbox.admission import admit
from sandbox.client import control
from sandbox.state import read_state

ROOT = Path(__file__).resolve().parent.parent
PAIRS = 15
"""How often the two commands of a comparison are run, in turn."""
RUNS = 10_000
DRY_RUN = [
    "submit",
    "run",
    "--queue",
    "c5a-large",
    "--seeds",
    "3",
    "--dry-run",
    "--",
    "python",
    "x",
]
FLOOR = [sys.executable, "-c", "import click"]


class World:
    """A sandbox of its own, with an environment in which commands find it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "sandbox"
        base = dict(os.environ) | {"RUNFLEET_SANDBOX_DIR": str(self._folder)}
        base["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{base.get('PATH', '')}"
        self.env: Mapping[str, str] = base
        run(self.env, sys.executable, "-m", "sandbox", "up")
        state = read_state(self._folder)
        assert state is not None
        self._port, self._key = state.port, state.key
        self.env = base | admit(self._folder, state)

    def calls(self) -> dict[str, int]:
        """Calls that the sandbox has answered, by service and operation."""
        found: dict[str, int] = control(self._port, self._key, "GET", "calls")
        return found

    def end(self) -> None:
        """Takes the sandbox down."""
        run(self.env, sys.executable, "-m", "sandbox", "down")


def run(env: Mapping[str, str], *command: str) -> float:
    """Seconds that the command takes. Raises CalledProcessError, with what it said, if it fails."""
    started = time.perf_counter()
    try:
        subprocess.run(command, env=env, cwd=ROOT, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as err:
        sys.stderr.write(err.stdout + err.stderr)
        raise
    return time.perf_counter() - started


def compare(env: Mapping[str, str], ours: Sequence[str], floor: Sequence[str]) -> str:
    """Median wall times of two commands run in turn, and the median of their ratios."""
    run(env, *ours)
    run(env, *floor)
    pairs = [(run(env, *ours), run(env, *floor)) for _ in range(PAIRS)]
    a = statistics.median(first for first, _ in pairs)
    b = statistics.median(second for _, second in pairs)
    ratio = statistics.median(first / second for first, second in pairs)
    return f"{a * 1000:.0f} ms against {b * 1000:.0f} ms: {ratio:.2f} ×"


def fleet(world: World) -> None:
    """The six-type default fleet, up, up again and, at the end of all, down."""
    run(world.env, "pulumi", "stack", "init", "bench")
    up = run(world.env, "pulumi", "up", "--yes", "--skip-preview")
    export = subprocess.run(
        ["pulumi", "stack", "--show-ids"],
        env=world.env,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    count = next(line for line in export.splitlines() if "Current stack resources" in line)
    show(f"pulumi up, six types ({count.split('(')[1].rstrip('):')} resources)", f"{up:.1f} s")
    show(
        "pulumi up, nothing changed",
        f"{run(world.env, 'pulumi', 'up', '--yes', '--skip-preview'):.1f} s",
    )


def calls(world: World) -> None:
    """Calls to AWS Batch that one `submit run` of 10,000 runs makes."""
    before = world.calls()
    command = ["submit", "run", "--queue", "c5a-large", "--seeds", str(RUNS), "--", "true"]
    seconds = run(world.env, *command)
    made = {
        name: count - before.get(name, 0)
        for name, count in world.calls().items()
        if count > before.get(name, 0)
    }
    names = ", ".join(sorted(name.removeprefix("batch.") for name in made))
    show(f"calls to submit {RUNS:,} runs", f"{sum(made.values())} ({names}), {seconds:.2f} s")
    run(world.env, "submit", "cancel", "latest", "--yes")


def show(what: str, figure: str) -> None:
    """A line of the table."""
    print(f"{what:<48} {figure}", flush=True)


def main() -> None:
    """All figures, in a sandbox that is gone afterwards."""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    stack_file = ROOT / "Pulumi.bench.yaml"
    with tempfile.TemporaryDirectory(prefix="runfleet-bench-") as folder:
        world = World(Path(folder))
        try:
            fleet(world)
            show("submit run --dry-run of 3 runs, import click", compare(world.env, DRY_RUN, FLOOR))
            calls(world)
            down = run(world.env, "pulumi", "destroy", "--yes", "--skip-preview")
            show("pulumi destroy", f"{down:.1f} s")
        finally:
            world.end()
            stack_file.unlink(missing_ok=True)
    for what, figure in own_machine().items():
        show(what, figure)


if __name__ == "__main__":
    main()
