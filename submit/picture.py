"""Learning curves as a picture. Speaks matplotlib, which is loaded when needed, and writes a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from submit.errors import ServiceFailed, WrongUse
from submit.results import Outcome, Parameters

KINDS = (".png", ".svg", ".pdf")
POINTS = 200
"""Of a curve: more than a picture's width shows."""
COLUMNS = 3
MAX_PLOTS = 60
ENVIRONMENT = ("env-id", "env_id", "env", "environment")
"""Parameters whose values get a plot each."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Told apart by all eyes (Okabe and Ito, "Color Universal Design")."""

Curve = tuple[list[float], list[float], list[float]]
"""Steps, mean over the seeds, and standard deviation."""


def draw(outcomes: Sequence[Outcome], metric: str, path: Path, title: str) -> None:
    """The metric over the steps, mean ± standard deviation over the seeds: a plot for each
    environment, a line for each combination of the other parameters.

    Raises WrongUse for a kind of file that can't be made, for a metric that no run has twice, or
    where matplotlib is not installed; ServiceFailed where the file can't be written.
    """
    if path.suffix not in KINDS:
        raise WrongUse(
            "picture", f"{path} is none of {', '.join(KINDS)}", f"--plot {path.stem or 'curve'}.png"
        )
    plots = _plots(outcomes, metric)
    if not plots:
        raise WrongUse(
            "no-curve",
            f"no run has told its {metric} more than once",
            'print runfleet-metrics {"step": 1000, "return": 12.5} as it trains',
        )
    if len(plots) > MAX_PLOTS:
        raise WrongUse(
            "picture",
            f"{len(plots)} plots are more than a page holds ({MAX_PLOTS})",
            "submit results … --over NAME takes a parameter's values together",
        )
    figure = _figure(plots, metric, title)
    try:
        figure.savefig(path, dpi=150)
    except OSError as err:
        raise ServiceFailed(
            "picture",
            f"{path} can't be written: {err.strerror}",
            "--plot curve.png, in a folder of yours",
        ) from err


def mean_curve(curves: Sequence[Sequence[tuple[float, float]]]) -> Curve:
    """The mean of the curves at common steps, each counted as far as it goes; between two of its
    points it is a straight line.
    """
    import numpy as np  # noqa: PLC0415 # with matplotlib

    steps = np.unique([step for curve in curves for step, _ in curve])
    if len(steps) > POINTS:
        steps = np.linspace(steps[0], steps[-1], POINTS)
    rows = []
    for curve in curves:
        points = sorted(dict(curve).items())
        at, values = [step for step, _ in points], [value for _, value in points]
        rows.append(np.interp(steps, at, values, left=math.nan, right=math.nan))
    known = np.ma.masked_invalid(np.array(rows))
    counts = np.maximum(known.count(axis=0), 1)
    with np.errstate(over="ignore", invalid="ignore"):  # of diverged runs
        mean = known.mean(axis=0)
        squares = ((known - mean) ** 2).sum(axis=0)
    std = np.sqrt(np.where(counts > 1, squares / np.maximum(counts - 1, 1), 0))
    return steps.tolist(), mean.filled(math.nan).tolist(), np.ma.filled(std, 0.0).tolist()


Lines = dict[Parameters, list[list[tuple[float, float]]]]


def _plots(outcomes: Sequence[Outcome], metric: str) -> dict[Parameters, Lines]:
    plots: dict[Parameters, Lines] = {}
    for one in outcomes:
        curve = [
            (point.step, point.metrics[metric])
            for point in one.points
            if math.isfinite(point.metrics.get(metric, math.nan))
        ]
        if len({step for step, _ in curve}) < 2:  # noqa: PLR2004 # a line has two ends
            continue
        where = tuple(pair for pair in one.run.parameters if pair[0] in ENVIRONMENT)
        rest = tuple(pair for pair in one.run.parameters if pair[0] not in ENVIRONMENT)
        plots.setdefault(where, {}).setdefault(rest, []).append(curve)
    return plots


def _figure(plots: dict[Parameters, Lines], metric: str, title: str) -> Any:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 # takes a second
    except ModuleNotFoundError as err:
        raise WrongUse(
            "no-matplotlib",
            f"{err.name} is not installed, which a picture needs",
            "pip install 'runfleet[results]'",
        ) from err
    columns = min(COLUMNS, len(plots))
    rows = -(-len(plots) // columns)
    figure = Figure(figsize=(5 * columns + 1, 3.6 * rows + 0.4), layout="constrained")
    figure.suptitle(title, parse_math=False)
    axes = figure.subplots(rows, columns, squeeze=False).flat
    for place, (where, lines) in zip(axes, plots.items(), strict=False):
        _draw_plot(place, lines, metric, ", ".join(value for _, value in where))
    for place in list(axes)[len(plots) :]:
        place.remove()
    return figure


def _draw_plot(place: Any, lines: Lines, metric: str, title: str) -> None:
    for number, (parameters, curves) in enumerate(lines.items()):
        steps, mean, std = mean_curve(curves)
        colour = COLOURS[number % len(COLOURS)]
        style = ("-", "--", ":", "-.")[number // len(COLOURS) % 4]
        name = " ".join(f"{key}={value}" for key, value in parameters)
        label = f"{name} (n={len(curves)})".strip().replace("$", r"\$")
        place.plot(steps, mean, style, color=colour, label=label, linewidth=1.5)
        low = [m - s for m, s in zip(mean, std, strict=True)]
        high = [m + s for m, s in zip(mean, std, strict=True)]
        place.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
    place.set_title(title, parse_math=False)
    place.set_xlabel("step")
    place.set_ylabel(f"{metric}, mean ± std", parse_math=False)
    place.grid(alpha=0.3)
    if any(lines):
        place.legend(fontsize="small")
