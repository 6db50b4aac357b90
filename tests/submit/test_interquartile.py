"""submit.interquartile: against values worked out by hand, and what any sample must keep."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy", reason="scipy is not installed")

from submit.interquartile import interquartile

NUMBERS = st.floats(-1e6, 1e6)


def test_the_middle_half_counts() -> None:
    found = interquartile([(1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 1000.0)])
    assert found.iqm == pytest.approx((3 + 4 + 5 + 6) / 4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.iqm < found.high < 1000


def test_the_bootstrap_is_stratified() -> None:
    """Drawn anew within each stratum, two that are far apart keep their shares, and the interval
    is that of their own small scatter; thrown together they would mix, and it would be wide.
    """
    low, high = (0.0, 0.1, 0.2, 0.1), (100.0, 100.1, 100.2, 100.1)
    apart = interquartile([low, high])
    mixed = interquartile([low + high])
    assert apart.iqm == mixed.iqm
    assert apart.high - apart.low < 0.5  # type: ignore[operator]
    assert mixed.high - mixed.low > 30  # type: ignore[operator]


@pytest.mark.parametrize("strata", [[(3.0,)], [(3.0,), (5.0,)], [(1.0, math.inf)]])
def test_too_little_for_an_interval(strata: list[tuple[float, ...]]) -> None:
    found = interquartile(strata)
    assert (found.low, found.high) == (None, None)


def test_all_the_same() -> None:
    found = interquartile([(2.0, 2.0, 2.0)])
    assert (found.iqm, found.low, found.high) == (2.0, 2.0, 2.0)


def test_a_lone_run_of_an_environment_is_drawn_as_it_is() -> None:
    found = interquartile([(0.0,), (10.0, 20.0)])
    assert found.iqm == pytest.approx(10.0)
    assert (found.low, found.high) == (pytest.approx(20 / 3), pytest.approx(40 / 3))


@settings(max_examples=25)
@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=6), min_size=1, max_size=3))
def test_the_interval_lies_within_the_values(strata: list[list[float]]) -> None:
    values = [value for stratum in strata for value in stratum]
    found = interquartile(strata)
    slack = 1e-6 * max(1.0, *map(abs, values))
    assert min(values) - slack <= found.iqm <= max(values) + slack
    if found.low is not None and found.high is not None:
        assert min(values) - slack <= found.low <= found.high <= max(values) + slack
    assert interquartile(strata) == found, "the same values, another interval"


def test_what_diverged_runs_say_warns_nobody() -> None:
    """Pytest takes a warning for a failure."""
    found = interquartile([(1.1e308, 1.2e308, 1.3e308), (1.0, 2.0)])
    assert not math.isnan(found.iqm)
