"""submit.history and submit.keeping: what became of single runs outlives the service's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit import api
from submit.backends import RunStatus
from submit.experiment import Experiment
from submit.history import add, decode_history, encode_history, last_word, refine
from submit.runs import Selection
from submit.states import BAD, OVER, RunState

from .fake import FLEET, Clock, FakeBatch, session, submission

LOST = "Host EC2 (instance i-1) terminated."
STATUSES = st.builds(
    RunStatus,
    child=st.integers(0, 9_999),
    state=st.sampled_from(RunState),
    reason=st.none() | st.text(),
    exit_code=st.none() | st.integers(0, 255),
    attempts=st.integers(0, 10),
    started_ms=st.none() | st.integers(0, 2**53),
    streams=st.lists(st.text()).map(tuple),
    losses=st.integers(0, 10),
    brief=st.booleans(),
)


@given(st.lists(STATUSES))
def test_what_has_ended_is_kept_as_it_was(statuses: list[RunStatus]) -> None:
    history = add({}, statuses)
    assert decode_history(encode_history(history)) == history
    assert all(status.state in OVER for status in history.values())
    assert set(history) == {one.child for one in statuses if one.state in OVER}
    whole = {one.child for one in statuses if one.state in OVER and not one.brief}
    assert {child for child, one in history.items() if not one.brief} == whole


@given(st.lists(STATUSES, unique_by=lambda one: one.child), st.integers(0, 50))
def test_counts_are_refined_and_none_is_lost(statuses: list[RunStatus], others: int) -> None:
    history = add({}, statuses)
    bad = sum(one.state in BAD for one in history.values())
    counts = {RunState.FAILED: bad, RunState.RUNNING: others}
    refined = refine(counts, history)
    assert sum(refined.values()) == bad + others
    for state in BAD:
        assert refined.get(state, 0) == sum(one.state is state for one in history.values())


def test_ten_thousand_runs_are_a_small_blob() -> None:
    import random  # noqa: PLC0415 # here alone

    chance = random.Random(1)  # noqa: S311 # a stream's name
    runs = {
        n: RunStatus(
            child=n,
            state=RunState.DONE,
            exit_code=0,
            attempts=1,
            started_ms=1_800_000_000_000 + n * 917,
            stopped_ms=1_800_003_600_000 + n * 1013,
            streams=(f"runfleet-rl-0123456789abcdef/default/{chance.getrandbits(128):032x}",),
        )
        for n in range(10_000)
    }
    assert len(encode_history(runs)) < 400_000


@pytest.mark.parametrize(
    ("counts", "known", "over", "word"),
    [
        ({RunState.DONE: 3}, {}, True, RunState.DONE),
        ({RunState.DONE: 2, RunState.FAILED: 1}, {}, True, RunState.UNKNOWN),
        ({RunState.DONE: 2, RunState.FAILED: 1}, {1: RunState.FAILED}, True, RunState.DONE),
        ({RunState.DONE: 2, RunState.FAILED: 1}, {0: RunState.LOST}, True, RunState.LOST),
        ({RunState.RUNNING: 3}, {}, False, RunState.UNKNOWN),
    ],
)
def test_the_last_word_of_a_run(
    counts: dict[RunState, int], known: dict[int, RunState], *, over: bool, word: RunState
) -> None:
    history = {child: RunStatus(child=child, state=state) for child, state in known.items()}
    assert last_word(counts, history, 0, over=over) is word


def sent(home: Path, seeds: int) -> Any:
    backend = FakeBatch(Clock())
    at = session(home, backend)
    experiment = Experiment(command=("x",), seeds=tuple(range(seeds)), image="i")
    kept = api.send(at, api.Plan(submission=submission(experiment), fleet=FLEET)).kept
    return backend, at, kept


def test_status_and_logs_work_after_batch_has_forgotten(tmp_path: Path) -> None:
    backend, at, kept = sent(tmp_path, 3)
    backend.jobs["job-0"].attempts = 2
    backend.end("job-0", ("SUCCEEDED", None), ("FAILED", LOST), ("FAILED", "Essential container"))
    backend.logs = {"job-0/2/1": ["boom"]}
    with at:
        api.poll(at, [kept])
    backend.forgotten.add("job-0")
    backend.calls.clear()
    with session(tmp_path, backend) as later:
        progress = api.poll(later, [kept])[0]
        views = api.runs(later, progress)
        assert [view.state for view in views] == [RunState.DONE, RunState.LOST, RunState.FAILED]
        assert [view.exit_code for view in views] == [0, None, 1]
        assert [view.attempts for view in views] == [2, 2, 2]
        assert (progress.tries, progress.losses) == (6, 2)
        assert [view.run.index for view in api.failed_runs(later, progress, 5)] == [1, 2]
        assert [line.text for line in api.log(later, progress, views[2])] == ["boom"]
    assert set(backend.calls) == {"GetLogEvents"}


def test_a_large_job_is_kept_a_part_a_look_and_those_that_failed_first(tmp_path: Path) -> None:
    backend, at, kept = sent(tmp_path, 5_000)
    backend.end("job-0", ("SUCCEEDED", None))
    backend.jobs["job-0"].children[4_321] = "FAILED", "Essential container"
    spent = []
    with at:
        for _ in range(5):
            backend.calls.clear()
            progress = api.poll(at, [kept])[0]
            spent.append(backend.calls.count("DescribeJobs"))
            if len(spent) == 1:
                history = at.ledger().history(progress.rows[0])
                assert len(history) == 2_000
                assert not history[4_321].brief
    assert spent == [21, 20, 10, 0, 0]


def test_what_was_forgotten_before_it_was_kept_is_asked_for_once(tmp_path: Path) -> None:
    backend, at, kept = sent(tmp_path, 5_000)
    backend.end("job-0", ("SUCCEEDED", None))
    with at:
        api.poll(at, [kept])
        backend.forgotten.add("job-0")
        api.poll(at, [kept])
        backend.calls.clear()
        progress = api.poll(at, [kept])[0]
        (view,) = api.runs(at, progress, Selection(runs=(4_999,)))
    assert backend.calls == []
    assert view.state is RunState.DONE
