"""How far an experiment is: what the ledger knows of its jobs, added up. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from submit.experiment import run_count
from submit.records import SENT, Kept, Row
from submit.states import BAD, OVER, RunState


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment and its jobs as last seen. `counts` has its runs by state, in RunState's
    order, none left out; times are seconds since 1970.
    """

    kept: Kept
    rows: tuple[Row, ...]
    counts: dict[RunState, int]
    sent_at: float | None
    ended_at: float | None
    seen: float | None
    """Of the jobs that are not over, when the one looked at least lately was."""
    reason: str | None
    """What the service says of a job that waits, or why one failed."""

    @property
    def runs(self) -> int:
        """How many runs the experiment has."""
        return sum(self.counts.values())

    @property
    def is_over(self) -> bool:
        """Whether every run has ended."""
        return all(state in OVER for state in self.counts)

    @property
    def is_stuck(self) -> bool:
        """Whether nothing more will be seen of the runs that have not ended."""
        return all(state in OVER | {RunState.UNKNOWN, RunState.UNSENT} for state in self.counts)

    @property
    def bad(self) -> int:
        """How many runs ended otherwise than done."""
        return sum(count for state, count in self.counts.items() if state in BAD)


def roll_up(kept: Kept, rows: Sequence[Row], forgotten: Collection[str] = ()) -> Progress:
    """The experiment's progress; `forgotten` are ids of jobs that the service does not know."""
    counts: Counter[RunState] = Counter()
    for row in rows:
        counts.update(_row_counts(row, forgotten))
    counts[RunState.UNSENT] += run_count(kept.experiment) - counts.total()
    going = [row for row in rows if not row.over]
    stopped = [row.stopped_ms for row in rows if row.stopped_ms]
    reasons = [row.reason for row in rows if row.reason]
    return Progress(
        kept=kept,
        rows=tuple(rows),
        counts={state: counts[state] for state in RunState if counts[state]},
        sent_at=min((row.intended for row in rows), default=None),
        ended_at=max(stopped) / 1000 if stopped and not going else None,
        seen=min((row.seen or 0.0 for row in going), default=None) or None,
        reason=reasons[0] if reasons else None,
    )


def _row_counts(row: Row, forgotten: Collection[str]) -> Mapping[RunState, int]:
    if row.state != SENT:
        return {RunState.UNSENT: row.size}
    counts = row.counts or {RunState.WAITING: row.size}
    if row.over or row.job_id not in forgotten:
        return counts
    known: Counter[RunState] = Counter()
    for state, count in counts.items():
        known[state if state in OVER else RunState.UNKNOWN] += count
    return known
