"""submit.local.attempts: what is made of an attempt's file; attempt.sh in every shell found."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from submit.local.attempts import Mark, is_alive, judge, read_mark, write_seat
from submit.local.records import CANCELLED, CLAIMED, Attempt, End, Seat
from submit.states import RunState

PROGRAM = Path(__file__).parents[3] / "submit" / "local" / "attempt.sh"
SHELLS = [
    shell.split()
    for shell in ("sh", "dash", "bash", "bash --posix", "busybox sh", "mksh")
    if shutil.which(shell.split()[0])
]
SEAT = Seat(cores=(0, 3), gpus=(1,), memory_mib=5)
ATTEMPT = Attempt(seq=1, child=2, number=1, state=CLAIMED, boot="now")


def mark(code: int | None = None) -> Mark:
    return Mark(pid=1, began="7", seat=SEAT, code=code)


@pytest.mark.parametrize(
    ("found", "alive", "boot", "forced", "state"),
    [
        (mark(0), False, "now", None, RunState.DONE),
        (mark(0), False, "later", None, RunState.DONE),  # a reboot loses no result
        (mark(3), False, "now", None, RunState.FAILED),
        (mark(143), False, "now", CANCELLED, RunState.CANCELLED),
        (mark(), True, "now", None, None),  # goes on
        (mark(), False, "now", None, RunState.LOST),
        (mark(), False, "later", None, RunState.LOST),
        (None, False, "now", None, None),  # never begun
        (None, False, "later", None, RunState.LOST),  # nobody knows
        (None, False, "now", CANCELLED, RunState.CANCELLED),
    ],
)
def test_what_has_become_of_an_attempt(
    found: Mark | None,
    alive: bool,  # noqa: FBT001 # a column of the table
    boot: str,
    forced: End | None,
    state: RunState | None,
) -> None:
    end = judge(ATTEMPT, found, alive=alive, boot=boot, forced=forced)
    assert (end and end.state) == state
    assert end is None or end.code == (found and found.code)


def run(shell: list[str], path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    words = [*shell, str(PROGRAM), str(path), write_seat(SEAT), *command]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_an_attempt_tells_who_it_is_and_how_it_ended(shell: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mark"
    done = run(shell, path, "sh", "-c", f"cat {path}; exit 37")
    found = read_mark(path)
    assert found is not None
    assert (done.returncode, found.code, found.seat) == (37, 37, SEAT)
    pid, began, seat = done.stdout.split()
    assert (int(pid), began, seat) == (found.pid, found.began, "0,3/1/5")


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_what_was_begun_is_not_begun_again(shell: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mark"
    path.write_text("1 2 0/0/0\n")
    done = run(shell, path, "echo", "started")
    assert (done.returncode, done.stdout) == (125, "")
    assert path.read_text() == "1 2 0/0/0\n"


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_without_its_folder_nothing_begins(shell: list[str], tmp_path: Path) -> None:
    """An attempt of a task that is over, whose process comes too late."""
    done = run(shell, tmp_path / "gone" / "mark", "echo", "started")
    assert (done.returncode, done.stdout) == (125, "")


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_signal_is_the_commands_to_answer(shell: list[str], tmp_path: Path) -> None:
    """The whole group gets SIGTERM: the command cleans up and ends, and its status is kept."""
    path = tmp_path / "mark"
    ready = tmp_path / "ready"
    command = f"trap 'exit 9' TERM; : >{ready}; while :; do sleep 0.05; done"
    words = [*shell, str(PROGRAM), str(path), write_seat(SEAT), "sh", "-c", command]
    with subprocess.Popen(words, start_new_session=True) as process:
        while not ready.exists():
            pass
        found = read_mark(path)
        assert found is not None
        assert is_alive(found.pid, found.began)
        assert not is_alive(found.pid, found.began + "0"), "a later process of that id"
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait() == 9
    assert not is_alive(found.pid, found.began)
    ended = read_mark(path)
    assert ended is not None
    assert ended.code == 9


def test_a_file_whose_writer_died_is_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    assert read_mark(path) is None
    for text in ("", "12", "12 3"):
        path.write_text(text)
        assert read_mark(path) is None
    path.write_text("12 34 0/0/0\n1")  # a status of which more may come
    found = read_mark(path)
    assert found is not None
    assert (found.pid, found.began, found.code) == (12, "34", None)
