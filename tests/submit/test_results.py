"""submit.results: metrics that runs print, and their mean over the seeds."""

from __future__ import annotations

import json
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.errors import WrongUse
from submit.experiment import Axis, Experiment, iter_runs
from submit.results import (
    MARK,
    Outcome,
    check_over,
    collect,
    metric_names,
    outcome,
    parse_metrics,
    samples,
    spread,
)

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


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5))
def test_mean_and_deviation(values: list[float]) -> None:
    """As Python's own statistics have them."""
    found = spread(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    if len(values) > 1:
        assert found.std == pytest.approx(statistics.stdev(values), abs=1e-3)
    else:
        assert found.std is None


@pytest.mark.parametrize(
    ("values", "mean", "least_std"),
    [
        ([1e200, -1e200], 0.0, 1e200),
        ([1.7e308, 1.7e308, 1.7e308], 1.7e308, 0.0),
        ([1.7e308, -1.7e308], 0.0, 1.7e308),
        ([math.inf, 1.0], math.inf, math.nan),
    ],
)
def test_what_diverged_runs_say_is_summarised(
    values: list[float], mean: float, least_std: float
) -> None:
    found = spread(values)
    assert found.mean == mean
    assert found.std is not None
    assert found.std >= least_std or (math.isnan(found.std) and math.isnan(least_std))


def test_equal_values_have_no_spread() -> None:
    assert spread([9.99900009999e-05] * 5).std == 0


def test_values_are_grouped_by_all_but_the_seed() -> None:
    outcomes = [Outcome(run=run, metrics={"v": float(run.index)}) for run in RUNS]
    assert [(one.parameters, one.strata) for one in samples(outcomes)] == [
        ((("env-id", "A"),), ((0.0, 1.0, 2.0),)),
        ((("env-id", "B"),), ((3.0, 4.0, 5.0),)),
    ]
    together = samples(outcomes, ["env-id"])
    assert [(one.parameters, one.strata) for one in together] == [
        ((), ((0.0, 1.0, 2.0), (3.0, 4.0, 5.0)))
    ]
    assert together[0].values == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)


def test_a_metric_that_some_runs_lack() -> None:
    outcomes = [
        Outcome(run=RUNS[0], metrics={"a": 1.0}),
        Outcome(run=RUNS[1], metrics={"a": 3.0, "b": 5.0}),
        Outcome(run=RUNS[3], metrics={"a": 7.0}),
    ]
    assert [(one.metric, one.strata) for one in samples(outcomes)] == [
        ("a", ((1.0, 3.0),)),
        ("b", ((5.0,),)),
        ("a", ((7.0,),)),
    ]
    assert [one.strata for one in samples(outcomes, ["env-id"])] == [
        ((1.0, 3.0), (7.0,)),
        ((5.0,),),
    ]


def test_a_parameter_that_there_is_not_is_named() -> None:
    with pytest.raises(WrongUse, match=r"no parameter 'lr' \(there is: env-id\)"):
        check_over([Outcome(run=RUNS[0], metrics={})], ["lr"])


def test_a_curve_goes_on_where_a_later_attempt_begins() -> None:
    """The first got to step 30, the second began again behind 10."""
    first = [{"step": 10.0, "v": 1.0}, {"step": 20.0, "v": 2.0}, {"step": 30.0, "v": 3.0}]
    second = [{"step": 20.0, "v": 2.5}, {"step": 40.0, "v": 4.0, "w": 1.0}]
    found = outcome(RUNS[0], [first, second])
    assert [(point.step, point.metrics["v"]) for point in found.points] == [
        (10.0, 1.0),
        (20.0, 2.5),
        (40.0, 4.0),
    ]
    assert found.metrics == {"step": 40.0, "v": 4.0, "w": 1.0}


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ([{"v": 1.0}, {"v": 2.0}], [0.0, 1.0]),
        ([{"v": 1.0, "steps": 5.0, "global_step": 7.0}], [7.0]),
        ([{"v": 1.0, "step": math.nan}], [0.0]),
        ([], []),
    ],
)
def test_where_a_run_is(said: list[dict[str, float]], at: list[float]) -> None:
    assert [point.step for point in outcome(RUNS[0], [said]).points] == at
