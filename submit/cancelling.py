"""Stops experiments, or some of their runs; never what somebody else has sent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack

import msgspec

from submit.errors import Refused
from submit.keeping import Details
from submit.progress import Progress, key, sent_again
from submit.ranges import decode_ranges
from submit.records import INTENDED, Kept, Row
from submit.runs import Selection, select_runs
from submit.session import Session
from submit.states import OVER, RunState
from submit.watching import poll

GOING = frozenset(RunState) - OVER - {RunState.UNSENT, RunState.UNKNOWN}


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """How the experiment stood, how many runs were told to stop, and how many were left alone
    because others have sent them.
    """

    before: Progress
    runs: int
    left: int


def stop(session: Session, experiments: Sequence[Kept], selection: Selection) -> list[Stopped]:
    """Stops whatever is selected of the experiments and is not over: one call for 50 jobs, or for
    50 runs where not all of a job are meant.

    With the lock of sending, so that no job is sent behind its back. Jobs of which nothing stands
    in the queue are forgotten when whole experiments are meant.
    """
    ledger = session.ledger()
    with ExitStack() as locks:
        for identity in sorted({kept.id for kept in experiments}):
            locks.enter_context(ledger.lock(identity))
        parts = [_part(session, before, selection) for before in poll(session, experiments)]
        for scope in dict.fromkeys(kept.scope for kept in experiments):
            ids = [
                one for stopped, some in parts if stopped.before.kept.scope == scope for one in some
            ]
            if ids:
                session.backend(scope).cancel(ids)
    return [stopped for stopped, _ in parts]


def refuse_others(stopped: Stopped) -> None:
    """Raises Refused when all that goes on was sent by others."""
    if stopped.left and not stopped.runs:
        rows = [row for row in stopped.before.rows if row.stands and not row.over]
        owners = ", ".join(sorted({row.owner or "" for row in rows}))
        raise Refused(
            "not-yours",
            f"what goes on of {stopped.before.kept.id} was sent by {owners}: ask them to stop it",
            f"submit status {stopped.before.kept.id}",
        )


def _part(
    session: Session, before: Progress, selection: Selection
) -> tuple[Stopped, Sequence[str]]:
    """What is to be stopped of an experiment, and the ids for it."""
    ledger, kept = session.ledger(), before.kept
    going = [row for row in before.rows if row.stands and not row.over]
    own = [row for row in going if row.owner in {None, session.user}]
    left = sum(_going(before, row) for row in going if row not in own)
    if selection == Selection():
        for row in before.rows:
            if row.state == INTENDED:  # the poll has looked: nothing stands in the queue
                ledger.forget(row)
        runs = sum(_going(before, row) for row in own)
        return Stopped(before=before, runs=runs, left=left), [str(row.job_id) for row in own]
    chosen = {run.index for run in select_runs(kept.experiment, kept.id, selection)}
    details = Details(ledger, session.backend(kept.scope))
    ids = [_job_id(row, n) for row in own for n in _children(before, row, chosen, details)]
    return Stopped(before=before, runs=len(ids), left=left), ids


def _going(before: Progress, row: Row) -> int:
    counts = before.standing[before.rows.index(row)]
    return sum(count for state, count in counts.items() if state in GOING)


def _children(
    before: Progress, row: Row, chosen: Collection[int], details: Details
) -> Sequence[int]:
    """Those of the job's runs that are meant, go on, and are in no later job."""
    gone = sent_again(before.rows)[key(row)]
    meant = [
        child
        for child, index in enumerate(decode_ranges(row.runs))
        if index in chosen and child not in gone
    ]
    found = details.of(row, meant) if meant else {}
    return [child for child, status in found.items() if status.state in GOING]


def _job_id(row: Row, child: int) -> str:
    return f"{row.job_id}:{child}" if row.size > 1 else str(row.job_id)
