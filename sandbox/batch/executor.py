"""One attempt of a job as a local process group in its own folder.

The folder links to the files of the image's root, so that `python examples/x.py` finds them,
and goes when the attempt ends. The process gets the job's environment and AWS's variables,
not the sandbox's own.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from sandbox.batch.reaper import Reaper

FLUSH_SECONDS = 0.25
"""How long a line may wait before it is in the log."""
CLOSING_SECONDS = 1.0
"""From SIGTERM to SIGKILL when the sandbox itself ends."""
_CHUNK = 64 * 1024
_MAX_LINE = 256 * 1024
"""Bytes of one log event (CloudWatch Logs quotas); a longer line is cut into several."""


class Attempt(NamedTuple):
    """What is to be run."""

    container: dict[str, Any]
    """As the job describes it, with a name."""
    environment: dict[str, str]
    """The job's variables and AWS's."""
    folder: Path
    """A place of its own, not there yet."""


class Outcome(NamedTuple):
    """How it ended: `exit_code` None when it never started."""

    exit_code: int | None
    fault: str | None
    out_of_memory: bool = False
    """Whether it was killed for using more than it may."""


Lines = list[tuple[int, str]]
Log = Callable[[Lines], object]
NO_COMMAND = ("true",)
"""An image's own command, which nobody can know here."""


class Executor:
    """Runs attempts, one call each; the calling thread waits for the process."""

    def __init__(self, image_root: Path, grace_s: float) -> None:
        self._image_root = image_root
        self._grace = Grace(grace_s)
        self._reaper = Reaper()

    def hurry(self) -> None:
        """From now on, attempts that are stopped have a second to end."""
        self._grace.hurry()

    def close(self) -> None:
        """No attempt runs any more."""
        self._reaper.close()

    def run(
        self,
        attempt: Attempt,
        *,
        started: Callable[[int], None],
        stop: threading.Event,
        log: Log,
    ) -> Outcome:
        """Runs it to its end. `stop` ends it early; `log` takes its lines as they come."""
        command = list(attempt.container["command"] or NO_COMMAND)
        with _folder(attempt.folder, self._image_root):
            try:
                process = subprocess.Popen(
                    command,
                    cwd=attempt.folder,
                    env=_environment(attempt),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as err:  # ValueError: a NUL, which no program takes
                why = err.strerror if isinstance(err, OSError) else str(err)
                return Outcome(None, f'CannotStartContainerError: exec: "{command[0]}": {why}')
            with self._reaper.watching(process.pid):
                started(process.pid)
                with logged(process, log):
                    self._wait(process, stop, attempt)
                    # Containers end with their first process; so do the others of its group.
                    _signal(process, signal.SIGKILL)
        code = process.returncode
        return Outcome(code if code >= 0 else 128 - code, None)

    def _wait(
        self, process: subprocess.Popen[bytes], stop: threading.Event, attempt: Attempt
    ) -> None:
        """Waits for its end, or brings it about once it is to `stop`."""
        with stopped_by_end_of(process, stop):
            stop.wait()
            if process.poll() is None:
                _signal(process, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(self._grace.of(attempt))
                _signal(process, signal.SIGKILL)
            process.wait()


class Grace:
    """Seconds from SIGTERM to SIGKILL."""

    def __init__(self, usual_s: float) -> None:
        self._usual_s = usual_s
        self._most_s = math.inf

    def hurry(self) -> None:
        """The sandbox itself ends."""
        self._most_s = CLOSING_SECONDS

    def of(self, attempt: Attempt) -> float:
        """Of that attempt, if it is to be stopped now."""
        own: float = attempt.container.get("stopTimeout", self._usual_s)
        return min(own, self._most_s)


@contextlib.contextmanager
def stopped_by_end_of(process: subprocess.Popen[bytes], stop: threading.Event) -> Iterator[None]:
    """Sets `stop` once the process has ended; it has when the block is left."""

    def wake_at_its_end() -> None:
        process.wait()
        stop.set()

    waker = threading.Thread(target=wake_at_its_end, daemon=True)
    waker.start()
    yield
    waker.join()


@contextlib.contextmanager
def logged(process: subprocess.Popen[bytes], log: Log) -> Iterator[None]:
    """Hands its lines on; the last of them when the block, and so the process, is over."""
    assert process.stdout is not None
    ended = threading.Event()
    reader = threading.Thread(target=_pump, args=(process.stdout, log, ended), daemon=True)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()


def _environment(attempt: Attempt) -> dict[str, str]:
    """Of the sandbox's own variables only where programs lie."""
    usual = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    own = {"HOME": str(attempt.folder), "PWD": str(attempt.folder)}
    return usual | attempt.environment | own


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@contextlib.contextmanager
def _folder(folder: Path, image_root: Path) -> Iterator[None]:
    folder.mkdir(parents=True)
    try:
        for entry in os.scandir(image_root):
            if not entry.name.startswith("."):
                (folder / entry.name).symlink_to(entry.path)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pump(stream: IO[bytes], log: Log, ended: threading.Event) -> None:
    """Hands the lines on, several at a time when they come fast.

    Until the end of the stream; once `ended` is set, until nothing more is in it: a process that
    hid from its job's end may hold it open for ever.
    """
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    lines = _Lines()
    flushed = time.monotonic()
    with stream:
        while True:
            over = ended.is_set()
            if poll.poll(0 if over else FLUSH_SECONDS * 1000):
                data = os.read(stream.fileno(), _CHUNK)
                if not data:
                    break
                lines.feed(data)
            elif over:
                break
            if lines.complete and time.monotonic() - flushed >= FLUSH_SECONDS:
                log(lines.take())
                flushed = time.monotonic()
        lines.end()
        if lines.complete:
            log(lines.take())


class _Lines:
    """Bytes in, lines with their time out."""

    def __init__(self) -> None:
        self.complete: Lines = []
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MAX_LINE:
            whole.append(self._rest)
            self._rest = b""
        now_ms = time.time_ns() // 1_000_000
        for line in whole:
            for start in range(0, len(line) or 1, _MAX_LINE):
                piece = line[start : start + _MAX_LINE]
                self.complete.append((now_ms, piece.decode("utf-8", "replace")))

    def end(self) -> None:
        """What has no line end yet is a line."""
        if self._rest:
            self.feed(b"\n")

    def take(self) -> Lines:
        taken, self.complete = self.complete, []
        return taken
