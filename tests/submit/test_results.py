"""submit.results: metrics that runs print, and their mean over the seeds."""

from __future__ import annotations

import json
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.experiment import Axis, Experiment, iter_runs
from submit.results import MARK, Outcome, collect, metric_names, parse_metrics, summarize

RUNS = list(
    iter_runs(
        Experiment(
            command=("x",),
            axes=(Axis(names=("env-id",), rows=(("A",), ("B",))),),
            seeds=(1, 2, 3),
            image="i",
        )
    )
)


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ('runfleet-metrics {"return": 1.5}', {"return": 1.5}),
        ('  runfleet-metrics {"return": 2, "steps": 3}\n', {"return": 2.0, "steps": 3.0}),
        ('runfleet-metrics {"ok": true, "name": "x", "n": null, "v": 4}', {"v": 4.0}),
        ('runfleet-metrics {"v": Infinity}', {"v": math.inf}),
        ("runfleet-metrics {}", {}),
        ("runfleet-metrics 5", {}),
        ("runfleet-metrics [1]", {}),
        ("runfleet-metrics {", {}),
        ("runfleet-metrics", {}),
        ('printed runfleet-metrics {"v": 4}', {}),
        ('{"v": 4}', {}),
        ("", {}),
    ],
)
def test_parse(line: str, metrics: dict[str, float]) -> None:
    assert parse_metrics(line) == metrics


@given(st.dictionaries(st.text(), st.floats(allow_nan=False)))
def test_whatever_python_prints_is_read(metrics: dict[str, float]) -> None:
    assert parse_metrics(f"{MARK} {json.dumps(metrics)}") == metrics


def test_nan_is_a_number() -> None:
    assert math.isnan(parse_metrics('runfleet-metrics {"v": NaN}')["v"])


def test_the_last_word_counts_also_over_attempts() -> None:
    streams = {"r0/try1": RUNS[0], "r0/try2": RUNS[0], "r1/try1": RUNS[1], "r2/try1": RUNS[2]}
    lines = [
        ("r0/try2", 'runfleet-metrics {"return": 3}'),
        ("r0/try1", 'runfleet-metrics {"return": 9, "steps": 7}'),
        ("r1/try1", 'runfleet-metrics {"return": 1}'),
        ("r1/try1", 'runfleet-metrics {"return": 2}'),
        ("r2/try1", "nothing"),
    ]
    outcomes = collect(streams, lines, list(streams))
    assert [(one.run.index, one.metrics) for one in outcomes] == [
        (0, {"return": 3.0, "steps": 7.0}),
        (1, {"return": 2.0}),
    ]
    assert metric_names(outcomes) == ["return", "steps"]


VALUES = st.floats(-1e6, 1e6)


@given(st.lists(VALUES, min_size=3, max_size=3), st.lists(VALUES, min_size=1, max_size=3))
def test_mean_and_deviation(first: list[float], second: list[float]) -> None:
    """As Python's own statistics have them, for each value of the other parameters."""
    outcomes = [
        Outcome(run=run, metrics={"v": value})
        for run, value in zip([*RUNS[:3], *RUNS[3:]], [*first, *second], strict=False)
    ]
    for found, values in zip(summarize(outcomes), (first, second), strict=True):
        assert found.n == len(values)
        assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
        if len(values) > 1:
            assert found.std == pytest.approx(statistics.stdev(values), abs=1e-3)
        else:
            assert found.std is None


def test_a_metric_that_some_runs_lack() -> None:
    found = summarize(
        [
            Outcome(run=RUNS[0], metrics={"a": 1.0}),
            Outcome(run=RUNS[1], metrics={"a": 3.0, "b": 5.0}),
        ]
    )
    assert [(one.metric, one.n, one.mean, one.std) for one in found] == [
        ("a", 2, 2.0, pytest.approx(math.sqrt(2))),
        ("b", 1, 5.0, None),
    ]
