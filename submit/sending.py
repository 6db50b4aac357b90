"""Sends a submission so that nothing is lost and nothing is sent twice.

Ledger first, then the service; after an unclear answer the queue is asked by name before
anything is sent again. SubmitJob has no client token, so this is the only protection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from submit.backends import Backend, Unclear
from submit.backends.aws import Throttled
from submit.errors import ServiceFailed
from submit.experiment import run_count
from submit.ledger import INTENDED, SENT, Kept, Ledger, Row, Scope
from submit.plan import Job, Submission, job_name_prefix

LOOKS = 3
"""How often the queue is asked by name after an unclear answer: a new job may take a moment to
be listed."""
LOOK_SECONDS = (0.5, 2.0, 4.0)
PUT_OFF_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0)
"""After throttling; SubmitJob takes 50 calls a second in an account."""


class Clock(Protocol):
    """What sending needs of time."""

    def time(self) -> float:
        """Seconds since 1970."""

    def sleep(self, seconds: float, /) -> None:
        """Waits."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, in jobs: sent now, found in the queue, known from before."""

    kept: Kept
    sent: int = 0
    adopted: int = 0
    known: int = 0


def deliver(
    submission: Submission,
    log_group: str,
    *,
    ledger: Ledger,
    backend: Backend,
    clock: Clock,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Delivery:
    """Makes the submission's jobs stand in the queue, each once.

    Raises ServiceFailed; what was sent until then is in the ledger, and the same call goes on.
    """
    scope = Scope(submission.account, submission.region)
    kept = Kept(
        scope=scope,
        id=submission.experiment_id,
        stack=submission.stack,
        name=submission.experiment.name,
        log_group=log_group,
        experiment=submission.experiment,
        created=clock.time(),
    )
    with ledger.lock(kept.id):
        known = {(row.number, row.chunk): row for row in ledger.rows(kept)}
        todo = [job for job in submission.jobs if (submission.number, job.chunk) not in known]
        counts = {"sent": 0, "adopted": 0}
        for row in known.values():
            if row.state == INTENDED:
                counts[_settle(row, ledger, backend, clock)] += 1
        if todo:
            ledger.record(kept)
            definition, stood = backend.define(submission.definition)
            prefix = job_name_prefix(kept.id, submission.number)
            # Who else may have sent the experiment has used this definition.
            found = backend.find(submission.queue_arn, prefix) if stood else {}
            for done, job in enumerate(todo):
                progress(done, len(todo))
                row = _row(submission, scope, job, definition)
                ledger.intend(row)
                if job.name in found:
                    ledger.sent(row, found[job.name])
                    counts["adopted"] += 1
                else:
                    ledger.sent(row, _send(row, job, ledger, backend, clock))
                    counts["sent"] += 1
            progress(len(todo), len(todo))
        before = sum(row.state == SENT for row in known.values())
        return Delivery(kept=kept, known=before, **counts)


def settle(kept: Kept, *, ledger: Ledger, backend: Backend, clock: Clock) -> list[Row]:
    """The experiment's jobs; what an earlier command left unclear is looked up by name, and not
    sent.
    """
    rows = ledger.rows(kept)
    for row in rows:
        if row.state == INTENDED:
            found = backend.find(row.queue_arn, row.name)
            if row.name in found:
                ledger.sent(row, found[row.name])
    _ = clock
    return ledger.rows(kept)


def missing_runs(kept: Kept, rows: list[Row]) -> int:
    """How many runs of the experiment no job stands for."""
    return run_count(kept.experiment) - sum(
        row.size for row in rows if row.number == 0 and row.state == SENT
    )


def _settle(row: Row, ledger: Ledger, backend: Backend, clock: Clock) -> str:
    """Adopts what an interrupted command has sent, or sends it."""
    found = backend.find(row.queue_arn, row.name)
    if row.name in found:
        ledger.sent(row, found[row.name])
        return "adopted"
    job = Job(name=row.name, chunk=row.chunk, runs=row.runs, size=row.size, request=row.request)
    ledger.sent(row, _send(row, job, ledger, backend, clock))
    return "sent"


def _send(row: Row, job: Job, ledger: Ledger, backend: Backend, clock: Clock) -> str:
    for seconds in PUT_OFF_SECONDS:
        job_id = _try(row, job, ledger, backend, clock)
        if job_id:
            return job_id
        clock.sleep(seconds)
    raise ServiceFailed(
        "throttled",
        "AWS Batch has put the job off again and again (too many requests, or no clear answer)",
        "type the same line again in a minute: it goes on where it stopped",
    )


def _try(row: Row, job: Job, ledger: Ledger, backend: Backend, clock: Clock) -> str | None:
    """The job's id, None when the service wants to be asked again later."""
    try:
        return backend.send(job, row.definition)
    except Throttled:
        return None
    except Unclear:
        return _look(row, backend, clock)
    except ServiceFailed as err:
        if err.slug.startswith("aws-"):  # refused for good: nothing stands in the queue
            ledger.forget(row)
        raise


def _look(row: Row, backend: Backend, clock: Clock) -> str | None:
    for seconds in LOOK_SECONDS[:LOOKS]:
        clock.sleep(seconds)
        found = backend.find(row.queue_arn, row.name).get(row.name)
        if found:
            return found
    return None


def _row(submission: Submission, scope: Scope, job: Job, definition: str) -> Row:
    return Row(
        scope=scope,
        experiment=submission.experiment_id,
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
    )
