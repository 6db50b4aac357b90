"""submit.sending: whatever happens, each job stands in the queue once."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from submit import api
from submit.backends import Standing
from submit.errors import ServiceFailed
from submit.experiment import Experiment, run_count
from submit.ledger import Ledger
from submit.progress import Progress
from submit.ranges import count_ranges, decode_ranges, encode_ranges
from submit.records import INTENDED, SENT, Fallback
from submit.sending import Delivery, deliver, kept_experiment
from submit.standing import LISTED_WITHIN_S, look
from submit.states import OVER, RunState, run_state
from submit.turns import Turns

from .fake import FLEET, Clock, FakeBatch, Killed, in_chunks, session, submission

ONE = Experiment(command=("python", "a.py"), seeds=(1, 2, 3), image="i", name="one")
SINGLE = Experiment(command=("python", "b.py"), seeds=(7,), image="i")
THREE_JOBS = Experiment(command=("python", "c.py"), seeds=(1, 2, 3, 4, 5), image="i")
EXPERIMENTS = (ONE, SINGLE, THREE_JOBS)
PLANS = tuple(
    api.Plan(submission=one, fleet=FLEET)
    for one in (submission(ONE), submission(SINGLE), in_chunks(THREE_JOBS, "0-1", "2-3", "4"))
)


@pytest.fixture
def backend() -> FakeBatch:
    return FakeBatch(Clock())


def send(ledger: Ledger, backend: FakeBatch, number: int = 0) -> Delivery:
    plan = PLANS[number].submission
    kept = kept_experiment(plan, FLEET.log_group, backend.clock.time())
    return deliver(plan, kept, ledger=ledger, backend=backend, clock=backend.clock)


@pytest.mark.parametrize("number", [0, 1])
def test_a_fresh_experiment_takes_three_calls(
    tmp_path: Path, backend: FakeBatch, number: int
) -> None:
    with Ledger(tmp_path) as ledger:
        delivery = send(ledger, backend, number)
    assert backend.calls == ["DescribeJobDefinitions", "RegisterJobDefinition", "SubmitJob"]
    assert (delivery.sent, delivery.adopted, delivery.known) == (1, 0, 0)


def test_the_same_again_takes_none(tmp_path: Path, backend: FakeBatch) -> None:
    with Ledger(tmp_path) as ledger:
        send(ledger, backend)
        backend.calls.clear()
        delivery = send(ledger, backend)
    assert backend.calls == []
    assert (delivery.sent, delivery.adopted, delivery.known) == (0, 0, 1)


def test_what_somebody_else_has_sent_is_adopted(tmp_path: Path, backend: FakeBatch) -> None:
    with Ledger(tmp_path / "a") as theirs:
        send(theirs, backend)
    backend.calls.clear()
    with Ledger(tmp_path / "b") as ours:
        delivery = send(ours, backend)
    assert backend.calls == ["DescribeJobDefinitions", "ListJobs", "DescribeJobs"]
    assert (delivery.sent, delivery.adopted) == (0, 1)


def test_who_was_quicker_by_a_moment_is_waited_for(tmp_path: Path, backend: FakeBatch) -> None:
    """Both have seen nothing; the definition's revision tells the second that there is a first."""
    definitions = backend.definitions
    sleep = backend.clock.sleep
    others = [Ledger(tmp_path / "b")]

    arn, _ = backend.register(PLANS[0].submission.definition)

    def nothing_yet(_name: str) -> list[Standing]:
        backend.definitions = definitions  # type: ignore[method-assign] # once
        return []

    def meanwhile(seconds: float, /) -> None:
        sleep(seconds)
        if seconds and others:
            with others.pop() as theirs:
                send(theirs, backend)

    backend.definitions = nothing_yet  # type: ignore[method-assign] # they register it behind it
    backend.register = lambda _: (arn, True)  # type: ignore[method-assign] # a second revision
    backend.clock.sleep = meanwhile  # type: ignore[method-assign] # the world goes on
    with Ledger(tmp_path / "a") as ours:
        delivery = send(ours, backend)
    assert (delivery.sent, delivery.adopted) == (0, 1)
    assert len(backend.jobs) == 1


def test_a_label_of_their_own_does_not_hide_a_job(tmp_path: Path, backend: FakeBatch) -> None:
    """The experiment's name is in the job's, and is not part of its identity."""
    other = submission(Experiment(command=ONE.command, seeds=ONE.seeds, image="i", name="mine"))
    with Ledger(tmp_path / "a") as theirs:
        send(theirs, backend)
    with Ledger(tmp_path / "b") as ours:
        kept = kept_experiment(other, FLEET.log_group, 0.0)
        delivery = deliver(other, kept, ledger=ours, backend=backend, clock=backend.clock)
    assert (delivery.sent, delivery.adopted) == (0, 1)


def test_of_two_jobs_for_the_same_runs_all_take_the_older(
    tmp_path: Path, backend: FakeBatch
) -> None:
    with Ledger(tmp_path / "a") as first:
        send(first, backend)
    (standing,) = backend.jobs.values()
    twin = type(standing)(
        job_id="job-9",
        name=standing.name,
        queue=standing.queue,
        created=standing.created + 1,
        children=[],
    )
    backend.jobs["job-9"] = twin
    with Ledger(tmp_path / "b") as second:
        kept = send(second, backend).kept
        assert [row.job_id for row in second.rows(kept)] == [standing.job_id]


@pytest.mark.parametrize("listed_after", [0.0, 0.4, 2.0, 5.9])
@pytest.mark.parametrize("fault", ["lost", "reset", "throttle"])
def test_a_fault_on_the_way(tmp_path: Path, fault: str, listed_after: float) -> None:
    """An answer that was lost is found by name, however late the job is listed."""
    backend = FakeBatch(Clock(), listed_after=listed_after)
    backend.faults = [fault]
    with Ledger(tmp_path) as ledger:
        delivery = send(ledger, backend)
        assert [row.state for row in ledger.rows(delivery.kept)] == [SENT]
    assert len(backend.jobs) == 1
    assert delivery.sent == 1


def test_throttling_is_answered_with_ever_longer_waits(tmp_path: Path, backend: FakeBatch) -> None:
    backend.faults = ["throttle"] * 4
    with Ledger(tmp_path) as ledger:
        send(ledger, backend)
    waits = [seconds for seconds in backend.clock.slept if seconds]
    assert waits == sorted(waits)
    assert len(waits) == 4


def test_a_refusal_leaves_nothing_behind(tmp_path: Path, backend: FakeBatch) -> None:
    backend.faults = ["refuse"]
    with Ledger(tmp_path) as ledger:
        with pytest.raises(ServiceFailed, match=r"(?s)not ENABLED.*nothing was sent"):
            send(ledger, backend)
        assert ledger.experiments() == []


def test_a_refusal_in_the_middle_says_what_was_sent(tmp_path: Path, backend: FakeBatch) -> None:
    backend.faults = ["", "refuse"]
    with Ledger(tmp_path) as ledger:
        with pytest.raises(ServiceFailed, match="1 of 3 jobs were sent"):
            send(ledger, backend, 2)
        assert send(ledger, backend, 2).sent == 2
    assert len(backend.jobs) == 3


def test_without_a_clear_answer_the_row_stays(tmp_path: Path, backend: FakeBatch) -> None:
    backend.faults = ["reset"] * 100
    with Ledger(tmp_path) as ledger:
        with pytest.raises(ServiceFailed, match="0 of 1 job was sent for certain"):
            send(ledger, backend)
        (kept,) = ledger.experiments()
        assert [row.state for row in ledger.rows(kept)] == [INTENDED]


def test_throttled_for_good_leaves_nothing_behind(tmp_path: Path, backend: FakeBatch) -> None:
    backend.faults = ["throttle"] * 100
    with Ledger(tmp_path) as ledger:
        with pytest.raises(ServiceFailed, match=r"(?s)slow down.*nothing was sent"):
            send(ledger, backend)
        assert ledger.experiments() == []


def test_each_try_is_looked_for_as_long_as_the_first(tmp_path: Path) -> None:
    """Killed after a second try, the next process still waits until that one must be listed."""
    backend = FakeBatch(Clock(), listed_after=1.0)
    backend.faults = ["reset", "dies after"]
    with Ledger(tmp_path) as ledger, pytest.raises(Killed):
        send(ledger, backend)
    with Ledger(tmp_path) as ledger:
        assert send(ledger, backend).adopted == 1
    assert len(backend.jobs) == 1


def test_two_at_a_time_send_once(tmp_path: Path) -> None:
    """The second waits for the first, and finds all done."""
    backend = FakeBatch(Clock())
    entered, go = threading.Event(), threading.Event()
    definitions = backend.definitions

    def slow(*args: object) -> object:
        entered.set()
        assert go.wait(10)
        return definitions(*args)  # type: ignore[arg-type] # passed on

    backend.definitions = slow  # type: ignore[method-assign,assignment] # slower
    deliveries: list[Delivery] = []

    def one() -> None:
        with Ledger(tmp_path) as ledger:
            deliveries.append(send(ledger, backend))

    threads = [threading.Thread(target=one) for _ in range(2)]
    threads[0].start()
    assert entered.wait(10)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join()
    assert len(backend.jobs) == 1
    assert sorted(delivery.sent for delivery in deliveries) == [0, 1]


@pytest.mark.parametrize("listed_after", [0.0, 0.4, 5.9])
@pytest.mark.parametrize("between_s", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("has_stood", [True, False])
def test_two_homes_of_a_machine_do_not_send_behind_each_other_s_look(
    tmp_path: Path, listed_after: float, between_s: float, *, has_stood: bool
) -> None:
    """One looks, the other sends, and the first still has what it saw before."""
    backend = FakeBatch(Clock(), listed_after=listed_after)
    plan = PLANS[2].submission
    kept = kept_experiment(plan, FLEET.log_group, backend.clock.time())
    if has_stood:
        backend.register(plan.definition)

    def homes_ledger(name: str) -> Ledger:
        return Ledger(tmp_path / name, Turns(str(tmp_path / "shared")))

    seen = look(plan, backend, backend.clock)
    with homes_ledger("a") as theirs:
        send(theirs, backend, 2)
    backend.clock.sleep(between_s)
    with homes_ledger("b") as ours:
        delivery = deliver(plan, kept, ledger=ours, backend=backend, clock=backend.clock, seen=seen)
    assert (delivery.sent, delivery.adopted, len(backend.jobs)) == (0, 3, 3)


def test_who_is_alone_on_a_machine_never_looks_twice(tmp_path: Path, backend: FakeBatch) -> None:
    """Neither after a refusal, nor between the jobs of one submission."""
    backend.faults = ["refuse", "", "refuse"]
    with Ledger(tmp_path) as ledger:
        for _ in range(2):
            with pytest.raises(ServiceFailed):
                send(ledger, backend, 2)
        send(ledger, backend, 2)
    assert [call for call in backend.calls if call != "SubmitJob"] == [
        "DescribeJobDefinitions",
        "RegisterJobDefinition",
        *("DescribeJobDefinitions", "ListJobs") * 2,
    ]
    assert sum(backend.clock.slept) == 0


@given(
    st.sets(st.integers(0, 4)).map(sorted),
    st.sets(st.integers(0, 4)).map(sorted),
    st.sets(st.integers(0, 2)),
    st.booleans(),
)
def test_what_was_cut_at_other_places_is_taken_as_it_is(
    theirs: list[int],
    ours: list[int],
    lost: set[int],
    elsewhere: bool,  # noqa: FBT001 # hypothesis passes by place
) -> None:
    """By another version; some of its jobs may not have been sent. Each run stands in one job."""
    then, now = (
        in_chunks(
            THREE_JOBS,
            *(encode_ranges(part) for part in pairwise_ranges([0, *cuts, 5])),
        )
        for cuts in (theirs, ours)
    )
    backend = FakeBatch(Clock())
    kept = kept_experiment(then, FLEET.log_group, backend.clock.time())
    part = [job for job in then.jobs if job.chunk not in lost]
    with tempfile.TemporaryDirectory() as folder:
        with Ledger(Path(folder, "a")) as ledger:
            some = msgspec.structs.replace(then, jobs=tuple(part))
            deliver(some, kept, ledger=ledger, backend=backend, clock=backend.clock)
        with Ledger(Path(folder, "b" if elsewhere else "a")) as ledger:
            deliver(now, kept, ledger=ledger, backend=backend, clock=backend.clock)
            backend.calls.clear()
            deliver(now, kept, ledger=ledger, backend=backend, clock=backend.clock)
            assert backend.calls == []
            rows = ledger.rows(kept)
    assert sorted(n for row in rows for n in decode_ranges(row.runs)) == list(range(5))
    jobs = backend.jobs.values()
    assert sorted(n for job in jobs for n in decode_ranges(job.runs)) == list(range(5))
    assert {row.job_id: row.runs for row in rows} == {job.job_id: job.runs for job in jobs}
    assert all(len(job.children) == count_ranges(job.runs) for job in jobs)
    assert len(set(backend.names())) == len(jobs)


def pairwise_ranges(cuts: list[int]) -> list[range]:
    """The pieces between those numbers."""
    return [range(a, b) for a, b in pairwise(sorted(set(cuts)))]


FAULTS = st.lists(
    st.sampled_from(["", "lost", "reset", "throttle", "refuse", "dies before", "dies after"]),
    max_size=4,
)
QUEUES = st.sampled_from([None, "c6g-medium", "c6g-medium-spot"])
ENDS = [
    ("SUCCEEDED", None),
    ("FAILED", "Essential container exited"),
    ("FAILED", "Host EC2 (instance i-1) terminated."),
    ("RUNNING", None),
]


class Sending(RuleBasedStateMachine):
    """Two homes, on one machine or on two, send, send again, die, lose answers, look and cancel;
    the service accepts what it accepts. No run may ever go on in two jobs.
    """

    @initialize(listed_after=st.sampled_from([0.0, 1.0, 5.5]), neighbours=st.booleans())
    def begin(self, listed_after: float, neighbours: bool) -> None:  # noqa: FBT001 # by name
        self.neighbours = neighbours
        self.folder = Path(tempfile.mkdtemp())
        self.backend = FakeBatch(Clock(), listed_after=listed_after)
        self.machine = 0
        self.whole: set[tuple[int, int]] = set()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def session(self, machine: int) -> api.Session:
        made: api.Session = session(self.folder / str(machine), self.backend)
        if self.neighbours:
            made.environ = {**made.environ, "RUNFLEET_SHARED": str(self.folder / "shared")}
        elif machine != self.machine:  # they have no lock in common, only the service's list
            self.backend.clock.sleep(LISTED_WITHIN_S)
            self.machine = machine
        made.fleet, made.loaded = "given", FLEET
        return made

    @rule(
        machine=st.integers(0, 1),
        number=st.integers(0, 2),
        faults=FAULTS,
        at_once=st.booleans(),
        fallback=st.booleans(),
    )
    def submit(
        self,
        machine: int,
        number: int,
        faults: list[str],
        at_once: bool,  # noqa: FBT001 # hypothesis passes by name
        fallback: bool,  # noqa: FBT001 # likewise
    ) -> None:
        before = len(self.backend.jobs)
        self.backend.faults = list(faults)
        plan = PLANS[number]
        if fallback:
            other = Fallback(queue="c6g-medium-spot", after=1)
            plan = msgspec.structs.replace(plan, fallback=other)
        with self.session(machine) as at:
            try:
                delivery = api.send(at, plan)
            except (Killed, ServiceFailed):
                if at_once:
                    self.submit(machine, number, [], at_once=False, fallback=fallback)
                return
            finally:
                self.backend.faults = []
        self.whole.add((machine, number))
        assert delivery.sent + delivery.adopted + delivery.known == len(
            PLANS[number].submission.jobs
        )
        if not {"lost", "dies after"} & set(faults):
            assert delivery.sent == len(self.backend.jobs) - before

    @rule(machine=st.integers(0, 1), which=st.integers(0, 2), faults=FAULTS, queue=QUEUES)
    def retry(self, machine: int, which: int, faults: list[str], queue: str | None) -> None:
        self.backend.faults = list(faults)
        before = len(self.backend.jobs)
        with self.session(machine) as at:
            kept = api.experiments(at)
            if not kept:
                return
            try:
                done = api.retry(at, kept[which % len(kept)], queue=queue)
            except (Killed, ServiceFailed):
                return
            finally:
                self.backend.faults = []
        sent = len(self.backend.jobs) - before
        assert sent >= len(done.deliveries)
        if not done.runs:
            assert sent == 0

    @rule(seconds=st.floats(0, 120))
    def time_passes(self, seconds: float) -> None:
        self.backend.clock.sleep(seconds)

    @rule(which=st.integers(0, 7), ends=st.lists(st.sampled_from(ENDS), min_size=1, max_size=5))
    def jobs_go_on(self, which: int, ends: list[tuple[str, str | None]]) -> None:
        jobs = [job for job in self.backend.jobs.values() if not job.over]
        if jobs:
            job = jobs[which % len(jobs)]
            for child, (status, _) in enumerate(job.children):
                if status not in {"SUCCEEDED", "FAILED"}:
                    job.children[child] = ends[child % len(ends)]

    @rule(machine=st.integers(0, 1), faults=FAULTS)
    def look(self, machine: int, faults: list[str]) -> None:
        with self.session(machine) as at:
            for progress in api.poll(at, api.experiments(at)):
                self.check(machine, progress)
            self.backend.faults = list(faults)
            try:
                found = api.look(at, api.experiments(at))
            except Killed:
                return
            finally:
                self.backend.faults = []
            for progress in found:
                self.check(machine, progress)

    @rule(machine=st.integers(0, 1))
    def cancel(self, machine: int) -> None:
        with self.session(machine) as at:
            for kept in api.experiments(at):
                api.cancel(at, kept)
                rows = at.ledger().rows(kept)
                assert all(row.state == SENT for row in rows)
                assert all(self.backend.jobs[row.job_id or ""].over for row in rows)
                self.whole -= {(machine, n) for n, e in enumerate(EXPERIMENTS) if not rows}

    def check(self, machine: int, progress: Progress) -> None:
        """The ledger's word on each run is the service's."""
        experiment = progress.kept.experiment
        assert progress.runs == run_count(experiment)
        assert sum(map(sum, (part.values() for part in progress.standing))) <= progress.runs
        if (machine, EXPERIMENTS.index(experiment)) in self.whole:
            assert RunState.UNSENT not in progress.counts
        sent = [row for row in progress.rows if row.state == SENT]
        assert all(self.backend.jobs[row.job_id or ""].name == row.name for row in sent)
        latest: dict[int, tuple[str, str | None]] = {}
        for row in sent:
            children = self.backend.jobs[row.job_id or ""].children
            latest |= dict(zip(decode_ranges(row.runs), children, strict=True))
        truth = Counter(run_state(status, why) for status, why in latest.values())
        over = all(self.backend.jobs[row.job_id or ""].over for row in sent)
        if over:  # until then, of an array only how many ended badly is known
            assert {state: progress.counts.get(state, 0) for state in OVER} == {
                state: truth[state] for state in OVER
            }

    @invariant()
    def each_job_stands_once(self) -> None:
        if hasattr(self, "backend"):
            names = self.backend.names()
            assert len(names) == len(set(names))

    @invariant()
    def no_run_goes_on_twice(self) -> None:
        if hasattr(self, "backend"):
            going: Counter[tuple[str, int]] = Counter()
            for job in self.backend.jobs.values():
                for index, (status, _) in zip(decode_ranges(job.runs), job.children, strict=True):
                    if status not in {"SUCCEEDED", "FAILED"}:
                        going[job.name.split("-")[0], index] += 1
            assert all(count == 1 for count in going.values()), going


Sending.TestCase.settings = settings(max_examples=80, stateful_step_count=12, deadline=None)
TestSending = Sending.TestCase
