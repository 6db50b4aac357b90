"""The sandbox's own time, and the rates of calls."""

from __future__ import annotations

import pytest

from sandbox.clock import Clock
from sandbox.rates import RATES, Buckets


def test_it_goes_on_as_fast_as_told() -> None:
    real = [100.0]
    clock = Clock(lambda: real[0])
    real[0] += 5
    assert clock() == 105
    clock.change(speed=10)
    real[0] += 2
    assert clock() == 125
    assert clock.change(advance_s=60) == 185
    real[0] -= 50  # somebody sets the machine's clock back
    assert clock() == 185


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_it_never_stands(speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        Clock().change(speed=speed)
    with pytest.raises(ValueError, match="back"):
        Clock().change(advance_s=-1)


def test_a_bucket_gives_its_rate_and_no_more() -> None:
    now = [0.0]
    buckets = Buckets(lambda: now[0])
    assert [buckets.take("r", "batch", "SubmitJob") for _ in range(51)].count(True) == 50
    now[0] += 0.1
    assert [buckets.take("r", "batch", "SubmitJob") for _ in range(9)].count(True) == 5
    assert buckets.take("other", "batch", "SubmitJob")
    assert all(buckets.take("r", "batch", "DescribeJobs") for _ in range(500))
    assert all(rate.source for rate in RATES.values())
