"""What runs say of their outcome: a line `runfleet-metrics {"return": 412.5}` in their log. Pure.

A run may say it more than once: of each number the last counts, also over attempts. Lines with a
step make a learning curve.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from submit.errors import WrongUse
from submit.experiment import Run

MARK = "runfleet-metrics"

Metrics = dict[str, float]
Parameters = tuple[tuple[str, str], ...]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """What a run said at one step of its training."""

    step: float
    metrics: Metrics


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A run, its metrics, and all that it said on the way, by step."""

    run: Run
    metrics: Metrics
    points: tuple[Point, ...] = ()


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over runs that differ in their seed alone, or also in the parameters that are
    taken together: `strata` has the values by those.
    """

    parameters: Parameters
    metric: str
    strata: tuple[tuple[float, ...], ...]

    @property
    def values(self) -> tuple[float, ...]:
        """Of all strata."""
        return tuple(value for stratum in self.strata for value in stratum)


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """`std` is the sample's (n - 1), None for a single run."""

    n: int
    mean: float
    std: float | None


STEPS = ("global_step", "step", "_step", "steps", "timestep", "iteration")
"""Names under which a run tells how far it is; the first of them that a line has counts."""


def parse_metrics(line: str) -> Metrics:
    """The numbers in a log line of the form above; none in any other line.

    What is not a number is left out. Python's NaN and Infinity are numbers.
    """
    before, mark, text = line.partition(MARK)
    if not mark or before.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def collect(
    streams: Mapping[str, Run], lines: Iterable[tuple[str, str]], order: Sequence[str]
) -> list[Outcome]:
    """The metrics of each run that has any, in the order of the runs. `streams` tells whose a log
    is, `lines` are (stream, line), `order` has the streams of earlier attempts first.
    """
    by_stream: dict[str, list[Metrics]] = {}
    for stream, line in lines:
        by_stream.setdefault(stream, []).append(parse_metrics(line))
    attempts: dict[int, list[list[Metrics]]] = {}
    runs = {run.index: run for run in streams.values()}
    for stream in order:
        said = [metrics for metrics in by_stream.get(stream, []) if metrics]
        if said:
            attempts.setdefault(streams[stream].index, []).append(said)
    return [outcome(runs[index], attempts[index]) for index in sorted(attempts)]


def outcome(run: Run, attempts: Iterable[Sequence[Metrics]]) -> Outcome:
    """What the run's attempts, the earlier first, have said. An attempt that begins at an earlier
    step than another had reached takes its place from there.
    """
    last: Metrics = {}
    points: list[Point] = []
    for said in attempts:
        further = [_point(metrics, number) for number, metrics in enumerate(said)]
        first = min((point.step for point in further), default=math.inf)
        points = [point for point in points if point.step < first] + further
        for metrics in said:
            last |= metrics
    return Outcome(run=run, metrics=last, points=tuple(points))


def metric_names(outcomes: Iterable[Outcome]) -> list[str]:
    """All metrics, in the order in which they turn up."""
    return list(dict.fromkeys(name for outcome in outcomes for name in outcome.metrics))


def samples(outcomes: Sequence[Outcome], over: Sequence[str] = ()) -> list[Sample]:
    """The values of each metric over the seeds of each combination of parameters; those named in
    `over` are taken together, a stratum each.
    """
    groups: dict[Parameters, dict[Parameters, list[Metrics]]] = {}
    for one in outcomes:
        kept = tuple(pair for pair in one.run.parameters if pair[0] not in over)
        stratum = tuple(pair for pair in one.run.parameters if pair[0] in over)
        groups.setdefault(kept, {}).setdefault(stratum, []).append(one.metrics)
    return [
        Sample(
            parameters=parameters,
            metric=metric,
            strata=tuple(
                tuple(found[metric] for found in several if metric in found)
                for several in strata.values()
                if any(metric in found for found in several)
            ),
        )
        for parameters, strata in groups.items()
        for metric in metric_names(outcomes)
        if any(metric in found for several in strata.values() for found in several)
    ]


def check_over(outcomes: Sequence[Outcome], over: Sequence[str]) -> None:
    """Raises WrongUse for the first of `over` that is no parameter of the runs."""
    there = [name for name, _ in outcomes[0].run.parameters] if outcomes else list(over)
    for name in over:
        if name not in there:
            raise WrongUse(
                "no-such-parameter",
                f"there is no parameter {name!r} (there is: {', '.join(there) or 'none'})",
                f"--over {there[0]}" if there else "leave --over out",
            )


def spread(values: Sequence[float]) -> Spread:
    """Mean and deviation of one value or more; of what a diverged run says they may be infinite,
    or no number.
    """
    n = len(values)
    if not all(map(math.isfinite, values)):
        return Spread(n=n, mean=sum(values) / n, std=math.nan if n > 1 else None)
    import statistics  # noqa: PLC0415 # exact, and slow to load

    mean = float(statistics.mean(values))
    try:
        std = statistics.stdev(values) if n > 1 else None
    except OverflowError:
        std = math.inf
    return Spread(n=n, mean=mean, std=std)


def _point(metrics: Metrics, number: int) -> Point:
    """Without a step of its own, what a run says is counted."""
    name = next((name for name in STEPS if name in metrics), None)
    step = metrics[name] if name else float(number)
    return Point(step=step if math.isfinite(step) else float(number), metrics=metrics)
