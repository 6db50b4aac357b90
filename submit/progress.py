"""How far an experiment is: what the ledger knows of its jobs, added up. Pure.

A run that was sent again counts by its latest job alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from submit.experiment import run_count
from submit.history import History
from submit.ranges import decode_ranges
from submit.records import Kept, Row
from submit.states import OVER, RunState, bad_count

RowKey = tuple[int, int]
"""A job's submission and chunk."""
_LIKELY = (RunState.UNKNOWN, RunState.LOST, RunState.FAILED, RunState.CANCELLED)
"""What a run that was sent again had most likely become, where that is not known."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment and its jobs as last seen. `counts` has its runs by state, in RunState's
    order, none left out; times are seconds since 1970.
    """

    kept: Kept
    rows: tuple[Row, ...]
    standing: tuple[dict[RunState, int], ...]
    """Of each row, the runs by state that are in no later job."""
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
        return bad_count(self.counts)

    @property
    def tries(self) -> int:
        """How many tries of runs are known of; those of runs that go on are not among them."""
        return sum(row.tries for row in self.rows)

    @property
    def losses(self) -> int:
        """How many of these tries have lost their machine."""
        return sum(row.losses for row in self.rows)


def roll_up(
    kept: Kept,
    rows: Sequence[Row],
    forgotten: Collection[str] = (),
    histories: Mapping[RowKey, History] | None = None,
) -> Progress:
    """The experiment's progress; `forgotten` are ids of jobs that the service does not know,
    `histories` what is known of the runs of jobs of which some were sent again.
    """
    gone = sent_again(rows)
    standing = tuple(
        _less(
            _row_counts(row, forgotten),
            gone[key(row)],
            (histories or {}).get(key(row), {}),
        )
        for row in rows
    )
    counts: Counter[RunState] = Counter()
    for part in standing:
        counts.update(part)
    counts[RunState.UNSENT] += run_count(kept.experiment) - counts.total()
    going = [row for row in rows if not row.over and (row.stands or row.number == 0)]
    stopped = [row.stopped_ms for row in rows if row.stopped_ms]
    reasons = [row.reason for row, left in zip(rows, standing, strict=True) if row.reason and left]
    return Progress(
        kept=kept,
        rows=tuple(rows),
        standing=standing,
        counts={state: counts[state] for state in RunState if counts[state]},
        sent_at=min((row.intended for row in rows), default=None),
        ended_at=max(stopped) / 1000 if stopped and not going else None,
        seen=min((row.seen or 0.0 for row in going), default=None) or None,
        reason=reasons[0] if reasons else None,
    )


def key(row: Row) -> RowKey:
    """What tells the job from the experiment's others."""
    return row.number, row.chunk


def sent_again(rows: Sequence[Row]) -> dict[RowKey, frozenset[int]]:
    """By job, which of its runs (as numbers in the job) stand in a later one."""
    gone: dict[RowKey, frozenset[int]] = {}
    later: set[int] = set()
    for number in sorted({row.number for row in rows}, reverse=True):
        group = [row for row in rows if row.number == number]
        for row in group:
            gone[key(row)] = _children(row, later) if later else frozenset()
        for row in group:
            if row.stands and number:
                later.update(decode_ranges(row.runs))
    return gone


def _children(row: Row, runs: Collection[int]) -> frozenset[int]:
    return frozenset(child for child, run in enumerate(decode_ranges(row.runs)) if run in runs)


def _row_counts(row: Row, forgotten: Collection[str]) -> Mapping[RunState, int]:
    if not row.stands:
        # A retry that was not sent: its runs count where they stand.
        return {} if row.number else {RunState.UNSENT: row.size}
    counts = row.counts or {RunState.WAITING: row.size}
    if row.over or row.job_id not in forgotten:
        return counts
    known: Counter[RunState] = Counter()
    for state, count in counts.items():
        known[state if state in OVER else RunState.UNKNOWN] += count
    return known


def _less(
    counts: Mapping[RunState, int], gone: Collection[int], history: History
) -> dict[RunState, int]:
    """The counts without those runs."""
    left = Counter(counts)
    for child in gone:
        known = (history[child].state,) if child in history else ()
        state = next((one for one in (*known, *_LIKELY, *RunState) if left[one] > 0), None)
        if state:
            left[state] -= 1
    return {state: left[state] for state in RunState if left[state]}
