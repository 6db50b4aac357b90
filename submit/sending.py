"""Sends a submission so that nothing is lost and nothing is sent twice.

Ledger first, then the service; after an unclear answer the queue is asked by name before
anything is sent again. SubmitJob has no client token, so this is the only protection. A
process that dies between the two leaves a row "intended", and the next one does the same.
All of a machine's homes take turns; who comes within seconds of another looks once more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from submit.backends import Backend, Found, JobStatus, NotNow, Standing, Unclear
from submit.errors import Refused, ServiceFailed
from submit.job_names import job_chunk, job_name_prefix, job_number
from submit.ledger import Ledger
from submit.pace import Pace
from submit.plan import DIGEST_TAG, Job, Submission
from submit.ranges import count_ranges
from submit.records import INTENDED, Fallback, Kept, Row, Scope
from submit.remainder import remainder
from submit.session import Clock
from submit.turns import Note, Turn

LOOK_AFTER_S = (0.0, 0.5, 2.0, 4.0)
"""Waits before each question by name: a new job may take a moment to be listed."""
LISTED_WITHIN_S = 6.0
"""What is not listed so long after it was intended was never sent."""
RIVAL_AFTER_S = (0.0, 0.5, 1.0)
"""Waits before each look for the jobs of somebody who has registered the definition a moment before."""
LOOK_HOLDS_S = 6.0
"""A look is taken for what stands so long; who waits longer before sending looks again."""
PUT_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Waits after an answer that asks for patience."""

Tell = Callable[[int, int], None]
"""Is told how many of how many jobs are done."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What stood when an experiment was looked for: definitions, and its jobs in the queue."""

    at: float
    definitions: tuple[Standing, ...] = ()
    jobs: tuple[Found, ...] = ()


def look(submission: Submission, backend: Backend, clock: Clock) -> Look:
    """What stands of the submission's experiment in its queue. One call, and where the definition
    stands one more: where it does not, nobody has sent any of it.
    """
    prefix = job_name_prefix(submission.experiment_id)
    with _before_sending():
        definitions = backend.definitions(submission.definition.name)
        jobs = backend.find(submission.queue_arn, prefix) if definitions else []
    return Look(at=clock.time(), definitions=tuple(definitions), jobs=tuple(jobs))


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, in jobs: sent now, found in the queue, known from before."""

    kept: Kept
    sent: int = 0
    adopted: int = 0
    known: int = 0


def deliver(
    submission: Submission,
    kept: Kept,
    *,
    ledger: Ledger,
    backend: Backend,
    clock: Clock,
    tell: Tell = lambda _done, _all: None,
    note: Note = lambda _: None,
    seen: Look | None = None,
) -> Delivery:
    """Makes each of the submission's jobs stand in the queue once. `seen` is a look at it that was
    taken already.

    3 calls for a submission of one job, fresh or not, one more for each further job; none
    when all is known to be sent. Raises ServiceFailed with what was sent until then; it is in
    the ledger, and the same call goes on.
    """
    with ledger.lock(kept.id, note) as turn:
        return deliver_locked(
            submission,
            kept,
            turn=turn,
            ledger=ledger,
            backend=backend,
            clock=clock,
            tell=tell,
            note=note,
            seen=seen,
        )


def deliver_locked(
    submission: Submission,
    kept: Kept,
    *,
    turn: Turn,
    ledger: Ledger,
    backend: Backend,
    clock: Clock,
    tell: Tell,
    note: Note,
    seen: Look | None = None,
) -> Delivery:
    """As `deliver`, for who has the experiment's turn."""
    kept_rows = ledger.rows(kept)
    rows = [row for row in kept_rows if row.number == submission.number]
    _refuse_other_queue(submission, rows)
    in_doubt = [row for row in rows if row.state == INTENDED]
    adopted = adopt(in_doubt, ledger=ledger, backend=backend, clock=clock)
    standing = {row.chunk: row.runs for row in rows if row not in in_doubt or row.name in adopted}
    known = len(rows) - len(in_doubt)
    sender = _Sender(kept, turn, ledger, backend, clock, note)
    sender.adopted = len(adopted)
    if remainder(submission, standing):
        rival = rival_at(turn, kept_rows)
        definition, found = _prepare(submission, backend, clock, seen, rival)
        new = [job for chunk, job in found.items() if chunk not in standing]
        for row in _rows_found(submission, kept, new, definition, backend):
            sender.keep_found(row)
            standing[row.chunk] = row.runs
        missing = remainder(submission, standing)
        for done, job in enumerate(missing):
            tell(done, len(missing))
            sender.bring(_row(submission, kept, job, definition), done, len(missing))
    return Delivery(kept=kept, sent=sender.sent, adopted=sender.adopted, known=known)


def rival_at(turn: Turn, rows: Iterable[Row]) -> float | None:
    """When somebody else on this machine was last about to send the experiment; None when the last
    to do so was who keeps these rows, all of whose jobs they have.
    """
    ours = any(row.intended == turn.last for row in rows)
    return None if ours or not turn.last else turn.last


def adopt(rows: Iterable[Row], *, ledger: Ledger, backend: Backend, clock: Clock) -> dict[str, str]:
    """Looks for jobs that were about to be sent when something went wrong, and keeps the ids of
    those that were; their ids by name. What is not among them was not sent.

    One call per experiment, queue and submission, and more, with waits between them, for what
    was intended only just now.
    """
    adopted: dict[str, str] = {}
    for (queue_arn, identity, number), group in _grouped(rows).items():
        for wait in LOOK_AFTER_S:
            clock.sleep(wait)
            found = _look(backend, queue_arn, identity, number)
            for row in [row for row in group if row.chunk in found]:
                adopted[row.name] = found[row.chunk].job_id
                ledger.sent(row, adopted[row.name])
                group.remove(row)
            if all(clock.time() - row.intended > LISTED_WITHIN_S for row in group):
                break
    return adopted


def _prepare(
    submission: Submission,
    backend: Backend,
    clock: Clock,
    seen: Look | None,
    rival: float | None,
) -> tuple[str, dict[int, Found]]:
    """The definition's ARN, and jobs by chunk that stand in the queue already. `rival` is when
    somebody else here was last about to send some.
    """
    wanted, number = submission.definition, submission.number
    if seen and rival and seen.at - rival < LISTED_WITHIN_S and not _is_all(submission, seen):
        seen = None  # what the rival has sent may not have been listed yet
    if rival and seen is None:
        seen = _look_behind(submission, backend, clock, rival)
    elif seen is None or clock.time() - seen.at > LOOK_HOLDS_S:
        seen = look(submission, backend, clock)
    stood = [one for one in seen.definitions if one.image == wanted.image]
    if stood:
        definition = max(stood, key=lambda one: one.revision).arn
        return definition, _by_chunk(seen.jobs, number)
    with _before_sending():
        definition, ever = backend.register(wanted)
        if ever and not seen.definitions:  # somebody was quicker, or it was deregistered
            for wait in RIVAL_AFTER_S:
                clock.sleep(wait)
                found = _look(backend, submission.queue_arn, submission.experiment_id, number)
                if found:
                    break
            return definition, found
    return definition, _by_chunk(seen.jobs, number)


def _look_behind(submission: Submission, backend: Backend, clock: Clock, rival: float) -> Look:
    """What stands, once what was sent at the time `rival` must be listed, or all is there."""
    for wait in LOOK_AFTER_S:
        clock.sleep(wait)
        seen = look(submission, backend, clock)
        if _is_all(submission, seen) or seen.at - rival >= LISTED_WITHIN_S:
            break
    return seen


def _is_all(submission: Submission, seen: Look) -> bool:
    """Whether each of the submission's jobs was seen."""
    return {job.chunk for job in submission.jobs} <= _by_chunk(seen.jobs, submission.number).keys()


@contextlib.contextmanager
def _before_sending() -> Iterator[None]:
    """What fails here says that nothing was sent."""
    try:
        yield
    except ServiceFailed as err:
        message = f"{err.message}\nnothing was sent"
        raise ServiceFailed(err.slug, message, err.hint) from err


class _Sender:
    """Sends jobs one after the other, and counts."""

    def __init__(
        self,
        kept: Kept,
        turn: Turn,
        ledger: Ledger,
        backend: Backend,
        clock: Clock,
        note: Note,
    ) -> None:
        self._kept = kept
        self._turn = turn
        self._ledger = ledger
        self._backend = backend
        self._clock = clock
        self._note = note
        self._pace = Pace(clock)
        self._doubt = False
        self.sent = 0
        self.adopted = 0

    def keep_found(self, row: Row) -> None:
        """A job that stands already."""
        self._ledger.intend(self._kept, row)
        self._ledger.sent(row, row.job_id or "")
        self.adopted += 1

    def bring(self, row: Row, done: int, of: int) -> None:
        """Sends one job.

        Raises ServiceFailed; the row stays only if something of it may stand in the queue.
        """
        self._doubt = False
        before = self._turn.last
        try:
            job_id = self._send(row)
        except ServiceFailed as err:
            if not self._doubt:
                self._ledger.forget(row)
                self._turn.mark(before)
            so_far = _so_far(done, of, doubt=self._doubt)
            raise ServiceFailed(err.slug, f"{err.message}\n{so_far}", err.hint) from err
        self.sent += 1
        self._keep(row, job_id, done + 1, of)

    def _send(self, row: Row) -> str:
        why: BaseException | None = None
        for wait in (0.0, *PUT_OFF_S):
            self._clock.sleep(wait)
            self._pace.wait()
            self._intend(row)  # each time: how old it is decides how long it is looked for
            try:
                job_id = self._call(row)
            except NotNow as err:
                why = err.__cause__
                self._pace.throttled()
                self._note(f"{why}; nothing was done, trying again")
            except Unclear as err:
                why = err
                self._doubt = True
                self._note(f"no clear answer ({err}); asking the queue whether the job is there")
                asked = self._intend(row)
                known = adopt(
                    [asked], ledger=self._ledger, backend=self._backend, clock=self._clock
                )
                if known:
                    return known[row.name]
            else:
                self._pace.taken()
                return job_id
        if isinstance(why, ServiceFailed):
            raise why
        raise ServiceFailed(
            "no-answer",
            f"AWS gave no clear answer, again and again: {why}",
            "the same line again finds out whether it was sent, and goes on",
        )

    def _intend(self, row: Row) -> Row:
        row = msgspec.structs.replace(row, intended=self._clock.time())
        self._ledger.intend(self._kept, row)
        self._turn.mark(row.intended)
        return row

    def _keep(self, row: Row, job_id: str, done: int, of: int) -> None:
        """The job's id into the ledger. Raises ServiceFailed with what was sent: the next look
        finds the job by its name.
        """
        try:
            self._ledger.sent(row, job_id)
        except ServiceFailed as err:
            message = f"{err.message}\n{_so_far(done, of, doubt=False)}"
            raise ServiceFailed(err.slug, message, err.hint) from err

    def _call(self, row: Row) -> str:
        job = Job(name=row.name, chunk=row.chunk, runs=row.runs, size=row.size, request=row.request)
        return self._backend.send(job, row.definition)


def _look(backend: Backend, queue_arn: str, identity: str, number: int) -> dict[int, Found]:
    """The jobs by chunk that stand in the queue."""
    return _by_chunk(backend.find(queue_arn, job_name_prefix(identity, number)), number)


def _by_chunk(jobs: Iterable[Found], number: int) -> dict[int, Found]:
    """The submission's jobs; of two for one chunk the older, so that all agree on one."""
    youngest_first = sorted(jobs, key=age, reverse=True)
    return {job_chunk(job.name): job for job in youngest_first if job_number(job.name) == number}


def age(job: Found) -> tuple[int, str]:
    """Orders jobs, the oldest first."""
    return job.created_ms, job.job_id


def _rows_found(
    submission: Submission,
    kept: Kept,
    jobs: Sequence[Found],
    definition: str,
    backend: Backend,
) -> Iterator[Row]:
    """What the ledger is to keep of jobs that were found. Which runs they have they say themselves:
    another version may have cut the experiment at other places. One call for 100.
    """
    seen = backend.poll([job.job_id for job in jobs]) if jobs else {}
    planned = {job.chunk: job for job in submission.jobs}
    for job in jobs:
        status = seen.get(job.job_id)
        if status and status.runs:
            row = found_row(kept, job, status, submission.queue_name, submission.queue_arn)
        elif job_chunk(job.name) in planned:
            row = _row(submission, kept, planned[job_chunk(job.name)], definition)
        else:  # not described yet, or not any more
            continue
        yield msgspec.structs.replace(row, job_id=job.job_id, intended=job.created_ms / 1000)


def found_row(kept: Kept, job: Found, status: JobStatus, queue_name: str, queue_arn: str) -> Row:
    """What the ledger is to keep of a job that somebody else has sent."""
    return Row(
        scope=kept.scope,
        experiment=kept.id,
        number=job_number(job.name),
        chunk=job_chunk(job.name),
        name=job.name,
        queue_name=queue_name,
        queue_arn=queue_arn,
        definition=status.definition,
        runs=status.runs,
        size=count_ranges(status.runs),
        request={"tags": {DIGEST_TAG: status.digest}} if status.digest else {},
        state=INTENDED,
        intended=job.created_ms / 1000,
        job_id=job.job_id,
    )


def _refuse_other_queue(submission: Submission, rows: Iterable[Row]) -> None:
    """An experiment stands in one queue: sent to another it would be there twice, unasked."""
    for row in rows:
        if row.queue_arn != submission.queue_arn:
            gone = " (another one of that name)" if row.queue_name == submission.queue_name else ""
            raise Refused(
                "other-queue",
                f"this experiment, {submission.experiment_id}, was sent to the queue "
                f"{row.queue_name}{gone} before",
                f"submit status {submission.experiment_id}; or the same line with --again, to run "
                f"it once more on {submission.queue_name}",
            )


def _grouped(rows: Iterable[Row]) -> dict[tuple[str, str, int], list[Row]]:
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.queue_arn, row.experiment, row.number), []).append(row)
    return groups


def _row(submission: Submission, kept: Kept, job: Job, definition: str) -> Row:
    return Row(
        scope=kept.scope,
        experiment=kept.id,
        number=submission.number,
        chunk=job.chunk,
        name=job.name,
        queue_name=submission.queue_name,
        queue_arn=submission.queue_arn,
        definition=definition,
        runs=job.runs,
        size=job.size,
        request=job.request,
        state=INTENDED,
        intended=0.0,
    )


def kept_experiment(
    submission: Submission, log_group: str, now: float, fallback: Fallback | None = None
) -> Kept:
    """What the ledger keeps of the submission's experiment."""
    return Kept(
        scope=Scope(submission.account, submission.region),
        id=submission.experiment_id,
        stack=submission.stack,
        name=submission.experiment.name,
        log_group=log_group,
        experiment=submission.experiment,
        created=now,
        fallback=fallback,
    )


def _so_far(done: int, of: int, *, doubt: bool) -> str:
    sent = f"{done} of {_jobs_were(of)} sent"
    if doubt:
        return f"{sent} for certain; the same line again finds out about the next, and goes on"
    if done == of:
        return f"{sent}; the same line again finds it by its name"
    return f"{sent}; the same line again sends the rest" if done else "nothing was sent"


def _jobs_were(count: int) -> str:
    """`1 job was`, `3 jobs were`."""
    return f"{count:,} job was" if count == 1 else f"{count:,} jobs were"
