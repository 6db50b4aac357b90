"""Sends a submission so that nothing is lost and nothing is sent twice.

Ledger first, then the service; after an unclear answer the queue is asked by name before
anything is sent again. SubmitJob has no client token, so this is the only protection. A
process that dies between the two leaves a row "intended", and the next one does the same.
All of a machine's homes take turns; who comes within seconds of another looks once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from submit.backends import Backend, Found, NotNow, Unclear
from submit.errors import Refused, ServiceFailed
from submit.job_names import job_chunk
from submit.ledger import Ledger
from submit.pace import Pace
from submit.plan import Job, Submission
from submit.records import INTENDED, Fallback, Kept, Row, Scope
from submit.remainder import remainder
from submit.session import Clock
from submit.standing import Look, adopt, found_row, prepare, rival_at
from submit.turns import Note, Turn

PUT_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Waits after an answer that asks for patience."""

Tell = Callable[[int, int], None]
"""Is told how many of how many jobs are done."""


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
        rival = rival_at(turn, kept_rows, backend)
        definition, found = prepare(submission, backend, clock, seen, rival, note)
        new = [job for chunk, job in found.items() if chunk not in standing]
        for row in _rows_found(submission, kept, new, definition, backend):
            sender.keep_found(row)
            standing[row.chunk] = row.runs
        missing = remainder(submission, standing)
        for done, job in enumerate(missing):
            tell(done, len(missing))
            sender.bring(_row(submission, kept, job, definition), done, len(missing))
    return Delivery(kept=kept, sent=sender.sent, adopted=sender.adopted, known=known)


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
