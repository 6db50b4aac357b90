"""Sends runs again: those that failed or were lost, in a further submission of the experiment.

All under the experiment's lock: what stands is looked up, chosen, planned and sent in one piece,
so that two at the same time, or one after a crash, never send a run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from submit.backends import Backend, Found, JobStatus
from submit.errors import SubmitError, WrongUse
from submit.fleet import Fleet
from submit.job_names import job_chunk, job_name_prefix, job_number
from submit.keeping import Details
from submit.ledger import Ledger
from submit.plan import Submission, pinned_digest, plan_submission
from submit.progress import Progress
from submit.ranges import decode_ranges, encode_ranges
from submit.records import INTENDED, Kept, Row
from submit.runs import Selection, find_runs, select_runs
from submit.sending import Delivery, Tell, deliver_locked
from submit.session import Clock, Session
from submit.standing import JUST_SENT, LISTED_WITHIN_S, LOOK_AFTER_S, age, found_row, rival_at
from submit.states import RunState
from submit.turns import Note, Turn
from submit.watching import poll

AGAIN = frozenset({RunState.FAILED, RunState.LOST})
"""What is sent again when nothing else is said: not what was cancelled on purpose."""

QUEUES_CHANGED = frozenset({"aws-ClientException", "unknown-queue"})
"""Slugs of what is told when the fleet is not as it was when it was read."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """What came of sending runs again. `queues` has how many went to each queue, `before` how the
    experiment stood.
    """

    before: Progress
    queues: dict[str, int] = {}
    deliveries: tuple[Delivery, ...] = ()

    @property
    def runs(self) -> int:
        """How many runs were sent again."""
        return sum(self.queues.values())


def retry(
    session: Session,
    kept: Kept,
    fleet: Fleet,
    *,
    states: Collection[RunState],
    selection: Selection,
    queue: str | None,
    tell: Tell,
    note: Note,
) -> Retry:
    """Sends those of the selected runs again that are in one of the states: to `queue`, else each
    to the queue of its latest job. One submission a queue, in as few jobs as possible.

    Raises ServiceFailed with what was sent; the same again goes on.
    """
    ledger, backend = session.ledger(), session.backend(kept.scope)
    chosen = _chosen(kept, selection)
    with ledger.lock(kept.id, note) as turn:
        last = discover(
            kept, fleet, turn=turn, ledger=ledger, backend=backend, clock=session.clock, note=note
        )
        before = poll(session, [kept])[0]
        for row in before.rows:
            if row.state == INTENDED and row.number:  # the poll has looked: it was never sent
                ledger.forget(row)
        found = find_runs(before, Details(ledger, backend), states)
        wanted = [index for index in found if chosen is None or index in chosen]
        plans = _plan(session, before, fleet, _by_queue(before, wanted, queue), last + 1)
        deliveries = [
            deliver_locked(
                plan,
                kept,
                turn=turn,
                ledger=ledger,
                backend=backend,
                clock=session.clock,
                tell=tell,
                note=note,
            )
            for plan in plans
        ]
    return Retry(
        before=before,
        queues={plan.queue_name: sum(job.size for job in plan.jobs) for plan in plans},
        deliveries=tuple(deliveries),
    )


def with_fleet(
    send: Callable[[Fleet], Retry],
    fleet: Fleet,
    changed: Callable[[Fleet], Fleet | None],
    note: Note,
) -> Retry:
    """What `send` does with the fleet; where its queues are not what they were, with that which
    `changed` tells then.
    """
    try:
        return send(fleet)
    except SubmitError as err:
        newer = changed(fleet) if err.slug in QUEUES_CHANGED else None
        if newer is None:
            raise
        note(f"the queues of {newer.stack} are others now; sending to these")
        return send(newer)


def fall_back(
    session: Session,
    progress: Progress,
    fleet_of: Callable[[Kept], Fleet],
    changed: Callable[[Kept, Fleet], Fleet | None],
    note: Note,
) -> bool:
    """Sends the runs that have lost their machines too often to the experiment's fallback; whether
    there were any. What hinders it is told to `note`: looking goes on.
    """
    kept, fallback = progress.kept, progress.kept.fallback
    if not is_due(progress) or not fallback:
        return False

    def send(fleet: Fleet) -> Retry:
        return retry(
            session,
            kept,
            fleet,
            states={RunState.LOST},
            selection=Selection(runs=tuple(_due_runs(session, progress, fallback.queue))),
            queue=fallback.queue,
            tell=lambda _done, _all: None,
            note=note,
        )

    try:
        done = with_fleet(send, fleet_of(kept), lambda before: changed(kept, before), note)
    except SubmitError as err:
        hint = f"; {err.hint}" if err.hint else ""
        note(
            f"runs of {kept.id} that lost their machines could not go to {fallback.queue}: "
            f"{err.message}{hint}"
        )
        return False
    if done.runs:
        note(f"{done.runs:,} of {kept.id}, having lost their machines, went on to {fallback.queue}")
    return bool(done.runs)


def is_due(progress: Progress) -> bool:
    """Whether runs are lost that are not on the experiment's fallback yet."""
    fallback = progress.kept.fallback
    return fallback is not None and any(
        counts.get(RunState.LOST) and row.queue_name != fallback.queue
        for row, counts in zip(progress.rows, progress.standing, strict=True)
    )


def waiting_queue(progress: Progress) -> Row | None:
    """A job of the experiment of which runs wait; None when none do."""
    for row, counts in zip(progress.rows, progress.standing, strict=True):
        if row.stands and counts.get(RunState.WAITING):
            return row
    return None


def discover(
    kept: Kept,
    fleet: Fleet,
    *,
    turn: Turn,
    ledger: Ledger,
    backend: Backend,
    clock: Clock,
    note: Note,
) -> int:
    """Takes jobs of the experiment into the ledger that others have sent; the highest number of
    a submission that was seen. One call a queue of the fleet, and one per 100 jobs that were not
    known; more, with waits between them, while the service does not describe what it lists.
    """
    rows = ledger.rows(kept)
    rival = rival_at(turn, rows, backend)
    if rival is not None:  # what they have sent must be listed
        late_s = LISTED_WITHIN_S - max(0.0, clock.time() - rival)
        if late_s > 0:
            note(JUST_SENT)
            clock.sleep(late_s)
    known = {(row.number, row.chunk) for row in rows}
    names = {queue.arn: name for name, queue in fleet.queues.items()}
    listed = [(job, arn) for arn in names for job in backend.find(arn, job_name_prefix(kept.id))]
    strangers: dict[tuple[int, int], tuple[Found, str]] = {}
    # Of two for the same runs the older, so that all agree on one.
    for job, arn in sorted(listed, key=lambda one: age(one[0])):
        place = job_number(job.name), job_chunk(job.name)
        if place not in known:
            strangers.setdefault(place, (job, arn))
    seen = _described([job.job_id for job, _ in strangers.values()], backend, clock)
    for job, arn in strangers.values():
        status = seen.get(job.job_id)
        if status is not None and status.runs:
            row = found_row(kept, job, status, names[arn], arn)
            ledger.intend(kept, row)
            ledger.sent(row, job.job_id)
    numbers = [row.number for row in rows] + [job_number(job.name) for job, _ in listed]
    return max(numbers, default=0)


def _described(job_ids: Sequence[str], backend: Backend, clock: Clock) -> dict[str, JobStatus]:
    """What becomes of the jobs, some of which are so new that the service must be asked twice."""
    seen: dict[str, JobStatus] = {}
    for wait in LOOK_AFTER_S:
        unknown = [job_id for job_id in job_ids if job_id not in seen]
        if not unknown:
            break
        clock.sleep(wait)
        seen |= backend.poll(unknown)
    return seen


def _chosen(kept: Kept, selection: Selection) -> frozenset[int] | None:
    """The indexes that are meant; None for all."""
    if selection == Selection():
        return None
    return frozenset(run.index for run in select_runs(kept.experiment, kept.id, selection))


def _due_runs(session: Session, progress: Progress, queue: str) -> Iterable[int]:
    details = Details(session.ledger(), session.backend(progress.kept.scope))
    lost = find_runs(progress, details, {RunState.LOST})
    there = _by_queue(progress, lost, None).get(queue, [])
    return [index for index in lost if index not in set(there)]


def _by_queue(
    progress: Progress, indexes: Sequence[int], queue: str | None
) -> Mapping[str, list[int]]:
    """The runs by the queue to which they go."""
    if queue is not None:
        return {queue: list(indexes)} if indexes else {}
    latest: dict[int, str] = {}
    wanted = set(indexes)
    for row in progress.rows:
        if row.stands:
            latest |= {n: row.queue_name for n in decode_ranges(row.runs) if n in wanted}
    groups: dict[str, list[int]] = {}
    for index in indexes:
        groups.setdefault(latest[index], []).append(index)
    return groups


def _plan(
    session: Session,
    progress: Progress,
    fleet: Fleet,
    groups: Mapping[str, list[int]],
    first: int,
) -> list[Submission]:
    """A submission a queue, numbered from `first` on."""
    kept = progress.kept
    if (fleet.account, fleet.region) != (kept.scope.account, kept.scope.region):
        raise WrongUse(
            "other-fleet",
            f"the experiment {kept.id} is in the account {kept.scope.account}, "
            f"{kept.scope.region}; the fleet of {fleet.stack} is in {fleet.account}, {fleet.region}",
            f"submit retry {kept.id} --stack {kept.stack}",
        )
    digest = pinned_digest(row.request for row in progress.rows)
    return [
        plan_submission(
            kept.experiment,
            fleet,
            queue,
            user=session.user,
            runs=encode_ranges(indexes),
            number=first + place,
            tries=tries_on(kept, queue),
            digest=digest,
        )
        for place, (queue, indexes) in enumerate(groups.items())
    ]


def tries_on(kept: Kept, queue: str) -> int | None:
    """How many machines a run may lose on that queue before it goes to its fallback."""
    fallback = kept.fallback
    return fallback.after if fallback and queue != fallback.queue else None
