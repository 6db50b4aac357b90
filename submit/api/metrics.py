"""What runs have measured, and what that comes to over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from submit.api.seeing import runs
from submit.records import Kept
from submit.session import Session

if TYPE_CHECKING:
    from submit.interquartile import Interquartile
    from submit.progress import Progress
    from submit.results import Outcome, Parameters


def results(session: Session, progress: Progress) -> list[Outcome]:
    """The metrics of each run that has printed any: two calls per 100 runs."""
    from submit.results import MARK, collect  # noqa: PLC0415 # not for a plan

    kept = progress.kept
    views = runs(session, progress)
    streams = {stream: view.run for view in views for stream in view.streams}
    order = list(streams)
    backend = session.backend(kept.scope)
    lines = backend.search(kept.log_group, order, MARK) if order else ()
    return collect(streams, lines, order)


def results_from_files(kept: Kept, pattern: str) -> list[Outcome]:
    """The metrics of each run that has left a file of them (submit.metrics_files)."""
    from submit.experiment import iter_runs  # noqa: PLC0415 # not for a plan
    from submit.metrics_files import read_outcomes  # noqa: PLC0415 # likewise

    runs = list(iter_runs(kept.experiment))
    return read_outcomes(pattern, kept.id, runs, region=kept.scope.region)


def results_from_wandb(
    session: Session, kept: Kept, path: str, *, curves: bool = False
) -> list[Outcome]:
    """The metrics of each run that Weights & Biases knows in the project ENTITY/PROJECT; with
    `curves` also its history.
    """
    from submit.tracking.server import fetch_outcomes  # noqa: PLC0415 # loads wandb

    return fetch_outcomes(session.environ, kept, path, curves=curves)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the seeds of one combination of parameters. `interquartile` is None where
    scipy is not installed.
    """

    parameters: Parameters
    metric: str
    n: int
    mean: float
    std: float | None
    interquartile: Interquartile | None


def summarize(outcomes: Sequence[Outcome], over: Sequence[str] = ()) -> list[Summary]:
    """Each metric over the seeds of each combination of parameters; those named in `over` are
    taken together, each value of them a stratum of the bootstrap.

    Raises WrongUse for a parameter that there is not.
    """
    from submit.interquartile import interquartile, is_available  # noqa: PLC0415 # not for a plan
    from submit.results import check_over, samples, spread  # noqa: PLC0415 # likewise

    check_over(outcomes, over)
    known = is_available()
    return [
        Summary(
            parameters=sample.parameters,
            metric=sample.metric,
            **msgspec.structs.asdict(spread(sample.values)),
            interquartile=interquartile(sample.strata) if known else None,
        )
        for sample in samples(outcomes, over)
    ]


def draw_curves(outcomes: Sequence[Outcome], metric: str, path: Path, title: str) -> None:
    """The metric over the steps of training, as a picture (submit.picture)."""
    from submit.picture import draw  # noqa: PLC0415 # loads matplotlib

    draw(outcomes, metric, path, title)
