"""The own machine against xargs, and what its supervisor takes while it has nothing to do."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from submit.local.machine import machine_name
from submit.local.wire import LOCK

RUNS = 200
ROUNDS = 3
IDLE_S = 10.0
SUBMIT = [sys.executable, "-c", "from submit.__main__ import main; main()"]
SHORT = ["sh", "-c", "sleep 0.1"]


def own_machine() -> dict[str, str]:
    """Figures by what they are of."""
    with tempfile.TemporaryDirectory(prefix="runfleet-bench-") as folder:
        root = Path(__file__).parents[1]
        environ = {**os.environ, "RUNFLEET_HOME": folder, "PYTHONPATH": str(root)}
        pairs = [(_ours(environ), _xargs()) for _ in range(ROUNDS)]
        ours = statistics.median(first for first, _ in pairs)
        theirs = statistics.median(second for _, second in pairs)
        ratio = statistics.median(first / second for first, second in pairs)
        workers = len(os.sched_getaffinity(0))
        return {
            f"{RUNS} runs of sleep 0.1, xargs -P{workers}": f"{ours:.2f} s against {theirs:.2f} s: "
            f"{ratio:.2f} ×",
            "supervisor with runs that sleep": _idle(environ),
        }


def _ours(environ: dict[str, str]) -> float:
    words = ["run", "--queue", "local", "--foreground", "--again", "--seeds", str(RUNS), "--"]
    return _timed([*SUBMIT, *words, *SHORT], environ)


def _xargs() -> float:
    workers = str(len(os.sched_getaffinity(0)))
    seeds = "\n".join(map(str, range(1, RUNS + 1)))
    return _timed(["xargs", "-P", workers, "-n", "1", *SHORT, "--seed"], dict(os.environ), seeds)


def _idle(environ: dict[str, str]) -> str:
    """Memory, and the part of a core, while runs go on that do nothing."""
    start = [*SUBMIT, "run", "--queue", "local", "--seeds", "4", "--", "sh", "-c", "sleep 600"]
    _timed(start, environ)
    supervisor = Path(environ["RUNFLEET_HOME"]) / "local" / machine_name() / LOCK
    process = Path("/proc") / supervisor.read_text().strip()
    time.sleep(1)
    before = _ticks(process)
    time.sleep(IDLE_S)
    used = (_ticks(process) - before) / os.sysconf("SC_CLK_TCK") / IDLE_S
    status = (process / "status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
    _timed([*SUBMIT, "cancel", "latest", "--yes"], environ)
    while process.exists():
        time.sleep(0.1)
    return f"{resident / 1024:.1f} MB, {used:.2%} of a core"


def _ticks(process: Path) -> int:
    fields = (process / "stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


def _timed(words: list[str], environ: dict[str, str], given: str = "") -> float:
    started = time.perf_counter()
    subprocess.run(words, env=environ, check=True, input=given, text=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """These figures alone."""
    for what, figure in own_machine().items():
        print(f"{what:<48} {figure}", flush=True)


if __name__ == "__main__":
    main()
