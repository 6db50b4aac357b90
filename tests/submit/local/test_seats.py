"""Cores and GPUs that several supervisors share: each has one at a time, whoever is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from submit.local.records import Seat
from submit.local.seats import Seats
from submit.states import RunState

from .conftest import Home

MACHINE = Seat(cores=(0, 1, 5, 64), gpus=(0, 1), memory_mib=100)


def test_what_one_has_the_other_sees_and_can_not_take(tmp_path: Path) -> None:
    here, there = Seats(str(tmp_path / "seats")), Seats(str(tmp_path / "seats"))
    assert there.taken(MACHINE) == Seat()
    hold = here.take(Seat(cores=(64, 1), gpus=(1,), memory_mib=7))
    assert hold is not None
    for one in (here, there):
        assert one.taken(MACHINE) == Seat(cores=(1, 64), gpus=(1,))
        assert one.take(Seat(cores=(0, 1))) is None
        assert one.taken(MACHINE) == Seat(cores=(1, 64), gpus=(1,)), "nothing half taken"
    os.close(hold)
    assert there.taken(MACHINE) == Seat()


def test_a_seat_is_free_when_the_last_that_has_it_ends(tmp_path: Path) -> None:
    seats = Seats(str(tmp_path / "seats"))
    hold = seats.take(Seat(cores=(5,)))
    assert hold is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=hold) as child:
        os.close(hold)
        assert seats.taken(MACHINE).cores == (5,)
        child.kill()
        child.wait()
    assert seats.taken(MACHINE).cores == ()


def test_the_file_is_for_all_users_and_nobody_else_s_link(tmp_path: Path) -> None:
    path = tmp_path / "seats"
    before = os.umask(0o077)
    try:
        Seats(str(path)).taken(MACHINE)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o666
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "one").write_text("somebody's")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    for name in ("link", "pipe", "two", "no/such/folder"):
        with pytest.raises(OSError):  # noqa: PT011 # whichever
            Seats(str(tmp_path / name)).taken(MACHINE)


def test_a_file_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "seats"
    here, there = Seats(str(path)), Seats(str(path))
    here.taken(MACHINE)
    path.unlink()
    hold = here.take(Seat(cores=(0,)))
    assert hold is not None
    assert there.taken(MACHINE).cores == (0,)
    os.close(hold)


@pytest.mark.slow
def test_two_homes_never_use_a_core_twice(home: Home, tmp_path: Path) -> None:
    """Though one's supervisor is killed while its runs go on."""
    (tmp_path / "other").mkdir()
    other = Home(tmp_path / "other")
    other.environ["RUNFLEET_SHARED"] = home.environ["RUNFLEET_SHARED"]
    core = "python3 -c 'import os; print(*os.sched_getaffinity(0))'"
    script = f"date +%s.%N; {core}; cat; sleep 0.2; date +%s.%N"
    cores = len(os.sched_getaffinity(0))
    try:
        kept = [one.send(one.experiment(script, cores * 3)) for one in (home, other)]
        home.until(kept[0], lambda progress: RunState.RUNNING in progress.counts)
        home.kill_supervisor()
        spans = []
        for one, sent in zip((other, home), reversed(kept), strict=True):
            assert one.over(sent) == {"done": cores * 3}
            for run in range(cores * 3):
                began, where, ended = one.printed(sent, run)
                spans.append((int(where), float(began), float(ended)))
        for (where, _, ended), (another, began, _) in pairwise(sorted(spans)):
            assert where != another or ended <= began
        assert other.starts() == home.starts() == list(range(cores * 3))
    finally:
        other.close()


@pytest.mark.slow
def test_a_run_says_that_it_waits_for_others(home: Home) -> None:
    seats = Seats(home.environ["RUNFLEET_SHARED"])
    hold = seats.take(Seat(cores=tuple(os.sched_getaffinity(0))))
    assert hold is not None
    kept = home.send(home.experiment("true"))
    home.until(kept, lambda progress: "others' runs" in (progress.reason or ""))
    assert home.starts() == []
    os.close(hold)
    assert home.over(kept) == {"done": 1}


@pytest.mark.slow
def test_where_nothing_can_be_shared_it_runs_all_the_same(home: Home, tmp_path: Path) -> None:
    home.environ["RUNFLEET_SHARED"] = str(tmp_path)
    kept = home.send(home.experiment("true"))
    assert home.over(kept) == {"done": 1}
    assert "are not shared" in (home.folder / "supervisor.log").read_text()
