"""What runs say of their outcome: a line `runfleet-metrics {"return": 412.5}` in their log. Pure.

A run may say it more than once: of each number the last counts, also over attempts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from submit.experiment import Run

MARK = "runfleet-metrics"

Metrics = dict[str, float]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its metrics."""

    run: Run
    metrics: Metrics


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over runs that differ in their seed alone. `std` is the sample's (n - 1), None
    for a single run.
    """

    parameters: tuple[tuple[str, str], ...]
    metric: str
    n: int
    mean: float
    std: float | None


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
    by_stream: dict[str, Metrics] = {}
    for stream, line in lines:
        by_stream.setdefault(stream, {}).update(parse_metrics(line))
    by_run: dict[int, Metrics] = {}
    runs = {run.index: run for run in streams.values()}
    for stream in order:
        if by_stream.get(stream):
            by_run.setdefault(streams[stream].index, {}).update(by_stream[stream])
    return [Outcome(run=runs[index], metrics=by_run[index]) for index in sorted(by_run)]


def metric_names(outcomes: Iterable[Outcome]) -> list[str]:
    """All metrics, in the order in which they turn up."""
    return list(dict.fromkeys(name for outcome in outcomes for name in outcome.metrics))


def summarize(outcomes: Sequence[Outcome]) -> list[Summary]:
    """Mean and deviation of each metric over the seeds of each combination of parameters."""
    groups: dict[tuple[tuple[str, str], ...], list[Metrics]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.run.parameters, []).append(outcome.metrics)
    return [
        _summary(parameters, metric, [found[metric] for found in several if metric in found])
        for parameters, several in groups.items()
        for metric in metric_names(outcomes)
        if any(metric in found for found in several)
    ]


def _summary(
    parameters: tuple[tuple[str, str], ...], metric: str, values: Sequence[float]
) -> Summary:
    n = len(values)
    mean = math.fsum(values) / n if all(map(math.isfinite, values)) else sum(values) / n
    std = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None
    return Summary(parameters=parameters, metric=metric, n=n, mean=mean, std=std)
