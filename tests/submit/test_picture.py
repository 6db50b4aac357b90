"""submit.picture: curves of many runs become a few lines, and a file that is a picture."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Axis, Experiment, iter_runs
from submit.picture import draw, mean_curve
from submit.results import Outcome, outcome

RUNS = list(
    iter_runs(
        Experiment(
            command=("x",),
            axes=(
                Axis(names=("env-id",), rows=(("Pong $5$",), ("B_{x",))),
                Axis(names=("lr",), rows=(("1",), ("2",))),
            ),
            seeds=(1, 2, 3),
            image="i",
        )
    )
)


def outcomes() -> list[Outcome]:
    return [
        outcome(run, [[{"step": step * 10.0, "v": step + run.index / 10} for step in range(9)]])
        for run in RUNS
    ]


def test_the_mean_of_curves_with_other_steps() -> None:
    """Each curve counts as far as it goes; between its points it is straight."""
    steps, mean, std = mean_curve([[(0, 0.0), (10, 10.0)], [(0, 2.0), (5, 7.0)]])
    assert steps == [0, 5, 10]
    assert mean == [1.0, 6.0, 10.0]
    assert std == [pytest.approx(math.sqrt(2)), pytest.approx(math.sqrt(2)), 0.0]


def test_many_points_become_few() -> None:
    steps, mean, _ = mean_curve([[(float(n), float(n)) for n in range(5_000)]])
    assert (len(steps), steps[0], steps[-1]) == (200, 0.0, 4999.0)
    assert mean == pytest.approx(steps)


@pytest.mark.parametrize(
    ("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_a_file_of_each_kind(tmp_path: Path, suffix: str, begins: bytes) -> None:
    path = tmp_path / f"curve.{suffix}"
    draw(outcomes(), "v", path, "ppo: v")
    assert path.read_bytes().startswith(begins)


def test_what_can_not_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="none of"):
        draw(outcomes(), "v", tmp_path / "curve.gif", "")
    with pytest.raises(WrongUse, match="told its w more than once"):
        draw(outcomes(), "w", tmp_path / "curve.png", "")
    with pytest.raises(ServiceFailed, match="can't be written: No such file"):
        draw(outcomes(), "v", tmp_path / "none" / "curve.png", "")


def test_a_curve_of_diverged_runs_warns_nobody() -> None:
    """Pytest takes a warning for a failure."""
    steps, mean, _ = mean_curve([[(0, 1.0), (1, 1.7e308)], [(0, 2.0), (1, 1.7e308)]])
    assert (steps, mean[0]) == ([0, 1], 1.5)
