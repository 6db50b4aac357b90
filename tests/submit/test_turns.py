"""Turns to send on one machine: one at a time for an experiment, and when it was."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from submit.turns import WAITING, Turns

HOLD = """
import sys
from submit.turns import Turns
with Turns(sys.argv[1]).take("e", print) as turn:
    turn.mark(7.5)
    print("has it", flush=True)
    input()
"""


def quiet(_: str) -> None:
    """Says nothing to anybody."""


def open_files() -> int:
    """How many descriptors this process has, one for counting among them."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_turn_tells_the_next_when_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "shared")
    with Turns(path).take("e", quiet) as first:
        assert first.last == 0
        first.mark(12.25)
    with Turns(path).take("e", quiet) as second, Turns(path).take("other", quiet) as other:
        assert (second.last, other.last) == (12.25, 0)


def test_many_at_once_by_one_are_one_descriptor(tmp_path: Path) -> None:
    """As of somebody who stops thousands of experiments."""
    turns = Turns(str(tmp_path / "shared"))
    before = open_files()
    with turns.take("a", quiet), turns.take("b", quiet):
        assert open_files() == before + 1
    assert open_files() == before


def test_the_next_waits_until_it_is_over(tmp_path: Path) -> None:
    path = str(tmp_path / "shared")
    told: list[str] = []
    waits, had = threading.Event(), threading.Event()

    def note(text: str) -> None:
        told.append(text)
        waits.set()

    def next_one() -> None:
        with Turns(path).take("e", note) as turn:
            told.append(str(turn.last))
            had.set()

    with Turns(path).take("e", quiet) as turn:
        thread = threading.Thread(target=next_one)
        thread.start()
        assert waits.wait(10)
        assert not had.is_set()
        turn.mark(3.0)
    thread.join(10)
    assert told == [WAITING, "3.0"]


@pytest.mark.slow
def test_who_is_killed_has_it_no_longer_and_left_the_time(tmp_path: Path) -> None:
    path = str(tmp_path / "shared")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "has it\n"
        other.kill()
    told: list[str] = []
    with Turns(path).take("e", told.append) as turn:
        assert (turn.last, told) == (7.5, [])


def test_without_the_file_it_goes_on_and_says_so(tmp_path: Path) -> None:
    told: list[str] = []
    with Turns(str(tmp_path / "no" / "folder")).take("e", told.append) as turn:
        turn.mark(1.0)
    assert len(told) == 1
    assert "No such file" in told[0]


def test_what_others_have_written_into_the_file_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.write_bytes(os.urandom(1000))
    with Turns(str(path)).take("e", quiet) as turn:
        turn.mark(2.0)
    with Turns(str(path)).take("e", quiet) as turn:
        assert turn.last == 2.0
