"""Which runs that W&B saw end badly are ours to put back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from submit.experiment import absent_runs
from submit.records import Kept
from submit.states import OVER
from submit.tracking.records import Tracked

if TYPE_CHECKING:
    from submit.runs import RunView

STATES = ("crashed", "failed", "finished", "killed", "preempted")
"""In which a run can be at W&B when it is over."""


class Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """Run numbers by experiment, and how many there are of experiments that were not sent from
    here.
    """

    ours: tuple[tuple[Kept, tuple[int, ...]], ...]
    others: dict[str, int]


def sort_tracked(tracked: Iterable[Tracked], experiments: Sequence[Kept]) -> Sorted:
    """Whose runs these are. Of an experiment that stands in two accounts the later counts, which
    is the first in `experiments`.
    """
    known = {kept.id: kept for kept in reversed(experiments)}
    numbers: dict[str, set[int]] = {}
    for one in tracked:
        numbers.setdefault(one.experiment, set()).add(one.index)
    ours = []
    others = {}
    for experiment, indexes in numbers.items():
        if experiment in known:
            kept = known[experiment]
            absent = set(absent_runs(kept.experiment, indexes))
            ours.append((kept, tuple(sorted(indexes - absent))))
        else:
            others[experiment] = len(indexes)
    return Sorted(ours=tuple(ours), others=others)


class Comeback(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment's runs to put back, and those that are under way all the same: W&B takes a
    run for crashed that it has not heard of for some minutes.
    """

    kept: Kept
    runs: tuple[int, ...]
    under_way: tuple[int, ...]


class Crashed(msgspec.Struct, frozen=True, kw_only=True):
    """What W&B saw end badly; `others` as in Sorted."""

    ours: tuple[Comeback, ...]
    others: dict[str, int]


def comeback(kept: Kept, views: Sequence[RunView]) -> Comeback:
    """Splits the runs by whether their jobs are over."""
    return Comeback(
        kept=kept,
        runs=tuple(view.run.index for view in views if view.state in OVER),
        under_way=tuple(view.run.index for view in views if view.state not in OVER),
    )
