"""A sandbox is started in its folder, and ended. Speaks to the system.

One command at a time works in a folder, so that two `up` at once are one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from sandbox.batch.containers import check
from sandbox.client import is_answering
from sandbox.errors import SandboxError
from sandbox.guard import STOP_SECONDS, command, guard, kill_jobs_of
from sandbox.state import (
    LOG_FILE,
    Options,
    State,
    find_guard,
    is_ours,
    last_state,
    read_state,
)

START_SECONDS = 60.0


def start(options: Options) -> tuple[State, bool]:
    """A sandbox in the background, once it answers; False when it already ran.

    Raises SandboxError when it does not come up.
    """
    folder = Path(options.folder)
    if options.engine:
        check(options.engine)
    with _alone(folder):
        running = read_state(folder)
        if running:
            return running, False
        _clean(folder)
        return _start(options, folder), True


def run(options: Options, *, ready: Callable[[State], None]) -> int:
    """A sandbox in the foreground, until SIGINT or SIGTERM; its exit status.

    Raises SandboxError when one already runs there.
    """
    folder = Path(options.folder)
    if options.engine:
        check(options.engine)
    with contextlib.ExitStack() as until_it_answers:
        until_it_answers.enter_context(_alone(folder))
        if read_state(folder):
            raise SandboxError(f"a sandbox runs in {folder}: end it with python -m sandbox down")
        _clean(folder)

        def answer(state: State) -> None:
            until_it_answers.close()
            ready(state)

        status = guard(options, ready=answer)
    with contextlib.suppress(BlockingIOError), _alone(folder, wait=False):
        _remove(folder)  # else `down` is at it
    return status


def stop(folder: Path) -> bool:
    """Ends the sandbox of that folder with all its jobs; False when none ran there.

    Raises SandboxError for a folder that is not a sandbox's.
    """
    if not folder.exists():
        return False
    with _alone(folder):
        state = read_state(folder)
        if state and (guard_process := find_guard(state)):
            with contextlib.suppress(psutil.NoSuchProcess):
                guard_process.terminate()
                _wait(guard_process)
        _remove(folder)
    return state is not None


def _start(options: Options, folder: Path) -> State:
    log = folder / LOG_FILE
    with log.open("wb") as output:
        process = subprocess.Popen(
            command("_guard", options),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        state = read_state(folder)
        if state and is_answering(state.port, state.key):
            process.returncode = 0  # it goes on by itself: no warning that it still runs
            return state
        time.sleep(0.02)
    said = log.read_text(errors="replace").strip().splitlines()[-3:]
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    process.wait()
    _remove(folder)
    why = "\n".join(said).removeprefix("sandbox: ") or "it said nothing"
    raise SandboxError(f"it did not start: {why}")


def _wait(guard_process: psutil.Process) -> None:
    """Until it has ended. What has, and was not reaped yet (that is for init), counts as ended."""
    deadline = time.monotonic() + STOP_SECONDS + 5
    while guard_process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            guard_process.kill()
            return
        time.sleep(0.02)


@contextlib.contextmanager
def _alone(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Makes the folder, for this user only, and keeps other commands out of it.

    Raises BlockingIOError when another is at it and it is not to `wait`.
    """
    while True:
        lock = _open(folder)
        if lock is None:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(folder, lock):
                yield
                return
        finally:
            os.close(lock)


def _open(folder: Path) -> int | None:
    """The folder, None when it was removed while it was being made."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as err:
        taken = isinstance(err, (FileExistsError, NotADirectoryError))
        why = "it is a file" if taken else err.strerror
        raise SandboxError(f"{folder} can't be used ({why}): give another with --dir") from err


def _is_still(folder: Path, descriptor: int) -> bool:
    """Whether the folder is the one that was opened: `down` may have removed that."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    return False


def _clean(folder: Path) -> None:
    """Ends and removes what a killed sandbox has left.

    Raises SandboxError for a folder that is not a sandbox's.
    """
    if not is_ours(folder):
        raise SandboxError(f"{folder} holds other files: give another with --dir")
    last = last_state(folder)
    kill_jobs_of(folder, last.engine if last else None)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _remove(folder: Path) -> None:
    if folder.exists():
        _clean(folder)
        folder.rmdir()
