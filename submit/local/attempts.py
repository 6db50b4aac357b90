"""Single attempts: how one is started, found again, judged and ended. Speaks to the kernel."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from submit.local.records import Attempt, End, Seat, ended_with
from submit.states import RunState

_SHELL = "/bin/sh"
_PROGRAM = str(Path(__file__).with_name("attempt.sh"))
_START_FIELD = 19
"""Of /proc/PID/stat, behind the command's name: starttime, field 22 (proc_pid_stat(5))."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt file says: who runs it, with what, and how the command ended (None: not yet,
    as far as is known). `written_ms` is when it was last written to.
    """

    pid: int
    began: str
    seat: Seat
    code: int | None = None
    written_ms: int = 0


class Files(msgspec.Struct, frozen=True):
    """Where the attempts of all tasks have their files."""

    folder: Path

    def make(self, task: str) -> None:
        """Makes room for a task's."""
        for folder in (self.mark(task, "x").parent, self.log(task, "x").parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def mark(self, task: str, attempt: str) -> Path:
        """The attempt file."""
        return self.folder / "attempts" / task / attempt

    def log(self, task: str, attempt: str) -> Path:
        """What the attempt has printed."""
        return self.folder / "logs" / task / f"{attempt}.log"

    def drop_marks(self, task: str) -> None:
        """Removes the attempt files of a task that is over. Whoever comes too late to create one
        finds no folder, and starts nothing.
        """
        folder = self.mark(task, "x").parent
        with contextlib.suppress(FileNotFoundError):
            for file in folder.iterdir():
                file.unlink(missing_ok=True)
            folder.rmdir()


def key(attempt: Attempt) -> str:
    """The attempt's name among those of its task."""
    return f"{attempt.child}.{attempt.number}"


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    mark: Path,
    log: Path,
    seat: Seat,
    hold: int | None,
) -> subprocess.Popen[bytes]:
    """Starts a command pinned to the seat's cores, in a session and process group of its own.
    What runs it keeps `hold` open, which has the seat (submit.local.seats).

    Raises OSError when it can't be.
    """
    cores = os.sched_getaffinity(0)
    out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        os.sched_setaffinity(0, seat.cores)  # which a child inherits
        return subprocess.Popen(
            [_SHELL, _PROGRAM, str(mark), write_seat(seat), *command],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL if hold is None else hold,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    finally:
        os.sched_setaffinity(0, cores)
        os.close(out)


def write_seat(seat: Seat) -> str:
    """The seat in a word."""
    return "/".join((_join(seat.cores), _join(seat.gpus), str(seat.memory_mib)))


def read_mark(path: Path) -> Mark | None:
    """What the attempt file says; None when there is none, or its writer died in writing it."""
    try:
        written_ms = int(path.stat().st_mtime * 1000)
        first, *rest = path.read_text(encoding="ascii").split("\n")
        pid, began, seat = first.split(" ")
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    cores, gpus, memory = seat.split("/")
    return Mark(
        pid=int(pid),
        began=began,
        seat=Seat(cores=_split(cores), gpus=_split(gpus), memory_mib=int(memory)),
        code=int(rest[0]) if len(rest) > 1 else None,  # a line that is complete
        written_ms=written_ms,
    )


def is_alive(pid: int, began: str) -> bool:
    """Whether that very process still runs: no other that has its id by now."""
    stat = _stat(pid)
    return stat is not None and stat[0] != "Z" and stat[_START_FIELD] == began


def begun_ms(mark: Mark) -> int:
    """When an attempt of this start of the machine began (ms since 1970)."""
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    age_s = uptime - int(mark.began) / os.sysconf("SC_CLK_TCK")
    return int((time.time() - max(0.0, age_s)) * 1000)


def end_group(mark: Mark, number: int) -> None:
    """Sends the signal to all that is left of an attempt's process group, if it is still that one."""
    stat = _stat(mark.pid)
    # No process gets an id that is still a group's: without its leader the group is the same.
    if stat is None or stat[_START_FIELD] == mark.began:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(mark.pid, number)


def judge(
    attempt: Attempt, mark: Mark | None, *, alive: bool, boot: str, forced: End | None
) -> End | None:
    """What has become of an attempt that was claimed: its end, or None when it goes on, or was
    never begun (no mark). Pure.
    """
    if mark is not None and mark.code is not None:
        return ended_with(mark.code, forced)
    if alive:
        return None
    if forced is not None:
        return forced
    if attempt.boot != boot:
        return End(state=RunState.LOST, reason="the machine was restarted")
    if mark is None:
        return None
    return End(state=RunState.LOST, reason="its processes were killed from outside")


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(") ")[2].split(" ")


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _split(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)
