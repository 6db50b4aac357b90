"""Looks at the service for what has become of experiments, and keeps it in the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from submit.backends import Backend, JobStatus
from submit.errors import ServiceFailed
from submit.ledger import Ledger
from submit.progress import Progress, roll_up
from submit.records import INTENDED, SENT, Kept, Row
from submit.sending import adopt
from submit.session import Session
from submit.states import BAD, RunState

LISTED_WITHIN_S = 60.0
"""A job that the service does not know so long after it was sent is forgotten, not new."""
PATIENCE = 5
"""How often in a row the service may fail before a watch gives up."""
PASSING = frozenset({"unreachable", "aws-ServerException", "aws-TooManyRequestsException"})
"""Slugs of failures that may pass by themselves."""


def poll(session: Session, experiments: Sequence[Kept]) -> list[Progress]:
    """Where the experiments stand now, in their order: one call for 100 jobs of a scope that
    are not over; a further one for an array that has just ended with failures.

    Raises ServiceFailed; `known` still tells what was seen last.
    """
    ledger = session.ledger()
    rows = {id(kept): ledger.rows(kept) for kept in experiments}
    forgotten: set[str] = set()
    for scope in dict.fromkeys(kept.scope for kept in experiments):
        going = [
            row
            for kept in experiments
            if kept.scope == scope
            for row in rows[id(kept)]
            if not row.over
        ]
        if going:
            forgotten |= _look(going, ledger, session.backend(scope), session)
    return [roll_up(kept, ledger.rows(kept), forgotten) for kept in experiments]


def known(session: Session, experiments: Sequence[Kept]) -> list[Progress]:
    """Where the experiments stood when last looked at; no call."""
    return [roll_up(kept, session.ledger().rows(kept)) for kept in experiments]


def wait(
    session: Session,
    kept: Kept,
    *,
    see: Callable[[Progress], None],
    trouble: Callable[[ServiceFailed], None],
) -> Progress:
    """Looks at the experiment until nothing more will be seen of it; `see` is shown each look,
    `trouble` a look that failed, which is tried again.

    Raises ServiceFailed when looking does not work any more.
    """
    began = session.clock.time()
    failures = 0
    while True:
        try:
            progress = poll(session, [kept])[0]
        except ServiceFailed as err:
            failures += 1
            if err.slug not in PASSING or failures > PATIENCE:
                raise
            trouble(err)
        else:
            failures = 0
            see(progress)
            if progress.is_stuck:
                return progress
        session.clock.sleep(pause_s(session.clock.time() - began))


def pause_s(watched_s: float) -> float:
    """How long until the next look, after having watched so long: a second at first, a quarter
    of a minute in the end.
    """
    return min(15.0, max(1.0, watched_s / 20))


def _look(going: Sequence[Row], ledger: Ledger, backend: Backend, session: Session) -> set[str]:
    """Brings the rows in the ledger up to date; ids of jobs that the service has forgotten."""
    unclear = [row for row in going if row.state == INTENDED]
    adopted = adopt(unclear, ledger=ledger, backend=backend, clock=session.clock)
    jobs = {row.job_id: row for row in going if row.state == SENT and row.job_id}
    jobs |= {adopted[row.name]: row for row in unclear if row.name in adopted}
    seen = backend.poll(list(jobs))
    now = session.clock.time()
    for job_id, status in seen.items():
        row = jobs[job_id]
        ledger.saw(
            row,
            counts=_counts(row, status, backend),
            reason=status.reason,
            over=status.over,
            started_ms=status.started_ms,
            stopped_ms=status.stopped_ms,
            seen=now,
        )
    return {
        job_id
        for job_id, row in jobs.items()
        if job_id not in seen and now - row.intended > LISTED_WITHIN_S
    }


def _counts(row: Row, status: JobStatus, backend: Backend) -> dict[RunState, int]:
    """The job's runs by state; at an array's end, what became of each that failed.

    Until then, and beyond the first thousand, the array's own reason stands for theirs.
    """
    bad = next((state for state in status.counts if state in BAD), None)
    if not (status.over and bad and row.size > 1):
        return status.counts
    counts = Counter(status.counts)
    for state in backend.failed_children(status.job_id).values():
        counts[bad] -= 1
        counts[state] += 1
    return {state: count for state, count in counts.items() if count}
