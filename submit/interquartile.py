"""The interquartile mean of runs, with its interval. Speaks scipy, which is loaded when needed.

Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (2021)
recommend both for few seeds: an outlier moves the interquartile mean less than the mean, and the
bootstrap is stratified, so that each environment keeps its number of runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from submit.errors import WrongUse

CONFIDENCE = 0.95
RESAMPLES = 5_000
TRIMMED = 0.25
"""Of each end: what is left lies between the quartiles."""


class Interquartile(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the middle half, and between what it lies with 95 % confidence: None where
    there are too few values to tell.
    """

    iqm: float
    low: float | None
    high: float | None


def interquartile(strata: Sequence[Sequence[float]]) -> Interquartile:
    """Of all values; the bootstrap draws anew within each stratum. The same values give the same
    interval.

    Raises WrongUse where scipy is not installed.
    """
    stats, numpy = _scipy()
    filled = [numpy.asarray(stratum, dtype=float) for stratum in strata if len(stratum)]

    def middle(*parts: Any, axis: int = -1) -> Any:
        return stats.trim_mean(numpy.concatenate(parts, axis=axis), TRIMMED, axis=axis)

    with numpy.errstate(over="ignore", invalid="ignore"):  # of diverged runs
        return _interquartile(stats, numpy, filled, middle)


def _interquartile(stats: Any, numpy: Any, filled: list[Any], middle: Any) -> Interquartile:
    iqm = float(middle(*filled))
    # Drawing one value from one tells nothing, nor does an infinite value's distance.
    if max(map(len, filled)) < 2 or not all(math.isfinite(v) for part in filled for v in part):  # noqa: PLR2004
        return Interquartile(iqm=iqm, low=None, high=None)
    if all(len(set(part.tolist())) == 1 for part in filled):
        return Interquartile(iqm=iqm, low=iqm, high=iqm)
    low, high = _interval(stats, numpy, filled, middle)
    return Interquartile(iqm=iqm, low=low, high=high)


def _interval(stats: Any, numpy: Any, filled: list[Any], middle: Any) -> tuple[float, float]:
    # scipy's bootstrap wants two values or more of each sample: a lone one is always drawn itself.
    drawn = [part if len(part) > 1 else numpy.repeat(part, 2) for part in filled]
    sizes = [len(part) for part in filled]

    def statistic(*parts: Any, axis: int = -1) -> Any:
        cut = [part[..., :size] for part, size in zip(parts, sizes, strict=True)]
        return middle(*cut, axis=axis)

    found = stats.bootstrap(
        drawn,
        statistic,
        n_resamples=RESAMPLES,
        batch=max(1, 2_000_000 // sum(map(len, drawn))),  # bounds the memory: 16 MB of numbers
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        axis=-1,
        rng=numpy.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def is_available() -> bool:
    """Whether scipy is installed; it is not loaded."""
    import importlib.util  # noqa: PLC0415 # not for those who only summarise

    return importlib.util.find_spec("scipy") is not None


def _scipy() -> tuple[Any, Any]:
    try:
        import numpy as np  # noqa: PLC0415 # with scipy
        from scipy import stats  # noqa: PLC0415 # takes a second
    except ModuleNotFoundError as err:
        raise WrongUse(
            "no-scipy",
            f"{err.name} is not installed, which the interquartile mean needs",
            "pip install 'runfleet[results]'",
        ) from err
    return stats, np
