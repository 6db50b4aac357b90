"""Metrics that runs have printed, and their mean over the seeds. Pure.

A run says its results on a line of its own: `runfleet-metrics {"return": 487.2}`. The last
such line counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from submit.experiment import Run

MARK = "runfleet-metrics"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its metrics; none when it printed none."""

    run: Run
    metrics: dict[str, float]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A metric over the seeds: mean and sample standard deviation (None of a single run)."""

    mean: float
    std: float | None
    count: int


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """All runs that differ in nothing but the seed."""

    parameters: tuple[tuple[str, str], ...]
    runs: int
    metrics: dict[str, Spread]


def parse_metrics(line: str) -> dict[str, float] | None:
    """The metrics of a line, None when it is no such line or holds no JSON object of numbers."""
    before, mark, text = line.partition(MARK)
    if not mark or before.strip():
        return None
    try:
        return msgspec.json.decode(text.strip(), type=dict[str, float])
    except msgspec.DecodeError:
        return None


def last_metrics(lines: Iterable[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """The last metrics of each stream."""
    found: dict[str, dict[str, float]] = {}
    for stream, line in lines:
        metrics = parse_metrics(line)
        if metrics is not None:
            found[stream] = metrics
    return found


def group_results(results: Sequence[Result]) -> list[Group]:
    """Mean and deviation over the seeds, for each combination of the other parameters."""
    groups: dict[tuple[tuple[str, str], ...], list[Mapping[str, float]]] = {}
    for result in results:
        groups.setdefault(result.run.parameters, []).append(result.metrics)
    return [
        Group(
            parameters=parameters,
            runs=len(several),
            metrics={
                name: spread([one[name] for one in several if name in one])
                for name in dict.fromkeys(name for one in several for name in one)
            },
        )
        for parameters, several in groups.items()
    ]


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Spread(mean=mean, std=None, count=1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return Spread(mean=mean, std=math.sqrt(variance), count=len(values))
