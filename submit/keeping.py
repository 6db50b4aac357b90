"""Learns what became of single runs, and keeps it in the ledger before the service forgets it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from submit.backends import Backend, RunStatus
from submit.history import add, is_whole, last_word
from submit.ledger import Ledger
from submit.records import Row
from submit.states import BAD, OVER, RunState

CALLS_A_LOOK = 20
"""How many calls, of 100 runs each, one look may spend on runs that are over; the next goes on."""
_AT_ONCE = 100


class Details:
    """The single runs of jobs: from the ledger, else from the service."""

    def __init__(self, ledger: Ledger, backend: Backend) -> None:
        self._ledger = ledger
        self._backend = backend

    def of(self, row: Row, children: Collection[int]) -> dict[int, RunStatus]:
        """What became of these runs of the job, by number: one call per 100 that are not over,
        or were not asked for before. Of what the service has forgotten, what is still known.
        """
        history = self._ledger.history(row)
        missing = [child for child in children if not is_whole(history, child)]
        if missing and row.job_id and not row.settled:
            seen = self._backend.runs(row.job_id, row.size, missing)
            fresh = add(history, seen)
            if fresh != history:
                self._ledger.remember(row, fresh, settled=False)
            history = {**fresh, **{status.child: status for status in seen}}
        return {child: history.get(child) or _left(row, history, child) for child in children}

    def which(self, row: Row, states: Collection[RunState]) -> dict[int, RunStatus]:
        """The job's runs in one of these states, brief or not: no call for those that ended badly
        in a job that is over; else one per 1,000 and state.
        """
        if not any(state in states for state in row.counts or {}) and row.over:
            return {}
        if row.size == 1:
            found: Collection[RunStatus] = self.of(row, [0]).values()
        elif row.over and (row.settled or set(states) <= BAD):
            history = self._ledger.history(row)
            found = [
                history.get(child) or _left(row, history, child)
                for child in (range(row.size) if not set(states) <= BAD else history)
            ]
        else:
            found = self._listed(row, states)
        return {status.child: status for status in found if status.state in states}

    def _listed(self, row: Row, states: Collection[RunState]) -> Collection[RunStatus]:
        assert row.job_id is not None
        found = self._backend.children(row.job_id, states)
        history = self._ledger.history(row)
        fresh = add(history, found)
        if fresh != history:
            self._ledger.remember(row, fresh, settled=False)
        return {**fresh, **{status.child: status for status in found}}.values()


def learn_ends(row: Row, ledger: Ledger, backend: Backend) -> dict[int, RunStatus]:
    """What became of each of an array's runs that ended badly: one call per 1,000."""
    assert row.job_id is not None
    history = ledger.history(row)
    fresh = add(history, backend.children(row.job_id, BAD))
    if fresh != history:
        ledger.remember(row, fresh, settled=False)
    return fresh


def settle(rows: Sequence[Row], ledger: Ledger, backend: Backend) -> None:
    """Keeps what became of the runs of jobs that are over, those that ended badly first, as far
    as CALLS_A_LOOK goes; the next time goes on.
    """
    calls = CALLS_A_LOOK
    for row in rows:
        if calls <= 0:
            return
        history = ledger.history(row)
        missing = [child for child in range(row.size) if not is_whole(history, child)]
        missing.sort(key=lambda child: child not in history)  # those that ended badly are there
        now = missing[: calls * _AT_ONCE]
        seen = backend.runs(row.job_id or "", row.size, now) if now else []
        calls -= -(-len(now) // _AT_ONCE)
        fresh = add(history, seen)
        # What is not told of a job that is over will not be told tomorrow either.
        done = len(now) == len(missing) or not seen
        ledger.remember(row, fresh, settled=done)


def _left(row: Row, history: dict[int, RunStatus], child: int) -> RunStatus:
    known = {n: status for n, status in history.items() if status.state in OVER}
    state = last_word(row.counts or {}, known, child, over=row.over)
    return RunStatus(child=child, state=state, brief=True)
