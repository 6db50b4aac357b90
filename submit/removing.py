"""Forgets experiments: what the ledger knows of them, not what runs."""

from __future__ import annotations

from submit.cancelling import GOING
from submit.errors import Refused, ServiceFailed
from submit.records import Kept
from submit.session import Session
from submit.watching import known, poll


def forget(session: Session, kept: Kept, *, force: bool) -> None:
    """Takes the experiment out of the ledger. `force` also while jobs of it go on, which then
    nobody here knows of.

    Raises Refused when jobs go on, or when that can't be found out.
    """
    ledger = session.ledger()
    with ledger.lock(kept.id):
        if not force:
            try:
                now = poll(session, [kept])[0]
            except ServiceFailed as err:
                now = known(session, [kept])[0]
                if any(state in GOING for state in now.counts):
                    raise ServiceFailed(
                        err.slug,
                        f"{err.message}; when last seen, runs of {kept.id} went on",
                        err.hint,
                    ) from err
            going = sum(count for state, count in now.counts.items() if state in GOING)
            if going:
                raise Refused(
                    "still-going",
                    f"{going:,} runs of {kept.id} go on; forgotten here, they would run and cost "
                    "until they end, and only the same `submit run` line would find them",
                    f"submit cancel {kept.id}, or submit rm --force {kept.id}",
                )
        ledger.remove(kept)
