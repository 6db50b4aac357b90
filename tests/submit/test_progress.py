"""submit.progress, submit.watching, submit.runs, submit.logs: how experiments stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from submit import api
from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Axis, Experiment
from submit.progress import Progress
from submit.runs import Selection
from submit.sending import kept_experiment
from submit.states import CANCEL_REASON, RunState

from .fake import FLEET, Clock, FakeBatch, in_chunks, session, submission

GRID = Experiment(
    command=("python", "a.py"),
    axes=(
        Axis(names=("env-id",), rows=(("A",), ("B",))),
        Axis(names=("lr",), rows=(("1",), ("2",))),
    ),
    seeds=(1, 2),
    image="i",
)
LOST = "Host EC2 (instance i-1) terminated."


class World:
    """A session on the fake, where an experiment of eight runs was sent."""

    def __init__(self, home: Path, plan: Any = None) -> None:
        self.backend = FakeBatch(Clock())
        self.session: api.Session = session(home, self.backend)
        whole = submission(GRID) if plan is None else plan
        self.kept = api.send(self.session, api.Plan(submission=whole, fleet=FLEET)).kept
        self.backend.calls.clear()

    def look(self) -> Progress:
        return api.poll(self.session, [self.kept])[0]


@pytest.fixture
def world(tmp_path: Path) -> Any:
    made = World(tmp_path)
    with made.session:
        yield made


def states(*statuses: str) -> list[tuple[str, str | None]]:
    reasons = {"LOST": LOST, "CANCELLED": CANCEL_REASON}
    return [("FAILED" if status in reasons else status, reasons.get(status)) for status in statuses]


def test_one_call_however_many_runs(world: World) -> None:
    progress = world.look()
    assert world.backend.calls == ["DescribeJobs"]
    assert progress.counts == {RunState.WAITING: 8}
    assert not progress.is_over


def test_no_call_when_all_is_over(world: World) -> None:
    world.backend.end("job-0", ("SUCCEEDED", None))
    world.backend.clock.sleep(30)
    first = world.look()
    world.backend.calls.clear()
    again = world.look()
    assert world.backend.calls == []
    assert again == first
    assert again.is_over
    assert (again.ended_at or 0) - (again.sent_at or 0) == pytest.approx(30, abs=0.01)


def test_at_its_end_an_array_tells_why_each_run_failed(world: World) -> None:
    ended = states("SUCCEEDED", "FAILED", "LOST", "LOST", "CANCELLED", "FAILED", "SUCCEEDED")
    world.backend.end("job-0", *ended, ("SUCCEEDED", None))
    progress = world.look()
    assert progress.counts == {
        RunState.DONE: 3,
        RunState.FAILED: 2,
        RunState.LOST: 2,
        RunState.CANCELLED: 1,
    }
    assert progress.bad == 5
    assert world.backend.calls == ["DescribeJobs", "ListJobs", "DescribeJobs"]


def test_what_batch_has_forgotten_is_unknown_and_what_ended_stays(world: World) -> None:
    world.backend.end("job-0", *states(*["SUCCEEDED"] * 3, *["RUNNING"] * 5))
    world.look()
    world.backend.forgotten.add("job-0")
    world.backend.clock.sleep(61)
    progress = world.look()
    assert progress.counts == {RunState.DONE: 3, RunState.UNKNOWN: 5}
    assert progress.is_stuck
    assert not progress.is_over


def test_a_job_that_was_sent_just_now_is_not_forgotten(world: World) -> None:
    """DescribeJobs may not know a job for a moment."""
    world.backend.forgotten.add("job-0")
    assert world.look().counts == {RunState.WAITING: 8}


def test_what_was_not_sent_is_told(tmp_path: Path) -> None:
    plan = in_chunks(GRID, "0-2", "3-5", "6-7")
    backend = FakeBatch(Clock())
    backend.faults = ["", "refuse"]
    with session(tmp_path, backend) as at:
        with pytest.raises(ServiceFailed):
            api.send(at, api.Plan(submission=plan, fleet=FLEET))
        progress = api.poll(at, api.experiments(at))[0]
        assert progress.counts == {RunState.UNSENT: 5, RunState.WAITING: 3}
        views = api.runs(at, progress)
    assert [view.state for view in views] == [RunState.WAITING] * 3 + [RunState.UNSENT] * 5


def test_a_hundred_experiments_take_one_call(tmp_path: Path) -> None:
    backend = FakeBatch(Clock())
    with session(tmp_path, backend) as at:
        for number in range(100):
            one = Experiment(command=("x", str(number)), image="i")
            api.send(at, api.Plan(submission=submission(one), fleet=FLEET))
        backend.calls.clear()
        found = api.poll(at, api.experiments(at))
    assert backend.calls == ["DescribeJobs"]
    assert len(found) == 100


def test_wait_sees_each_look_and_ends_with_the_last_run(world: World) -> None:
    seen: list[dict[RunState, int]] = []

    def see(progress: Progress) -> None:
        seen.append(progress.counts)
        ended = len(seen)
        world.backend.end(
            "job-0", *states(*["SUCCEEDED"] * min(8, ended * 4), *["RUNNING"] * (8 - ended * 4))
        )

    end = api.wait(world.session, world.kept, see=see)
    assert end.is_over
    assert seen == [
        {RunState.WAITING: 8},
        {RunState.RUNNING: 4, RunState.DONE: 4},
        {RunState.DONE: 8},
    ]


def test_wait_bears_a_network_that_fails_for_a_while(world: World) -> None:
    told: list[ServiceFailed] = []
    poll = world.backend.poll
    failures = [ServiceFailed("unreachable", "no network")] * 3

    def shaky(ids: Any) -> Any:
        if failures:
            raise failures.pop()
        world.backend.end("job-0", ("SUCCEEDED", None))
        return poll(ids)

    world.backend.poll = shaky  # type: ignore[method-assign] # shakier
    assert api.wait(world.session, world.kept, trouble=told.append).is_over
    assert len(told) == 3


@pytest.mark.parametrize(("slug", "times"), [("expired", 1), ("unreachable", 6)])
def test_wait_gives_up(world: World, slug: str, times: int) -> None:
    asked = []

    def down(ids: Any) -> Any:
        asked.append(ids)
        raise ServiceFailed(slug, "down")

    world.backend.poll = down  # type: ignore[method-assign] # down
    with pytest.raises(ServiceFailed, match="down"):
        api.wait(world.session, world.kept)
    assert len(asked) == times


@pytest.mark.parametrize(
    ("selection", "indexes"),
    [
        (Selection(), list(range(8))),
        (Selection(runs=(5, 2)), [2, 5]),
        (Selection(seeds=(2,)), [1, 3, 5, 7]),
        (Selection(where=(("env-id", ("B",)),)), [4, 5, 6, 7]),
        (Selection(where=(("env-id", ("B",)), ("lr", ("2", "1"))), seeds=(1,)), [4, 6]),
        (Selection(runs=(0,), seeds=(2,)), []),
    ],
)
def test_selection(world: World, selection: Selection, indexes: list[int]) -> None:
    views = api.runs(world.session, world.look(), selection)
    assert [view.run.index for view in views] == indexes


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(runs=(8,)), "there is no run 8: they are 0 to 7"),
        (Selection(seeds=(3,)), r"no run has the seed 3 \(seeds: 1, 2\)"),
        (Selection(where=(("env", ("A",)),)), r"no parameter 'env' \(there is: env-id\)"),
        (Selection(where=(("lr", ("3",)),)), r"no run has lr=3 \(there is: 1, 2\)"),
    ],
)
def test_a_selection_of_nothing(world: World, selection: Selection, said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        api.runs(world.session, world.look(), selection)


def test_failed_runs_of_several_jobs(tmp_path: Path) -> None:
    made = World(tmp_path, in_chunks(GRID, "0-2", "3-5", "6-7"))
    made.backend.end("job-0", *states("SUCCEEDED", "SUCCEEDED", "FAILED"))
    made.backend.end("job-2", *states("FAILED", "SUCCEEDED"))
    with made.session:
        progress = made.look()
        views = api.failed_runs(made.session, progress, 10)
        assert [view.run.index for view in views] == [2, 6]
        assert [view.run.index for view in api.failed_runs(made.session, progress, 1)] == [2]


def test_logs_of_all_attempts_or_the_last_lines_of_the_last(world: World) -> None:
    world.backend.jobs["job-0"].attempts = 3
    world.backend.logs = {
        "job-0/4/0": ["a", "b"],
        "job-0/4/1": [str(number) for number in range(10)],
    }
    progress = world.look()
    (view,) = api.runs(world.session, progress, Selection(runs=(4,)))

    def read(tail: int | None) -> list[str]:
        return [line.text for line in api.log(world.session, progress, view, tail)]

    assert read(None) == ["a", "b", *map(str, range(10))]
    assert read(3) == ["7", "8", "9"]


def test_follow_gives_each_line_once_until_the_end(world: World) -> None:
    backend = world.backend
    backend.logs = {"job-0/0/0": ["0: first"]}
    sleep = backend.clock.sleep
    slept: list[float] = []

    def goes_on(seconds: float, /) -> None:
        sleep(seconds)
        slept.append(seconds)
        if len(slept) == 1:
            backend.logs["job-0/0/0"] += [f"0: {number}" for number in range(7)]
            backend.logs["job-0/1/0"] = ["1: first"]
        if len(slept) == 2:
            backend.end("job-0", ("SUCCEEDED", None))
        if len(slept) == 3:
            backend.logs["job-0/1/0"] += ["1: late"]

    backend.clock.sleep = goes_on  # type: ignore[method-assign] # the world goes on
    followed = api.follow(world.session, world.kept, Selection(runs=(0, 1)))
    lines = [(view.run.index, line.text) for view, line in followed.lines]
    assert lines == [
        (0, "0: first"),
        *((0, f"0: {number}") for number in range(7)),
        (1, "1: first"),
        (1, "1: late"),
    ]


def test_follow_is_refused_for_more_than_the_service_bears(tmp_path: Path) -> None:
    backend = FakeBatch(Clock())
    many = Experiment(command=("x",), seeds=tuple(range(51)), image="i")
    with session(tmp_path, backend) as at:
        kept = api.send(at, api.Plan(submission=submission(many), fleet=FLEET)).kept
        with pytest.raises(WrongUse, match="51 runs; 50 can be followed"):
            api.follow(at, kept, Selection())


def test_results_take_two_calls_for_a_hundred_runs(world: World) -> None:
    world.backend.logs = {
        "job-0/0/0": ['runfleet-metrics {"return": 5}', "other"],
        "job-0/7/0": ["runfleet-metrics"],
    }
    progress = world.look()
    world.backend.calls.clear()
    outcomes = api.results(world.session, progress)
    assert [(one.run.index, one.metrics) for one in outcomes] == [(0, {"return": 5.0})]
    assert world.backend.calls == ["DescribeJobs", "FilterLogEvents"]


def test_cancel_takes_one_call_and_leaves_what_is_over(tmp_path: Path) -> None:
    made = World(tmp_path, in_chunks(GRID, "0-2", "3-5", "6-7"))
    made.backend.end("job-1", ("SUCCEEDED", None))
    with made.session:
        stopped = api.cancel(made.session, made.kept)
        assert (stopped.runs, stopped.left) == (5, 0)
        assert stopped.before.counts == {RunState.WAITING: 5, RunState.DONE: 3}
        assert made.backend.calls.count("TerminateJobs") == 1
        assert made.look().counts == {RunState.DONE: 3, RunState.CANCELLED: 5}


def test_again_is_the_first_generation_that_was_not_sent(world: World) -> None:
    plan = api.Plan(submission=submission(GRID), fleet=FLEET)
    for generation in (1, 2):
        again = api.next_generation(world.session, plan)
        assert again.generation == generation
        kept = kept_experiment(submission(again), FLEET.log_group, 0.0)
        assert kept.id != world.kept.id
        api.send(world.session, api.Plan(submission=submission(again), fleet=FLEET))
