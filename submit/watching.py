"""Looks at the service for what has become of experiments, and keeps it in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from submit.backends import Backend, JobStatus
from submit.errors import ServiceFailed
from submit.history import History, refine
from submit.keeping import learn_ends, settle
from submit.ledger import Ledger
from submit.progress import Progress, RowKey, key, roll_up
from submit.ranges import count_ranges
from submit.records import INTENDED, SENT, Kept, Row
from submit.session import Session
from submit.standing import adopt
from submit.states import BAD, bad_count

LISTED_WITHIN_S = 60.0
"""A job that the service does not know so long after it was sent is forgotten, not new."""
PATIENCE = 5
"""How often in a row the service may fail before a watch gives up."""
PASSING = frozenset({"unreachable", "aws-ServerException", "aws-TooManyRequestsException"})
"""Slugs of failures that may pass by themselves."""


def poll(session: Session, experiments: Sequence[Kept]) -> list[Progress]:
    """Where the experiments stand now, in their order: one call for 100 jobs of a scope that
    are not over.

    Further ones once, when runs have ended: one per 1,000 that failed in an array (while it goes
    on, only for an experiment that is looked at alone or has a fallback), and, of what is over,
    one per 100 runs, up to keeping.CALLS_A_LOOK a look.
    Raises ServiceFailed; `known` still tells what was seen last.
    """
    ledger = session.ledger()
    forgotten: set[str] = set()
    for scope in dict.fromkeys(kept.scope for kept in experiments):
        here = [kept for kept in experiments if kept.scope == scope]
        closely = {kept.id for kept in here if len(experiments) == 1 or kept.fallback}
        rows = [row for kept in here for row in ledger.rows(kept) if not row.settled]
        if rows:
            look = _Look(ledger, session.backend(scope), session, closely)
            forgotten |= look.at([row for row in rows if not row.over])
            look.keep([row for row in rows if row.over])
    return [_progress(ledger, kept, forgotten) for kept in experiments]


def known(session: Session, experiments: Sequence[Kept]) -> list[Progress]:
    """Where the experiments stood when last looked at; no call."""
    return [_progress(session.ledger(), kept) for kept in experiments]


def wait(
    session: Session,
    look: Callable[[], list[Progress]],
    *,
    see: Callable[[list[Progress]], None],
    trouble: Callable[[ServiceFailed], None],
    timeout_s: float | None = None,
) -> list[Progress]:
    """Looks until nothing more will be seen of any experiment, or the time is over; `see` is
    shown each look, `trouble` a look that failed, which is tried again.

    Raises ServiceFailed when looking does not work any more.
    """
    began = session.clock.time()
    failures = 0
    while True:
        waited = session.clock.time() - began
        try:
            found = look()
        except ServiceFailed as err:
            failures += 1
            if err.slug not in PASSING or failures > PATIENCE:
                raise
            trouble(err)
        else:
            failures = 0
            see(found)
            if all(one.is_stuck for one in found) or (
                timeout_s is not None and waited >= timeout_s
            ):
                return found
        pause = pause_s(waited)
        session.clock.sleep(
            pause if timeout_s is None else max(0.1, min(pause, timeout_s - waited))
        )


def pause_s(watched_s: float) -> float:
    """How long until the next look, after having watched so long: a second at first, a quarter
    of a minute in the end.
    """
    return min(15.0, max(1.0, watched_s / 20))


def _progress(ledger: Ledger, kept: Kept, forgotten: Collection[str] = ()) -> Progress:
    rows = ledger.rows(kept)
    last = max((row.number for row in rows if row.stands), default=0)
    # Histories are read only where a run may stand twice.
    histories: dict[RowKey, History] = {
        key(row): ledger.history(row) for row in rows if row.number < last
    }
    return roll_up(kept, rows, forgotten, histories)


class _Look:
    """One look at jobs of one account and region."""

    def __init__(
        self, ledger: Ledger, backend: Backend, session: Session, closely: set[str]
    ) -> None:
        self._ledger = ledger
        self._backend = backend
        self._session = session
        self._closely = closely
        self._ended: list[Row] = []

    def at(self, going: Sequence[Row]) -> set[str]:
        """Brings the rows in the ledger up to date; ids of jobs that the service has forgotten."""
        clock = self._session.clock
        unclear = [row for row in going if row.state == INTENDED]
        adopted = adopt(unclear, ledger=self._ledger, backend=self._backend, clock=clock)
        jobs = {row.job_id: row for row in going if row.stands and row.job_id}
        jobs |= {adopted[row.name]: row for row in unclear if row.name in adopted}
        seen = self._backend.poll(list(jobs))
        for job_id, status in seen.items():
            self._saw(jobs[job_id], status)
        now = clock.time()
        return {
            job_id
            for job_id, row in jobs.items()
            if job_id not in seen and now - row.intended > LISTED_WITHIN_S
        }

    def keep(self, over: Sequence[Row]) -> None:
        """Keeps what became of the runs of jobs that are over, those that ended just now too."""
        settle([*self._ended, *over], self._ledger, self._backend)

    def _saw(self, row: Row, status: JobStatus) -> None:
        row = msgspec.structs.replace(row, state=SENT, job_id=status.job_id)
        if status.runs and status.runs != row.runs:  # somebody else's job, under the name of ours
            runs, size = status.runs, count_ranges(status.runs)
            row = msgspec.structs.replace(row, runs=runs, size=size)
        self._ledger.saw(
            row,
            runs=row.runs,
            size=row.size,
            counts=refine(status.counts, self._history(row, status)),
            reason=status.reason,
            over=status.over,
            started_ms=status.started_ms,
            stopped_ms=status.stopped_ms,
            seen=self._session.clock.time(),
            owner=status.owner,
        )
        if status.over and not status.run:
            self._ended.append(row)

    def _history(self, row: Row, status: JobStatus) -> History:
        """What is known of the job's runs, as far as its counts do not tell it."""
        if status.run and status.over:
            self._ledger.remember(row, {0: status.run}, settled=True)
        bad = bad_count(status.counts)
        if row.size == 1 or not bad:
            return {}
        history = self._ledger.history(row)
        known = sum(one.state in BAD for one in history.values())
        if bad > known and (status.over or row.experiment in self._closely):
            return learn_ends(row, self._ledger, self._backend)
        return history
