"""The single runs of an experiment: which were meant, and what became of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from submit.backends import RunStatus
from submit.errors import WrongUse
from submit.experiment import (
    Experiment,
    Run,
    absent_runs,
    iter_runs,
    parameter_names,
    parameter_values,
    run_spans,
    runs_at,
)
from submit.keeping import Details
from submit.nearest import nearest
from submit.progress import Progress, RowKey, key, sent_again
from submit.ranges import decode_ranges
from submit.records import Row
from submit.states import RunState


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run and what became of it. Times are milliseconds since 1970."""

    run: Run
    state: RunState
    exit_code: int | None = None
    attempts: int = 0
    """In all its jobs; `losses` of them have lost their machine."""
    losses: int = 0
    reason: str | None = None
    started_ms: int | None = None
    stopped_ms: int | None = None
    streams: tuple[str, ...] = ()
    """Its logs, one an attempt that has one, the first attempt's first."""


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
    check_selection(experiment, selection)
    runs = (
        runs_at(experiment, sorted(selection.runs), identity)
        if selection.runs
        else iter_runs(experiment, identity)
    )
    for run in runs:
        values = dict(run.parameters)
        if (not selection.seeds or run.seed in selection.seeds) and all(
            values[name] in wanted for name, wanted in selection.where
        ):
            yield run


def fetch_runs(progress: Progress, details: Details, runs: Sequence[Run]) -> list[RunView]:
    """What became of the runs, in their order, over all jobs in which they were: one call per
    100 of one job that are not over.
    """
    places = _places(progress.rows, {run.index for run in runs})
    seen: dict[tuple[RowKey, int], RunStatus] = {}
    for row in progress.rows:
        children = [n for several in places.values() for owner, n in several if owner is row]
        if children and row.stands:
            found = details.of(row, children)
            seen |= {(key(row), child): status for child, status in found.items()}
    return [
        _view(run, [seen[key(row), child] for row, child in places[run.index] if row.stands])
        for run in runs
    ]


def find_runs(
    progress: Progress, details: Details, states: Collection[RunState], most: int | None = None
) -> list[int]:
    """Indexes of the runs in one of these states, the first `most`: no call for a job without
    any, else as keeping.Details.which says.
    """
    found: list[int] = []
    gone = sent_again(progress.rows)
    for row, counts in zip(progress.rows, progress.standing, strict=True):
        if not any(state in states for state in counts):
            continue
        if most is not None and len(found) >= most:
            break
        if not row.stands:
            found += decode_ranges(row.runs)
            continue
        children = details.which(row, states).keys() - gone[key(row)]
        indexes = list(decode_ranges(row.runs))
        found += [indexes[child] for child in children]
    return sorted(found)[:most]


def _places(rows: Sequence[Row], wanted: Collection[int]) -> dict[int, list[tuple[Row, int]]]:
    """Which jobs each run is in, and as which child; the first job first."""
    places: dict[int, list[tuple[Row, int]]] = {index: [] for index in wanted}
    for row in rows:
        for child, index in enumerate(decode_ranges(row.runs)):
            if index in places:
                places[index].append((row, child))
    return places


def _view(run: Run, tries: Sequence[RunStatus]) -> RunView:
    """The run after all its tries, one in each of its jobs."""
    if not tries:
        return RunView(run=run, state=RunState.UNSENT)
    last = tries[-1]
    return RunView(
        run=run,
        state=last.state,
        exit_code=last.exit_code,
        attempts=sum(one.attempts for one in tries),
        losses=sum(one.losses for one in tries),
        reason=last.reason,
        started_ms=last.started_ms,
        stopped_ms=last.stopped_ms,
        streams=tuple(stream for one in tries for stream in one.streams),
    )


def check_selection(experiment: Experiment, selection: Selection) -> None:
    """Raises WrongUse for a run, seed, parameter or value that the experiment does not have."""
    for index in absent_runs(experiment, selection.runs):
        last = run_spans(experiment)[-1][1]
        raise WrongUse(
            "no-such-run", f"there is no run {index}: they are 0 to {last}", f"--run {last}"
        )
    for seed in selection.seeds:
        if seed not in experiment.seeds:
            seeds = ", ".join(map(str, experiment.seeds[:10])) or "none"
            raise WrongUse(
                "no-such-seed",
                f"no run has the seed {seed} (seeds: {seeds})",
                f"--seed {experiment.seeds[0]}" if experiment.seeds else "--run N",
            )
    for name, wanted in selection.where:
        values = _values(experiment, name)
        for value in wanted:
            if value not in values:
                raise WrongUse(
                    "no-such-value",
                    f"no run has {name}={value}{nearest(value, values)}",
                    f"--where {name}={values[0]}",
                )


def _values(experiment: Experiment, name: str) -> list[str]:
    names = parameter_names(experiment)
    if name not in names:
        raise WrongUse(
            "no-such-parameter",
            f"there is no parameter {name!r}{nearest(name, names)}",
            f"--where {names[0]}=VALUE" if names else "--run or --seed",
        )
    return parameter_values(experiment, name)
