"""Stops, sends again, forgets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from submit.api.fleets import changed_fleet, fleet_of
from submit.api.planning import check_fallback
from submit.api.seeing import experiments, poll, runs
from submit.records import Fallback, Kept
from submit.session import Session

if TYPE_CHECKING:
    from submit.cancelling import Stopped
    from submit.fleet import Fleet
    from submit.retrying import Retry
    from submit.runs import Selection
    from submit.states import RunState
    from submit.tracking.resuming import Comeback, Crashed


def cancel(session: Session, kept: Kept, selection: Selection | None = None) -> Stopped:
    """Stops whatever is selected (all, when nothing is) and not over: one call for 50 jobs.

    Jobs of which nothing stands in the queue are forgotten, so that the same `submit run`
    sends them. Raises Refused when all that goes on was sent by others.
    """
    from submit.cancelling import refuse_others  # noqa: PLC0415 # with the ledger

    (stopped,) = cancel_all(session, [kept], selection)
    refuse_others(stopped)
    return stopped


def cancel_all(
    session: Session, experiments: Sequence[Kept], selection: Selection | None = None
) -> list[Stopped]:
    """As `cancel` of each, in as few calls together; what others have sent is left alone."""
    from submit.cancelling import stop  # noqa: PLC0415 # with the ledger
    from submit.runs import Selection  # noqa: PLC0415 # likewise

    return stop(session, experiments, selection or Selection())


def retry(
    session: Session,
    kept: Kept,
    selection: Selection | None = None,
    *,
    states: Collection[RunState] = (),
    queue: str | None = None,
    fallback: Fallback | None = None,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
    note: Callable[[str], None] = lambda _: None,
) -> Retry:
    """Sends runs again, in as few jobs as possible: the selected ones that are in one of the
    states (failed or lost, when none is given), to `queue`, else to that of their latest job.

    They keep their numbers, parameters and Weights & Biases ids. Raises ServiceFailed with what
    was sent until then; the same call goes on.
    """
    from submit import retrying  # noqa: PLC0415 # with the ledger
    from submit.runs import Selection  # noqa: PLC0415 # likewise

    fleet = fleet_of(session, kept)
    if fallback:
        check_fallback(session, kept.experiment, fleet, queue or "", fallback)
        session.ledger().fall_back(kept, fallback)
        kept = msgspec.structs.replace(kept, fallback=fallback)

    def send(fleet: Fleet) -> Retry:
        return retrying.retry(
            session,
            kept,
            fleet,
            states=states or retrying.AGAIN,
            selection=selection or Selection(),
            queue=queue,
            tell=tell,
            note=note,
        )

    return retrying.with_fleet(
        send, fleet, lambda before: changed_fleet(session, kept, before), note
    )


def remove(session: Session, kept: Kept, *, force: bool = False) -> None:
    """Forgets the experiment here; nothing of it is stopped, and its logs and W&B runs stay.

    Raises Refused while runs of it go on, unless `force`.
    """
    from submit.removing import forget  # noqa: PLC0415 # with the ledger

    forget(session, kept, force=force)


def crashed_runs(session: Session, path: str, states: Sequence[str]) -> Crashed:
    """The runs of experiments from here that are in one of these states in W&B's project
    ENTITY/PROJECT, and whether they are over here too.
    """
    from submit.runs import Selection  # noqa: PLC0415 # not for a plan
    from submit.tracking.resuming import Crashed, comeback, sort_tracked  # noqa: PLC0415 # likewise
    from submit.tracking.server import fetch_tracked  # noqa: PLC0415 # loads wandb

    found = sort_tracked(fetch_tracked(session.environ, path, states), experiments(session))
    ours = [(kept, Selection(runs=numbers)) for kept, numbers in found.ours if numbers]
    now = poll(session, [kept for kept, _ in ours])
    return Crashed(
        ours=tuple(
            comeback(kept, runs(session, progress, selection))
            for (kept, selection), progress in zip(ours, now, strict=True)
        ),
        others=found.others,
    )


def put_back(
    session: Session,
    crashed: Comeback,
    *,
    queue: str | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Retry:
    """Sends those runs again, however they ended here: W&B's word counts."""
    from submit.runs import Selection  # noqa: PLC0415 # not for a plan
    from submit.states import OVER  # noqa: PLC0415 # likewise

    selection = Selection(runs=crashed.runs)
    return retry(session, crashed.kept, selection, states=OVER, queue=queue, note=note)
