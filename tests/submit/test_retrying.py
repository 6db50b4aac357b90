"""submit.retrying: runs that failed or were lost are sent again, each once."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from submit import api
from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Experiment
from submit.ranges import decode_ranges
from submit.records import Fallback
from submit.retrying import Retry, fall_back
from submit.runs import Selection
from submit.standing import LOOK_AFTER_S
from submit.states import CANCEL_REASON, RunState

from .fake import FLEET, Clock, FakeBatch, Killed, in_chunks, session, submission

TEN = Experiment(command=("x",), seeds=tuple(range(10)), image="i")
SPOT = "c6g-medium-spot"
BUG, LOST = "Essential container exited", "Host EC2 (instance i-1) terminated."
STATES: dict[str, tuple[str, str | None]] = {
    "d": ("SUCCEEDED", None),
    "f": ("FAILED", BUG),
    "l": ("FAILED", LOST),
    "c": ("FAILED", CANCEL_REASON),
    "r": ("RUNNING", None),
}


class World:
    """A machine, and an experiment that was sent from it."""

    def __init__(self, home: Path, plan: Any = None, fallback: Fallback | None = None) -> None:
        self.home = home
        self.backend = FakeBatch(Clock())
        self.plan = api.Plan(
            submission=plan or submission(TEN, SPOT), fleet=FLEET, fallback=fallback
        )
        with self.session() as at:
            self.kept = api.send(at, self.plan).kept
        self.backend.calls.clear()

    def session(self, machine: str = "here") -> api.Session:
        made: api.Session = session(self.home / machine, self.backend)
        made.fleet, made.loaded = "given", FLEET
        return made

    def end(self, job_id: str, letters: str) -> None:
        self.backend.end(job_id, *[STATES[letter] for letter in letters])

    def retry(self, selection: Selection | None = None, **more: Any) -> Retry:
        with self.session() as at:
            return api.retry(at, api.find(at, self.kept.id), selection, **more)

    def counts(self) -> dict[RunState, int]:
        with self.session() as at:
            return api.poll(at, [self.kept])[0].counts

    def runs(self, job_id: str) -> list[int]:
        return list(decode_ranges(self.backend.jobs[job_id].runs))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_failed_or_was_lost_is_sent_again_in_one_job(world: World) -> None:
    world.end("job-0", "dfldcrdfll")
    done = world.retry()
    assert done.queues == {SPOT: 5}
    assert world.runs("job-1") == [1, 2, 7, 8, 9]
    job = world.backend.jobs["job-1"]
    assert job.name.startswith(f"{world.kept.id}-1-0")
    assert world.counts() == {
        RunState.WAITING: 5,
        RunState.RUNNING: 1,
        RunState.DONE: 3,
        RunState.CANCELLED: 1,
    }
    assert world.retry().runs == 0
    world.end("job-1", "dfddd")
    assert world.retry().queues == {SPOT: 1}
    assert world.runs("job-2") == [2]


@pytest.mark.parametrize(
    ("selection", "states", "runs"),
    [
        (Selection(), {RunState.FAILED}, [1, 7]),
        (Selection(), {RunState.LOST}, [2, 8, 9]),
        (Selection(), {RunState.CANCELLED}, [4]),
        (Selection(seeds=(7, 8, 0)), (), [7, 8]),
        (Selection(runs=(0, 3)), (), []),
    ],
)
def test_only_those_that_were_chosen(
    world: World, selection: Selection, states: Any, runs: list[int]
) -> None:
    world.end("job-0", "dfldcddfll")
    assert world.retry(selection, states=states).runs == len(runs)
    assert [world.runs(job) for job in list(world.backend.jobs)[1:]] == ([runs] if runs else [])


def test_137_scattered_failures_of_10000_are_one_job_with_few_calls(tmp_path: Path) -> None:
    many = Experiment(command=("x",), seeds=tuple(range(10_000)), image="i")
    world = World(tmp_path, submission(many, SPOT))
    bad = sorted(random.Random(5).sample(range(10_000), 137))  # noqa: S311 # not a secret
    world.end("job-0", "".join("f" if n in bad else "d" for n in range(10_000)))
    world.counts()
    world.backend.calls.clear()
    assert world.retry().runs == 137
    assert world.backend.calls.count("SubmitJob") == 1
    assert world.backend.calls.count("ListJobs") == 2 + 1
    assert world.runs("job-1") == bad
    world.counts()
    world.backend.calls.clear()
    assert world.counts() == {RunState.WAITING: 137, RunState.DONE: 9_863}


def test_a_retried_run_has_its_tries_losses_and_logs_from_all_its_jobs(world: World) -> None:
    world.backend.jobs["job-0"].attempts = 4
    world.end("job-0", "dddddddddl")
    world.retry(queue="c6g-medium")
    assert world.backend.jobs["job-1"].queue.endswith("rl-c6g-medium")
    world.backend.jobs["job-1"].attempts = 1
    world.end("job-1", "f")
    with world.session() as at:
        progress = api.poll(at, [world.kept])[0]
        (view,) = api.runs(at, progress, Selection(runs=(9,)))
    assert (view.state, view.attempts, view.losses, view.exit_code) == (RunState.FAILED, 5, 4, 1)
    assert view.streams == (*(f"job-0/9/{n}" for n in range(4)), "job-1/0/0")
    assert view.run.wandb_run_id == f"{world.kept.id}-9"
    assert progress.counts == {RunState.DONE: 9, RunState.FAILED: 1}
    assert (progress.tries, progress.losses) == (41, 4)


def test_each_goes_back_to_the_queue_where_it_was_last(world: World) -> None:
    world.end("job-0", "ddddddddll")
    world.retry(Selection(runs=(9,)), queue="c6g-medium")
    world.end("job-1", "f")
    assert world.retry().queues == {SPOT: 1, "c6g-medium": 1}
    assert len(world.backend.jobs) == 4


@pytest.mark.parametrize("fault", ["dies before", "dies after", "lost", "reset", "throttle"])
def test_cut_off_anywhere_the_same_line_goes_on(world: World, fault: str) -> None:
    world.end("job-0", "dddddfffff")
    world.backend.faults = [fault]
    try:
        first = world.retry().runs
    except Killed:
        first = 0
    second = world.retry().runs
    assert len(world.backend.jobs) == 2
    assert world.runs("job-1") == [5, 6, 7, 8, 9]
    assert first + second == (0 if fault == "dies after" else 5)
    assert world.counts() == {RunState.WAITING: 5, RunState.DONE: 5}


def test_a_retry_that_was_not_sent_leaves_the_runs_as_they_were(world: World) -> None:
    world.end("job-0", "dddddfffff")
    world.backend.faults = ["dies before"]
    with pytest.raises(Killed):
        world.retry()
    assert world.counts() == {RunState.DONE: 5, RunState.FAILED: 5}
    world.backend.faults = ["refuse"]
    with pytest.raises(ServiceFailed, match="nothing was sent"):
        world.retry()
    assert world.counts() == {RunState.DONE: 5, RunState.FAILED: 5}
    assert len(world.backend.jobs) == 1


def test_two_at_a_time_send_once(world: World) -> None:
    world.end("job-0", "dddddfffff")
    entered, go = threading.Event(), threading.Event()
    define = world.backend.definitions

    def slow(*args: Any) -> Any:
        entered.set()
        assert go.wait(10)
        return define(*args)

    world.backend.definitions = slow  # type: ignore[method-assign] # slower
    sent: list[int] = []
    threads = [threading.Thread(target=lambda: sent.append(world.retry().runs)) for _ in range(2)]
    threads[0].start()
    assert entered.wait(10)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join()
    assert sorted(sent) == [0, 5]
    assert len(world.backend.jobs) == 2


def test_another_machine_finds_what_was_sent_again(world: World) -> None:
    """On whatever queue: by the same `submit run`, and before its own retry."""
    world.end("job-0", "ddddddddff")
    with world.session("there") as there:
        assert api.send(there, world.plan).adopted == 1
        api.poll(there, [world.kept])
    world.retry(Selection(runs=(8,)), queue="c6g-medium")
    with world.session("there") as there:
        assert api.retry(there, world.kept).queues == {SPOT: 1}
        found = api.poll(there, [world.kept])[0]
        assert [(row.number, row.runs, row.queue_name) for row in found.rows] == [
            (0, "0-9", SPOT),
            (1, "8", "c6g-medium"),
            (2, "9", SPOT),
        ]
        assert found.counts == {RunState.WAITING: 2, RunState.DONE: 8}
    with world.session("third") as third:
        assert api.send(third, world.plan).adopted == 1
        assert api.poll(third, [world.kept])[0].counts == {RunState.WAITING: 2, RunState.DONE: 8}
        assert api.retry(third, world.kept).runs == 0
    assert world.retry().runs == 0
    assert len(world.backend.jobs) == 3


@pytest.mark.parametrize("described_after", [0.4, 5.0, 20.0])
def test_what_is_listed_and_not_described_yet_is_no_room_for_others(
    world: World, described_after: float
) -> None:
    """Nobody sends it again while it may be; later than that, not under its number."""
    with world.session("there") as there:
        api.send(there, world.plan)
    world.backend.clock.sleep(60)
    world.end("job-0", "ddddddddff")
    world.retry()
    world.backend.described_after = described_after
    with world.session("there") as there:
        done = api.retry(there, world.kept)
        assert done.runs == (0 if described_after <= sum(LOOK_AFTER_S) else 2)
    names = world.backend.names()
    assert len(set(names)) == len(names)


def test_a_job_of_others_under_the_name_of_ours_is_seen_as_what_it_is(tmp_path: Path) -> None:
    """Here a retry was cut off before it was sent, and another machine took the same number."""
    world = World(tmp_path)
    with world.session("there") as there:
        api.send(there, world.plan)
    world.end("job-0", "dddddddfff")
    world.backend.faults = ["dies before"]
    with pytest.raises(Killed):
        world.retry(Selection(runs=(7,)))
    with world.session("there") as there:
        api.retry(there, world.kept, Selection(runs=(8, 9)))
    with world.session() as at:
        (found,) = api.poll(at, [world.kept])
    assert [(row.number, row.runs, row.size) for row in found.rows] == [
        (0, "0-9", 10),
        (1, "8-9", 2),
    ]
    assert found.counts == {RunState.DONE: 7, RunState.FAILED: 1, RunState.WAITING: 2}
    assert world.retry().runs == 1


def test_the_fallback_goes_to_the_queues_that_there_are(tmp_path: Path) -> None:
    world = World(tmp_path, fallback=Fallback(queue="c6g-medium", after=1))
    world.end("job-0", "dddddddddl")
    gone = msgspec.structs.replace(FLEET.queues["c6g-medium"], arn="arn:gone")
    stale = msgspec.structs.replace(FLEET, queues=FLEET.queues | {"c6g-medium": gone})
    world.backend.faults = ["refuse"]
    told: list[str] = []
    with world.session() as at:
        (found,) = api.poll(at, [world.kept])
        assert fall_back(at, found, lambda _: stale, lambda _kept, _fleet: FLEET, told.append)
    assert world.backend.jobs["job-1"].queue == FLEET.queues["c6g-medium"].arn
    assert told[0] == "the queues of rl are others now; sending to these"


def test_what_was_lost_goes_to_the_fallback_when_it_is_seen(tmp_path: Path) -> None:
    fallback = Fallback(queue="c6g-medium", after=2)
    plan = api.Plan
    with session(tmp_path / "plan", FakeBatch(Clock())) as at:
        at.fleet, at.loaded = "given", FLEET
        plan = api.plan(at, TEN, SPOT, fallback)
    (job,) = plan.submission.jobs
    assert job.request["retryStrategy"]["attempts"] == 2
    world = World(tmp_path, plan.submission, fallback)
    world.end("job-0", "rrrrrrrrlf")
    told: list[str] = []
    with world.session() as at:
        (found,) = api.look(at, api.experiments(at), told.append)
        assert found.counts == {RunState.WAITING: 1, RunState.RUNNING: 8, RunState.FAILED: 1}
        assert world.runs("job-1") == [8]
        assert world.backend.jobs["job-1"].queue.endswith("rl-c6g-medium")
        assert told == [f"1 of {world.kept.id}, having lost their machines, went on to c6g-medium"]
        # There is no further fallback.
        world.end("job-1", "l")
        (found,) = api.look(at, api.experiments(at), told.append)
        assert found.counts[RunState.LOST] == 1
        # What is sent again by hand goes where it was.
        assert api.retry(at, world.kept, states={RunState.LOST}).queues == {"c6g-medium": 1}
    assert len(told) == 1


def test_a_fallback_that_fails_is_told_and_looking_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path, fallback=Fallback(queue="c6g-medium", after=1))
    world.end("job-0", "dddddddddl")
    world.backend.faults = ["refuse"]
    told: list[str] = []
    with world.session() as at:
        (found,) = api.look(at, [world.kept], told.append)
        assert found.counts == {RunState.DONE: 9, RunState.LOST: 1}
        assert "could not go to c6g-medium" in told[0]
        assert "not ENABLED" in told[0]
        assert api.look(at, [world.kept])[0].counts == {RunState.WAITING: 1, RunState.DONE: 9}


def test_a_fallback_given_later_counts_from_then_on(world: World) -> None:
    world.end("job-0", "dddddddddl")
    again = api.Plan(
        submission=world.plan.submission,
        fleet=FLEET,
        fallback=Fallback(queue="c6g-medium", after=1),
    )
    with world.session() as at:
        assert api.send(at, again).known == 1
        assert api.look(at, api.experiments(at))[0].counts[RunState.WAITING] == 1


@pytest.mark.parametrize(
    ("queue", "said"),
    [(SPOT, "is the queue itself"), ("c6g-medum", "did you mean c6g-medium")],
)
def test_a_fallback_that_can_not_be(tmp_path: Path, queue: str, said: str) -> None:
    with session(tmp_path, FakeBatch(Clock())) as at:
        at.fleet, at.loaded = "given", FLEET
        with pytest.raises(WrongUse, match=said):
            api.plan(at, TEN, SPOT, Fallback(queue=queue, after=2))


def test_cancel_some_and_never_what_others_have_sent(tmp_path: Path) -> None:
    world = World(tmp_path, in_chunks(TEN, "0-4", "5-9"))
    with world.session() as at:
        assert api.cancel(at, world.kept, Selection(seeds=(1, 7))).runs == 2
        assert world.counts() == {RunState.WAITING: 8, RunState.CANCELLED: 2}
        assert "TerminateJobs" in world.backend.calls
        world.backend.jobs["job-1"].owner = "eve"
        stopped = api.cancel(at, world.kept)
        assert (stopped.runs, stopped.left) == (4, 4)
        assert world.counts() == {RunState.WAITING: 4, RunState.CANCELLED: 6}
        with pytest.raises(Exception, match="was sent by eve"):
            api.cancel(at, world.kept)


def test_many_experiments_are_stopped_in_one_call(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.session() as at:
        for number in range(40):
            one = Experiment(command=("x", str(number)), image="i")
            api.send(at, api.Plan(submission=submission(one), fleet=FLEET))
        world.backend.calls.clear()
        stopped = api.cancel_all(at, api.experiments(at))
    assert world.backend.calls == ["DescribeJobs", "TerminateJobs"]
    assert sum(one.runs for one in stopped) == 50


def test_removing_refuses_while_runs_go_on(world: World) -> None:
    with world.session() as at:
        with pytest.raises(Exception, match=r"10 runs of .* go on"):
            api.remove(at, world.kept)
        api.remove(at, world.kept, force=True)
        assert api.experiments(at) == []
        # The same line finds it again.
        assert api.send(at, world.plan).adopted == 1
        world.end("job-0", "d")
        api.remove(at, world.kept)
        assert api.experiments(at) == []
