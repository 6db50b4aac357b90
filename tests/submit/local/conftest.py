"""A home of its own for each test, and no supervisor or run left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from submit import api
from submit.experiment import Experiment, Resources
from submit.fleet import LOCAL
from submit.local.attempts import end_group, read_mark
from submit.local.machine import machine_name
from submit.local.wire import LOCK
from submit.progress import Progress
from submit.records import Kept

ROOT = Path(__file__).parents[3]
PATIENCE_S = 30.0


class Home:
    """The own machine with a home in `path`. Each run appends a line to `started` when it begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.started = path / "started"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(path),
            "USER": "ada",
            "RUNFLEET_HOME": str(path / "home"),
            "RUNFLEET_SHARED": str(path / "shared"),
            "PYTHONPATH": str(ROOT),
        }
        self.folder = path / "home" / "local" / machine_name()

    @contextlib.contextmanager
    def session(self, **environ: str) -> Iterator[api.Session]:
        with api.Session(environ=self.environ | environ, cwd=self.path) as session:
            yield session

    def experiment(self, script: str, runs: int = 1, **options: Any) -> Experiment:
        """Runs of a shell script; each says first that it was started."""
        say = f'echo "$RUNFLEET_RUN" >>{self.started}; '
        resources = Resources(timeout_s=options.pop("timeout_s", None), vcpus=1, memory_mib=10)
        options = {"retries": 0, "resources": resources, **options}
        command = ("sh", "-c", say + script, "{seed}")
        return Experiment(command=command, seeds=tuple(range(runs)), **options)

    def send(self, experiment: Experiment, **environ: str) -> Kept:
        with self.session(**environ) as session:
            return api.send(session, api.plan(session, experiment, LOCAL)).kept

    def look(self, kept: Kept, **environ: str) -> Progress:
        with self.session(**environ) as session:
            return api.poll(session, [kept])[0]

    def until(self, kept: Kept, seen: Callable[[Progress], bool], **environ: str) -> Progress:
        """Looks until that is seen."""
        ends = time.monotonic() + PATIENCE_S
        with self.session(**environ) as session:
            while True:
                progress = api.poll(session, [kept])[0]
                if seen(progress):
                    return progress
                assert time.monotonic() < ends, f"it stays at {progress.counts}"
                time.sleep(0.02)

    def over(self, kept: Kept, **environ: str) -> dict[str, int]:
        """Waits for its end; its runs by state."""
        progress = self.until(kept, lambda progress: progress.is_over, **environ)
        return {state.value: count for state, count in progress.counts.items()}

    def runs(self, kept: Kept) -> list[Any]:
        with self.session() as session:
            return api.runs(session, api.poll(session, [kept])[0])

    def printed(self, kept: Kept, run: int = 0) -> list[str]:
        with self.session() as session:
            progress = api.poll(session, [kept])[0]
            view = api.runs(session, progress)[run]
            return [line.text for line in api.log(session, progress, view)]

    def starts(self) -> list[int]:
        """The runs that were started, once for each time."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(map(int, self.started.read_text().split()))
        return []

    def supervisor(self) -> int | None:
        """The id of the supervisor, if one runs."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            pid = int((self.folder / LOCK).read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            return pid if str(self.folder).encode() in command else None
        return None

    def kill_supervisor(self, number: int = signal.SIGKILL) -> None:
        """Ends the supervisor, if one runs, and waits until it has gone."""
        pid = self.supervisor()
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        ends = time.monotonic() + PATIENCE_S
        while self.supervisor() is not None:
            assert time.monotonic() < ends
            time.sleep(0.005)

    def command(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """A `submit` of its own."""
        program = "from submit.commands import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", program, *words],
            env=self.environ,
            cwd=self.path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **options,
        )

    def processes(self) -> list[str]:
        """Commands of processes that work in this home's folder."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "cwd").readlink() == self.path:
                    found.append((folder / "cmdline").read_text().replace("\0", " "))
        return found

    def marks(self) -> Sequence[Path]:
        return list((self.folder / "attempts").glob("*/*"))

    def close(self) -> None:
        self.kill_supervisor()
        for path in self.marks():
            mark = read_mark(path)
            if mark is not None and mark.code is None:
                end_group(mark, signal.SIGKILL)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.close()
