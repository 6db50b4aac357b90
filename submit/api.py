"""The verbs as functions: for scripts, notebooks, and the command line, which uses nothing else.

Time, user and environment come in through `Session`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from submit.errors import WrongUse
from submit.experiment import Experiment, Run, experiment_id, nth_run, run_count
from submit.fleet import Fleet
from submit.plan import Submission, find_queue, plan_submission
from submit.stacks import Where, load_fleet

TYPE_CHECKING = False  # not typing's: it takes a tenth of a dry run
if TYPE_CHECKING:
    from submit.backends import Backend, JobStatus, RunStatus
    from submit.ledger import Kept, Ledger, Row
    from submit.results import Result
    from submit.sending import Delivery
    from submit.states import RunState


class Session(msgspec.Struct, kw_only=True):
    """Who asks, where, and when it is."""

    where: Where
    user: str
    backend: Callable[[str], Backend] | None = None
    """The backend of a region; None for AWS."""
    clock: object = time

    @classmethod
    def from_environment(cls, *, stack: str | None = None, fleet: str | None = None) -> Session:
        """The session of this process: its environment, its folder, its user."""
        environ = dict(os.environ)
        where = Where(environ=environ, cwd=Path.cwd(), stack=stack, fleet=fleet)
        return cls(where=where, user=environ.get("USER") or environ.get("LOGNAME") or "unknown")


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment as it stands: its runs by state.

    `unsent` are runs that no job stands for; `asked` is False where the last word is the
    ledger's, because the service has forgotten the jobs.
    """

    kept: Kept
    rows: list[Row]
    counts: dict[RunState, int]
    runs: int
    unsent: int
    over: bool
    started_ms: int | None
    stopped_ms: int | None
    reason: str | None


class RunDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A run and what has become of it."""

    run: Run
    status: RunStatus


def fleet(session: Session, *, fresh: bool = False) -> Fleet:
    """The team's queues."""
    return load_fleet(session.where, fresh=fresh)


def plan(
    session: Session, describe: Callable[[Fleet], Experiment], queue: str
) -> tuple[Submission, Fleet]:
    """What would be sent, exactly; nothing is sent.

    `describe` makes the experiment for a fleet. A queue that is not there is looked for once
    more in a fresh document.
    """
    found = fleet(session)
    if queue not in found.queues:
        found = fleet(session, fresh=True)
    find_queue(found, queue)
    return plan_submission(describe(found), found, queue, user=session.user), found


def send(
    session: Session,
    submission: Submission,
    fleet: Fleet,
    *,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Delivery:
    """Makes the jobs stand in the queue, each once, whatever was sent before."""
    from submit.sending import deliver  # noqa: PLC0415 # a dry run does without

    with ledger(session) as book:
        return deliver(
            submission,
            fleet.log_group,
            ledger=book,
            backend=backend(session, submission.region),
            clock=session.clock,  # type: ignore[arg-type] # the module time is one
            progress=progress,
        )


def next_generation(session: Session, experiment: Experiment, fleet: Fleet) -> Experiment:
    """The same request as an experiment of its own: the first generation that was not asked for."""
    from submit.ledger import Scope  # noqa: PLC0415 # a dry run does without

    with ledger(session) as book:
        known = {kept.id for kept in book.experiments(Scope(fleet.account, fleet.region))}
    while experiment_id(experiment) in known:
        experiment = msgspec.structs.replace(experiment, generation=experiment.generation + 1)
    return experiment


def experiments(session: Session) -> list[Kept]:
    """All experiments that were submitted from here, newest first."""
    with ledger(session) as book:
        return book.experiments()


def find(session: Session, reference: str) -> Kept:
    """The experiment of that id, beginning of an id, name, or `latest`."""
    with ledger(session) as book:
        return book.find(reference)


def status(session: Session, kept: Sequence[Kept]) -> list[Status]:
    """How the experiments stand: one call for 100 jobs, however many runs they have."""
    from submit.sending import missing_runs, settle  # noqa: PLC0415 # a dry run does without

    with ledger(session) as book:
        found: list[tuple[Kept, list[Row]]] = []
        for one in kept:
            there = backend(session, one.scope.region)
            rows = settle(one, ledger=book, backend=there, clock=session.clock)  # type: ignore[arg-type] # the module time is one
            found.append((one, rows))
        _poll(session, book, [row for _, rows in found for row in rows])
        return [_status(one, book.rows(one), missing_runs(one, rows)) for one, rows in found]


def runs(session: Session, kept: Kept, wanted: Sequence[int]) -> list[RunDetail]:
    """What has become of those runs: one call for 100 of them. A run that was sent again is
    told by its last job.
    """
    there = backend(session, kept.scope.region)
    found: dict[int, RunStatus] = {}
    for row, children, indexes in _places(session, kept, wanted):
        for one in there.runs(row.job_id or "", row.size, children):
            found[indexes[one.child if row.size > 1 else 0]] = one
    return [
        RunDetail(run=nth_run(kept.experiment, index), status=found[index])
        for index in wanted
        if index in found
    ]


def first_failure(session: Session, kept: Kept) -> RunDetail | None:
    """The failed run with the lowest index, None when none has failed: two calls."""
    from submit.ranges import decode_ranges  # noqa: PLC0415 # rarely
    from submit.states import BAD  # noqa: PLC0415 # rarely

    with ledger(session) as book:
        rows = book.rows(kept)
    there = backend(session, kept.scope.region)
    for row in rows:
        if row.job_id and any((row.counts or {}).get(state) for state in BAD):
            children = there.failed_children(row.job_id, row.size)
            indexes = list(decode_ranges(row.runs))
            for detail in runs(session, kept, [indexes[child] for child in children[:1]]):
                return detail
    return None


def tail(session: Session, kept: Kept, detail: RunDetail, lines: int) -> list[str]:
    """The last lines of a run's last attempt."""
    if not detail.status.streams:
        return []
    there = backend(session, kept.scope.region)
    found = there.tail(kept.log_group, detail.status.streams[-1], lines)
    return [line.text for line in found[-lines:]]


def whole_log(session: Session, kept: Kept, detail: RunDetail) -> list[str]:
    """All lines of all attempts of a run."""
    there = backend(session, kept.scope.region)
    lines: list[str] = []
    for stream in detail.status.streams:
        token = None
        while True:  # the end is where the token stays the same (GetLogEvents)
            some, after = there.follow(kept.log_group, stream, token)
            lines += [line.text for line in some]
            if after == token or after is None:
                break
            token = after
    return lines


def follow(
    session: Session, kept: Kept, details: Sequence[RunDetail], *, pause: float = 1.0
) -> Iterator[tuple[RunDetail, str]]:
    """The runs' lines as they come, until all of the runs are over."""
    from submit.states import OVER  # noqa: PLC0415 # rarely

    there = backend(session, kept.scope.region)
    tokens: dict[str, str | None] = {}
    current = list(details)
    while True:
        over = all(detail.status.state in OVER for detail in current)
        for detail in current:
            for stream in detail.status.streams:
                lines, tokens[stream] = there.follow(kept.log_group, stream, tokens.get(stream))
                yield from ((detail, line.text) for line in lines)
        if over:
            return
        session.clock.sleep(pause)  # type: ignore[attr-defined] # the module time is one
        current = runs(session, kept, [detail.run.index for detail in current])


def results(session: Session, kept: Kept) -> list[Result]:
    """The metrics that each run has printed last: two calls for 100 runs."""
    from submit.results import MARK, Result, last_metrics  # noqa: PLC0415 # rarely

    details = runs(session, kept, range(run_count(kept.experiment)))
    streams = [detail.status.streams[-1] for detail in details if detail.status.streams]
    there = backend(session, kept.scope.region)
    found = last_metrics(there.search(kept.log_group, streams, MARK))
    return [
        Result(
            run=detail.run,
            metrics=found.get(detail.status.streams[-1], {}) if detail.status.streams else {},
        )
        for detail in details
    ]


def cancel(session: Session, kept: Kept) -> tuple[int, dict[str, str]]:
    """Stops all that is not over; how many jobs were told, and what went wrong by job id."""
    (now,) = status(session, [kept])
    left = [row.job_id for row in now.rows if row.job_id and not row.over]
    failed = backend(session, kept.scope.region).cancel(left) if left else {}
    return len(left) - len(failed), failed


def ledger(session: Session) -> Ledger:
    """The ledger of runfleet's home."""
    from submit.home import home  # noqa: PLC0415 # a dry run does without
    from submit.ledger import Ledger  # noqa: PLC0415 # likewise

    return Ledger(home(session.where.environ))


def backend(session: Session, region: str) -> Backend:
    """Where jobs of that region go."""
    if session.backend is None:
        from submit.backends.aws import AwsBackend  # noqa: PLC0415 # a dry run does without

        made: dict[str, Backend] = {}
        session.backend = lambda name: made.setdefault(name, AwsBackend(name))
    return session.backend(region)


def _poll(session: Session, book: Ledger, rows: Sequence[Row]) -> None:
    """Asks for all jobs that are not over, and keeps the answers."""
    now = time.time()
    for region in {row.scope.region for row in rows}:
        open_rows = {
            row.job_id: row
            for row in rows
            if row.scope.region == region and row.job_id and not row.over
        }
        if not open_rows:
            continue
        found: Mapping[str, JobStatus] = backend(session, region).poll(list(open_rows))
        for job_id, job in found.items():
            book.saw(
                open_rows[job_id],
                counts=job.counts,
                reason=job.reason,
                over=job.over,
                started_ms=job.started_ms,
                stopped_ms=job.stopped_ms,
                seen=now,
            )


def _status(kept: Kept, rows: list[Row], unsent: int) -> Status:
    from submit.states import RunState  # noqa: PLC0415 # a dry run does without

    counts: dict[RunState, int] = {}
    for row in rows:
        seen = row.counts or {RunState.UNKNOWN if row.job_id else RunState.WAITING: row.size}
        for state, count in seen.items():
            counts[state] = counts.get(state, 0) + count
    started = [row.started_ms for row in rows if row.started_ms]
    stopped = [row.stopped_ms for row in rows if row.stopped_ms]
    over = bool(rows) and all(row.over for row in rows)
    return Status(
        kept=kept,
        rows=rows,
        counts=counts,
        runs=run_count(kept.experiment),
        unsent=unsent,
        over=over,
        started_ms=min(started, default=None),
        stopped_ms=max(stopped, default=None) if over else None,
        reason=next((row.reason for row in rows if row.reason), None),
    )


def _places(
    session: Session, kept: Kept, wanted: Sequence[int]
) -> list[tuple[Row, list[int], dict[int, int]]]:
    """For each job, which of its children are wanted, and which runs those are."""
    from submit.ranges import decode_ranges  # noqa: PLC0415 # rarely

    with ledger(session) as book:
        rows = [row for row in book.rows(kept) if row.job_id]
    left = set(wanted)
    places = []
    for row in reversed(rows):  # the last job of a run is the one that counts
        indexes = {child: run for child, run in enumerate(decode_ranges(row.runs)) if run in left}
        left -= set(indexes.values())
        if indexes:
            places.append((row, list(indexes), indexes))
    if left and not rows:
        raise WrongUse(
            "nothing-sent",
            f"no job of the experiment {kept.id} was sent",
            "type the submit run line again: it goes on where it stopped",
        )
    return places
