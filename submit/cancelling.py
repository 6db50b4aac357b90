"""Stops experiments."""

from __future__ import annotations

from submit.progress import Progress
from submit.records import INTENDED, SENT, Kept
from submit.session import Session
from submit.watching import poll


def stop(session: Session, kept: Kept) -> Progress:
    """Stops whatever of the experiment is not over; how it stood before.

    With the lock of sending, so that no job is sent behind its back.
    """
    ledger = session.ledger()
    with ledger.lock(kept.id):
        before = poll(session, [kept])[0]
        going = [row for row in before.rows if row.state == SENT and not row.over]
        session.backend(kept.scope).cancel([row.job_id for row in going if row.job_id])
        for row in before.rows:
            if row.state == INTENDED:  # the poll has looked for it: nothing stands in the queue
                ledger.forget(row)
    return before
