"""What stands of an experiment in its queue, and who else may be about to send some of it.

A job may take a moment until the service lists it, and nothing tells of one that is on its way:
hence the waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import msgspec

from submit.backends import Backend, Found, JobStatus, Standing
from submit.errors import ServiceFailed
from submit.job_names import job_chunk, job_name_prefix, job_number
from submit.ledger import Ledger
from submit.plan import DIGEST_TAG, Submission
from submit.ranges import count_ranges
from submit.records import INTENDED, Kept, Row
from submit.session import Clock
from submit.turns import Note, Turn

LOOK_AFTER_S = (0.0, 0.5, 2.0, 4.0)
"""Waits before each question by name: a new job may take a moment to be listed."""
LISTED_WITHIN_S = 6.0
"""What is not listed so long after it was intended was never sent."""
RIVAL_AFTER_S = (0.0, 0.5, 1.0)
"""Waits before each look for the jobs of somebody who has registered the definition a moment before."""
JUST_SENT = "the same was sent from this machine a moment ago; looking until it must be listed"
LOOK_HOLDS_S = 6.0
"""A look is taken for what stands so long; who waits longer before sending looks again."""


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


def rival_at(turn: Turn, rows: Iterable[Row], backend: Backend) -> float | None:
    """When somebody else on this machine was last about to send the experiment; None when the last
    to do so was who keeps these rows, all of whose jobs they have.
    """
    ours = any(row.intended == turn.last for row in rows)
    return None if ours or backend.prompt or not turn.last else turn.last


def adopt(rows: Iterable[Row], *, ledger: Ledger, backend: Backend, clock: Clock) -> dict[str, str]:
    """Looks for jobs that were about to be sent when something went wrong, and keeps the ids of
    those that were; their ids by name. What is not among them was not sent.

    One call per experiment, queue and submission, and more, with waits between them, for what
    was intended only just now.
    """
    adopted: dict[str, str] = {}
    for (queue_arn, identity, number), group in _grouped(rows).items():
        for wait in LOOK_AFTER_S[:1] if backend.prompt else LOOK_AFTER_S:
            clock.sleep(wait)
            found = _look_for(backend, queue_arn, identity, number)
            for row in [row for row in group if row.chunk in found]:
                adopted[row.name] = found[row.chunk].job_id
                ledger.sent(row, adopted[row.name])
                group.remove(row)
            if all(clock.time() - row.intended > LISTED_WITHIN_S for row in group):
                break
    return adopted


def prepare(
    submission: Submission,
    backend: Backend,
    clock: Clock,
    seen: Look | None,
    rival: float | None,
    note: Note,
) -> tuple[str, dict[int, Found]]:
    """The definition's ARN, and jobs by chunk that stand in the queue already. `rival` is when
    somebody else here was last about to send some.
    """
    wanted, number = submission.definition, submission.number
    if seen and rival and seen.at - rival < LISTED_WITHIN_S and not _is_all(submission, seen):
        seen = None  # what the rival has sent may not have been listed yet
    if rival and seen is None:
        seen = _look_behind(submission, backend, clock, rival, note)
    elif seen is None or clock.time() - seen.at > LOOK_HOLDS_S:
        seen = look(submission, backend, clock)
    stood = [one for one in seen.definitions if one.image == wanted.image]
    if stood:
        definition = max(stood, key=lambda one: one.revision).arn
        return definition, _by_chunk(seen.jobs, number)
    with _before_sending():
        definition, ever = backend.register(wanted)
        if ever and not seen.definitions:  # somebody was quicker, or it was deregistered
            for wait in RIVAL_AFTER_S[:1] if backend.prompt else RIVAL_AFTER_S:
                clock.sleep(wait)
                found = _look_for(backend, submission.queue_arn, submission.experiment_id, number)
                if found:
                    break
            return definition, found
    return definition, _by_chunk(seen.jobs, number)


def _look_behind(
    submission: Submission, backend: Backend, clock: Clock, rival: float, note: Note
) -> Look:
    """What stands, once what was sent at the time `rival` must be listed, or all is there."""
    for wait in LOOK_AFTER_S:
        if wait == LOOK_AFTER_S[1]:
            note(JUST_SENT)
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


def _look_for(backend: Backend, queue_arn: str, identity: str, number: int) -> dict[int, Found]:
    """The jobs by chunk that stand in the queue."""
    return _by_chunk(backend.find(queue_arn, job_name_prefix(identity, number)), number)


def _by_chunk(jobs: Iterable[Found], number: int) -> dict[int, Found]:
    """The submission's jobs; of two for one chunk the older, so that all agree on one."""
    youngest_first = sorted(jobs, key=age, reverse=True)
    return {job_chunk(job.name): job for job in youngest_first if job_number(job.name) == number}


def age(job: Found) -> tuple[int, str]:
    """Orders jobs, the oldest first."""
    return job.created_ms, job.job_id


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


def _grouped(rows: Iterable[Row]) -> dict[tuple[str, str, int], list[Row]]:
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.queue_arn, row.experiment, row.number), []).append(row)
    return groups
