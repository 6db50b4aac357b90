"""The own machine as its users see it: real processes, a real supervisor, and both killed."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from submit import api
from submit.errors import Refused
from submit.experiment import Axis, Resources
from submit.fleet import LOCAL
from submit.runs import Selection
from submit.states import RunState

from .conftest import Home

pytestmark = pytest.mark.slow
DONE, FAILED, LOST, CANCELLED = "done", "failed", "lost", "cancelled"


def test_runs_get_what_they_get_on_aws(home: Home) -> None:
    experiment = home.experiment(
        'echo "$RUNFLEET_RUN $RUNFLEET_SEED $RUNFLEET_PARAM_LR $1 $AWS_BATCH_JOB_ARRAY_INDEX '
        '$WANDB_RUN_ID $MORE $(pwd)"; exit "$RUNFLEET_SEED"',
        runs=2,
        axes=(Axis(names=("lr",), rows=(("it's $HOME",), ("b",))),),
        environment=(("MORE", "more"),),
    )
    kept = home.send(experiment)
    assert home.over(kept) == {DONE: 2, FAILED: 2}
    assert home.printed(kept, 0) == [f"0 0 it's $HOME --lr 0 {kept.id}-0 more {home.path}"]
    assert [run.exit_code for run in home.runs(kept)] == [0, 1, 0, 1]
    assert home.starts() == [0, 1, 2, 3]
    again = home.send(experiment)
    assert again.id == kept.id
    assert home.starts() == [0, 1, 2, 3], "the same line again starts nothing"


def test_no_two_runs_have_a_core_at_the_same_time(home: Home) -> None:
    script = "python3 -c 'import os; print(*os.sched_getaffinity(0))'; sleep 0.05; date +%s.%N"
    kept = [home.send(home.experiment(f"date +%s.%N; {script}; true {n}", 4)) for n in range(2)]
    spans = []
    for one in kept:
        assert home.over(one) == {DONE: 4}
        for run in range(4):
            began, core, ended = home.printed(one, run)
            spans.append((int(core), float(began), float(ended)))
    spans.sort()
    for (core, _, ended), (next_core, began, _) in pairwise(spans):
        assert core != next_core or ended <= began
    assert {core for core, *_ in spans} <= os.sched_getaffinity(0)


def test_workers_are_the_most_that_run_at_once(home: Home) -> None:
    kept = home.send(home.experiment("date +%s.%N; sleep 0.05; date +%s.%N", 3, workers=1))
    assert home.over(kept) == {DONE: 3}
    times = [float(line) for run in range(3) for line in home.printed(kept, run)]
    assert times == sorted(times)


@pytest.mark.parametrize("seed", range(2))
def test_a_supervisor_killed_at_any_moment_loses_nothing_and_starts_nothing_twice(
    home: Home, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 # not for secrets
    count = 40
    kept = home.send(home.experiment("sleep 0.02; exit $((RUNFLEET_RUN % 7 == 3))", count))
    kills = 0
    while not (progress := home.look(kept)).is_over:
        time.sleep(chance.random() * 0.15)
        home.kill_supervisor()
        kills += 1
        assert kills < 400, progress.counts
    assert kills > 1
    failed = len([run for run in range(count) if run % 7 == 3])
    assert {s.value: n for s, n in progress.counts.items()} == {
        DONE: count - failed,
        FAILED: failed,
    }
    assert home.starts() == list(range(count))
    assert all(run.attempts == 1 for run in home.runs(kept))


def test_a_result_is_known_though_nobody_was_there_to_see_it(home: Home) -> None:
    kept = home.send(home.experiment("sleep 0.3; exit 5"))
    home.until(kept, lambda progress: RunState.RUNNING in progress.counts)
    home.kill_supervisor()
    time.sleep(0.5)
    assert home.supervisor() is None
    assert home.over(kept) == {FAILED: 1}
    assert home.runs(kept)[0].exit_code == 5
    assert home.starts() == [0]


def test_what_is_killed_with_its_supervisor_is_lost_and_can_be_retried(home: Home) -> None:
    first = home.path / "first"
    kept = home.send(home.experiment(f"test -e {first} || sleep 60; exit 0", 1))
    home.until(kept, lambda _: bool(home.starts()))
    first.touch()
    home.kill_supervisor()
    home.close()
    assert home.over(kept) == {LOST: 1}
    assert home.starts() == [0], "nobody asked for another try"
    with home.session() as session:
        done = api.retry(session, kept, states={RunState.LOST})
        assert done.runs == 1
    assert home.over(kept) == {DONE: 1}
    assert home.starts() == [0, 0]


def test_a_lost_run_is_not_tried_again_unasked_whoever_asks(home: Home) -> None:
    """In Python as on the command line."""
    experiment = api.Experiment(command=("true",))
    with home.session() as session:
        one, three = (
            api.plan(session, each, LOCAL).submission
            for each in (experiment, api.Experiment(command=("true",), retries=3))
        )
    assert one.definition.request["retryStrategy"]["attempts"] == 1
    assert three.definition.request["retryStrategy"]["attempts"] == 4
    assert one.experiment_id != three.experiment_id


def test_a_lost_run_is_tried_again_when_that_was_asked_for(home: Home) -> None:
    first = home.path / "first"
    kept = home.send(home.experiment(f"test -e {first} || sleep 60", retries=2))
    home.until(kept, lambda _: bool(home.starts()))
    first.touch()
    home.close()
    assert home.over(kept) == {DONE: 1}
    assert home.starts() == [0, 0]
    assert home.runs(kept)[0].attempts == 2


def test_after_a_restart_of_the_machine_what_ran_is_lost_and_the_rest_goes_on(home: Home) -> None:
    stop = home.path / "stop"
    runs = home.experiment(f"test -e {stop} || sleep 60", 4, workers=1)
    kept = home.send(runs)
    home.until(kept, lambda _: bool(home.starts()))
    stop.touch()
    home.close()
    store = sqlite3.connect(home.folder / "store.sqlite3")
    with store:
        changed = store.execute("update attempts set boot = 'before'").rowcount
    store.close()
    states = home.over(kept)
    # What was claimed ahead may have been started, for all that is known.
    assert states == {LOST: changed, DONE: 4 - changed}
    assert 1 <= changed <= 2
    assert sorted(set(home.starts())) == home.starts()
    reasons = {run.reason for run in home.runs(kept) if run.state is RunState.LOST}
    assert reasons == {"the machine was restarted"}


def test_a_supervisor_that_is_told_to_go_gives_back_what_it_has_not_begun(home: Home) -> None:
    kept = home.send(home.experiment("sleep 0.3", 4, workers=1))
    home.until(kept, lambda _: bool(home.starts()))
    home.kill_supervisor(signal.SIGTERM)
    store = sqlite3.connect(home.folder / "store.sqlite3")
    claimed = store.execute("select count(*) from attempts where state = 'claimed'").fetchone()
    store.close()
    assert claimed == (0,)
    assert home.over(kept) == {DONE: 4}
    assert home.starts() == [0, 1, 2, 3]


def test_two_that_submit_at_once_have_one_supervisor(home: Home) -> None:
    words = ("run", "--queue", "local", "--seeds", "3", "--", "sh", "-c")
    say = f"echo $RUNFLEET_RUN >>{home.started}"
    both = [home.command(*words, say + end) for end in ("", "; true")]
    both.append(home.command(*words, say))  # and one of the two once more
    for one in both:
        out, _ = one.communicate(timeout=60)
        assert one.returncode == 0, out
    with home.session() as session:
        found = api.experiments(session)
    assert len(found) == 2
    for kept in found:
        assert home.over(kept) == {DONE: 3}
    assert home.starts() == [0, 0, 1, 1, 2, 2]


def test_it_goes_on_when_the_terminal_is_closed(home: Home) -> None:
    go = home.path / "go"
    script = f"while ! test -e {go}; do sleep 0.05; done; echo 1 >>{home.started}"
    words = ("run", "--queue", "local", "--watch", "--", "sh", "-c", script)
    with home.command(*words, start_new_session=True) as command:
        assert command.stdout is not None
        while "running" not in command.stdout.readline():
            assert command.poll() is None
        os.killpg(command.pid, signal.SIGHUP)
        command.wait()
    go.touch()
    with home.session() as session:
        kept = api.find(session, "latest")
    assert home.over(kept) == {DONE: 1}
    assert home.starts() == [1]


def test_what_is_in_the_foreground_ends_with_its_command(home: Home) -> None:
    words = ("run", "--queue", "local", "--foreground", "--seeds", "9", "--", "sh", "-c")
    with home.command(*words, "sleep 60") as command:
        assert command.stdout is not None
        while "waiting" not in (line := command.stdout.readline()):
            assert line, "it says no more"
        command.kill()
    with home.session() as session:
        kept = api.find(session, "latest")
    assert home.over(kept) == {CANCELLED: 9}


def test_the_foregrounds_exit_code_tells_of_failed_runs(home: Home) -> None:
    words = ("run", "--queue", "local", "--foreground", "--seeds", "2", "--", "sh", "-c")
    for script, code in (("exit 0", 0), ("exit $((RUNFLEET_SEED == 2))", 1)):
        command = home.command(*words, script)
        out, _ = command.communicate(timeout=60)
        assert command.returncode == code, out


def test_a_cancelled_experiment_ends_and_starts_nothing_more(home: Home) -> None:
    kept = home.send(home.experiment("sleep 60", 5))
    home.until(kept, lambda _: bool(home.starts()))
    with home.session() as session:
        api.cancel(session, kept)
    assert home.over(kept) == {CANCELLED: 5}
    assert home.marks() == []
    begun = home.starts()
    assert len(begun) <= len(os.sched_getaffinity(0))


def test_single_runs_can_be_cancelled(home: Home) -> None:
    go = home.path / "go"
    kept = home.send(home.experiment(f"while ! test -e {go}; do sleep 0.05; done", 5, workers=1))
    home.until(kept, lambda _: bool(home.starts()))
    with home.session() as session:
        api.cancel(session, kept, Selection(runs=(0, 1, 3)))
    go.touch()
    assert home.over(kept) == {DONE: 2, CANCELLED: 3}
    assert home.starts() == [0, 2, 4]


def test_a_run_that_takes_too_long_is_ended(home: Home) -> None:
    """Its children with it, though it is asked first and may clean up."""
    script = "trap 'echo cleaned; exit 1' TERM; sleep 60 & wait"
    kept = home.send(home.experiment(script, timeout_s=1))
    assert home.over(kept) == {FAILED: 1}
    assert home.printed(kept) == ["cleaned"]
    assert home.runs(kept)[0].reason == "Job attempt duration exceeded timeout"
    assert home.processes() == []


def test_a_run_that_takes_too_much_memory_is_ended(home: Home) -> None:
    resources = Resources(vcpus=1, memory_mib=60)
    script = "exec python3 -c 'import time; x = bytearray(120 << 20); time.sleep(60)'"
    kept = home.send(home.experiment(script, resources=resources))
    assert home.over(kept) == {FAILED: 1}
    (run,) = home.runs(kept)
    assert (run.exit_code, run.reason[:16]) == (137, "OutOfMemoryError")


def test_secrets_lie_in_no_file(home: Home) -> None:
    """Nor does anything else of the environment that could be one; the runs have all of it."""
    value = "s3cr3t-7f2a"
    script = 'test "$MY_KEY" = s3cr3t"-"7f2a && test "$NETRC_THING" = "$MY_KEY"'
    kept = home.send(
        home.experiment(f"{script}; e=$?; sleep 0.2; exit $e", 3, secrets=("MY_KEY",), workers=1),
        MY_KEY=value,
        NETRC_THING=value,
    )
    home.until(kept, lambda _: bool(home.starts()))
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(value.encode() in line for line in lines)
    home.kill_supervisor()
    waits = home.until(kept, lambda progress: "export it" in (progress.reason or ""))
    assert waits.counts[RunState.WAITING] >= 1
    assert home.over(kept, MY_KEY=value, NETRC_THING=value) == {DONE: 3}
    files = [path for path in home.path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if value.encode() in path.read_bytes()]
    assert home.folder.stat().st_mode & 0o077 == 0


def test_a_line_without_an_end_is_shown_when_no_more_of_it_can_come(home: Home) -> None:
    go = home.path / "go"
    script = f"echo one; printf two; while ! test -e {go}; do sleep 0.05; done; printf three"
    kept = home.send(home.experiment(script))
    home.until(kept, lambda _: home.printed(kept) == ["one"])
    go.touch()
    home.over(kept)
    assert home.printed(kept) == ["one", "twothree"]
    with home.session() as session:
        lines = [line.text for _, line in api.follow(session, kept, Selection()).lines]
    assert lines == ["one", "twothree"]


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"command": ("no-such-program",)}, "no-program"),
        ({"command": ("./no-such-program",)}, "no-program"),
        ({"resources": Resources(vcpus=4096)}, "too-large"),
        ({"resources": Resources(memory_mib=1 << 30)}, "too-large"),
        ({"resources": Resources(gpus=64)}, "too-large"),
        ({"secrets": ("NOT_SET",)}, "secret-not-set"),
        ({"folder": "/no/such/folder"}, "no-folder"),
    ],
)
def test_what_could_not_run_here_is_refused_before_anything_is_made(
    home: Home, options: dict[str, object], slug: str
) -> None:
    experiment = api.Experiment(**{"command": ("true",), **options})  # type: ignore[arg-type]
    with home.session() as session, pytest.raises(Refused) as caught:
        api.plan(session, experiment, LOCAL)
    assert caught.value.slug == slug
    assert not home.folder.exists()


def test_a_program_that_is_found_in_no_run_is_named(home: Home) -> None:
    kept = home.send(
        api.Experiment(
            command=("{program}",), axes=(Axis(names=("program",), rows=(("true",), ("nope",))),)
        )
    )
    assert home.over(kept) == {DONE: 1, FAILED: 1}
    assert home.runs(kept)[1].exit_code == 127
    assert "nope" in " ".join(home.printed(kept, 1))


def test_nobody_is_waited_for_before_runs_go_here(home: Home, tmp_path: Path) -> None:
    """A home's runs are its own, and are listed at once: also those of another home's experiment,
    and those that a line was about to send when it was cut off.
    """
    slept: list[float] = []
    clock = SimpleNamespace(time=time.time, sleep=slept.append)
    other = Home(tmp_path)
    other.environ["RUNFLEET_SHARED"] = home.environ["RUNFLEET_SHARED"]
    try:
        for one in (home, other):
            for generation in range(2):
                with api.Session(environ=one.environ, cwd=home.path, clock=clock) as session:
                    experiment = home.experiment("true", generation=generation)
                    plan = api.plan(session, experiment, LOCAL)
                    kept = api.send(session, plan).kept
                    (row,) = session.ledger().rows(kept)
                    session.ledger().intend(kept, row)
                    assert api.send(session, plan).adopted == 1
                one.over(kept)
        assert sum(slept) == 0
    finally:
        other.close()
