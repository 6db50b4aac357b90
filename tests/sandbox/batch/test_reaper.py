"""Job processes end with the process that watched over them."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import psutil
import pytest

from sandbox.batch.reaper import Reaper
from tests.sandbox.conftest import until

pytestmark = pytest.mark.slow
PROGRAM = """
import os, subprocess
from sandbox.batch.reaper import Reaper
def sleeper():
    return subprocess.Popen(
        ["sleep", "300"], start_new_session=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
reaper, watched, let_go, last = Reaper(), sleeper(), sleeper(), sleeper()
with reaper.watching(watched.pid), reaper.watching(last.pid):
    with reaper.watching(let_go.pid):
        pass
    print(watched.pid, let_go.pid, last.pid, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_killed_process_takes_what_it_watched_with_it() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )
    assert answer.returncode == -9
    watched, let_go, last = map(int, answer.stdout.split())
    try:
        for pid in (watched, last):
            until(lambda pid=pid: _gone(pid))  # type: ignore[misc] # mypy can't tell
        assert not _gone(let_go)
    finally:
        psutil.Process(let_go).kill()


def test_closing_leaves_no_shell() -> None:
    with contextlib.closing(Reaper()) as reaper, reaper.watching(2**22 + 1):
        (shell,) = psutil.Process().children()
    assert not shell.is_running()


def _gone(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    return True
