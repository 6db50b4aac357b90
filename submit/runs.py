"""The single runs of an experiment: which were meant, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from submit.backends import Backend, RunStatus
from submit.errors import WrongUse
from submit.experiment import (
    Experiment,
    Run,
    has_run,
    iter_runs,
    nth_run,
    parameter_names,
    parameter_values,
    run_spans,
)
from submit.nearest import nearest
from submit.progress import Progress
from submit.ranges import decode_ranges
from submit.records import SENT, Row
from submit.states import BAD, OVER, RunState


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run and what became of it. Times are milliseconds since 1970."""

    run: Run
    state: RunState
    exit_code: int | None = None
    attempts: int = 0
    reason: str | None = None
    started_ms: int | None = None
    stopped_ms: int | None = None
    streams: tuple[str, ...] = ()
    """Its logs, one an attempt."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are meant; nothing given is all. `where` has parameters and their values, of
    which a run must have one each.
    """

    runs: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()


def select_runs(experiment: Experiment, identity: str, selection: Selection) -> Iterator[Run]:
    """The runs that are meant, in order.

    Raises WrongUse for a run, seed, parameter or value that the experiment does not have.
    """
    _check_selection(experiment, selection)
    runs = (
        (nth_run(experiment, index, identity) for index in sorted(selection.runs))
        if selection.runs
        else iter_runs(experiment, identity)
    )
    for run in runs:
        values = dict(run.parameters)
        if (not selection.seeds or run.seed in selection.seeds) and all(
            values[name] in wanted for name, wanted in selection.where
        ):
            yield run


def fetch_runs(progress: Progress, backend: Backend, runs: Sequence[Run]) -> list[RunView]:
    """What became of the runs, in their order: one call per 100 of one job."""
    places = _places(progress.rows, {run.index for run in runs})
    seen: dict[tuple[str, int], RunStatus] = {}
    for row in progress.rows:
        children = [child for owner, child in places.values() if owner is row]
        if children and row.job_id and row.state == SENT:
            for status in backend.runs(row.job_id, row.size, children):
                seen[row.name, status.child] = status
    return [_view(run, places.get(run.index), seen) for run in runs]


def failed_indexes(progress: Progress, backend: Backend, most: int) -> list[int]:
    """The first `most` runs that ended badly: one call a job that has any, while more are wanted."""
    found: list[int] = []
    for row in progress.rows:
        if len(found) < most and row.job_id and any(state in BAD for state in row.counts or {}):
            children = backend.failed_children(row.job_id) if row.size > 1 else {0: None}
            indexes = list(decode_ranges(row.runs))
            found += [indexes[child] for child in sorted(children)]
    return sorted(found)[:most]


def _places(rows: Sequence[Row], wanted: set[int]) -> dict[int, tuple[Row, int]]:
    """Which job each run is in, and as which child. A run sent again is in the later job."""
    places: dict[int, tuple[Row, int]] = {}
    for row in rows:
        for child, index in enumerate(decode_ranges(row.runs)):
            if index in wanted:
                places[index] = row, child
    return places


def _view(
    run: Run, place: tuple[Row, int] | None, seen: dict[tuple[str, int], RunStatus]
) -> RunView:
    if place is None or place[0].state != SENT:
        return RunView(run=run, state=RunState.UNSENT)
    row, child = place
    status = seen.get((row.name, child))
    if status is None:
        return RunView(run=run, state=_last_word(row))
    return RunView(
        run=run,
        state=status.state,
        exit_code=status.exit_code,
        attempts=status.attempts,
        reason=status.reason,
        started_ms=status.started_ms,
        stopped_ms=status.stopped_ms,
        streams=status.streams,
    )


def _last_word(row: Row) -> RunState:
    """What is still known of a run that the service has forgotten."""
    counts = row.counts or {}
    only = next(iter(counts), RunState.UNKNOWN)
    return only if len(counts) == 1 and only in OVER else RunState.UNKNOWN


def _check_selection(experiment: Experiment, selection: Selection) -> None:
    for index in selection.runs:
        if not has_run(experiment, index):
            last = run_spans(experiment)[-1][1]
            raise WrongUse("no-such-run", f"there is no run {index}: they are 0 to {last}")
    for seed in selection.seeds:
        if seed not in experiment.seeds:
            seeds = ", ".join(map(str, experiment.seeds[:10])) or "none"
            raise WrongUse("no-such-seed", f"no run has the seed {seed} (seeds: {seeds})")
    for name, wanted in selection.where:
        values = _values(experiment, name)
        for value in wanted:
            if value not in values:
                raise WrongUse(
                    "no-such-value",
                    f"no run has {name}={value}{nearest(value, values)}",
                )


def _values(experiment: Experiment, name: str) -> list[str]:
    names = parameter_names(experiment)
    if name not in names:
        raise WrongUse("no-such-parameter", f"there is no parameter {name!r}{nearest(name, names)}")
    return parameter_values(experiment, name)
