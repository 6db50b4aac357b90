"""Puts what was planned into the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from submit.api.planning import Plan, replanned
from submit.errors import ServiceFailed, SubmitError
from submit.records import Kept
from submit.session import Session
from submit.stacks import load_fleet

if TYPE_CHECKING:
    from submit.sending import Delivery


def send(
    session: Session,
    plan: Plan,
    *,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
    note: Callable[[str], None] = lambda _: None,
) -> Delivery:
    """Makes the planned jobs stand in the queue, each once, whatever was sent before.

    `tell` is told how many of how many jobs are done, `note` why it takes its time. Raises
    ServiceFailed with what was sent until then; the same call goes on.
    """
    try:
        return _deliver(session, plan, tell, note)
    except ServiceFailed as err:
        newer = _planned_anew(session, plan, err) if err.slug == "aws-ClientException" else None
        if newer is None:
            raise
        note(f"the queue {plan.submission.queue_name} is another one now; sending to that")
    return _deliver(session, newer, tell, note)


def _deliver(
    session: Session,
    plan: Plan,
    tell: Callable[[int, int], None],
    note: Callable[[str], None],
) -> Delivery:
    from submit.retrying import discover  # noqa: PLC0415 # with the ledger
    from submit.sending import deliver, kept_experiment  # noqa: PLC0415 # likewise

    submission = plan.submission
    kept = kept_experiment(submission, plan.fleet.log_group, session.clock.time(), plan.fallback)
    ledger, backend = session.ledger(), session.backend(kept.scope)
    delivery = deliver(
        submission,
        kept,
        ledger=ledger,
        backend=backend,
        clock=session.clock,
        tell=tell,
        note=note,
        seen=plan.seen,
    )
    if plan.fallback:
        ledger.fall_back(kept, plan.fallback)  # it may have been sent without
    if delivery.adopted:  # whoever has sent it may have sent runs of it again
        with ledger.lock(kept.id, note) as turn:
            discover(
                kept,
                plan.fleet,
                turn=turn,
                ledger=ledger,
                backend=backend,
                clock=session.clock,
                note=note,
            )
    return delivery


def _planned_anew(session: Session, plan: Plan, err: ServiceFailed) -> Plan | None:
    """The plan for the fleet as it is now, if its queue was replaced since the one was read that
    this plan was made for. Raises ServiceFailed when it is gone, with what `err` says.
    """
    if session.fleet:
        return None
    before = plan.submission
    try:
        fleet = load_fleet(session, fresh=True)
    except SubmitError as unknown:
        raise ServiceFailed(
            err.slug,
            f"{err.message}\nthe fleet, asked for again, is not known any more: {unknown.message}",
            unknown.hint,
        ) from err
    queue = fleet.queues.get(before.queue_name)
    if queue is None:
        raise ServiceFailed(
            "queue-gone",
            f"{err.message}\nthe stack {fleet.stack} has no queue {before.queue_name} any more; its "
            f"queues: {', '.join(sorted(fleet.queues)) or 'none'}",
            "submit queues",
        ) from err
    if queue.arn == before.queue_arn:
        return None
    return replanned(plan, fleet, session.user, before.digest)


@contextmanager
def attended(session: Session, kept: Kept) -> Iterator[None]:
    """While the block lasts, an experiment on the own machine goes on; what is not over at its end,
    or when this process dies, is cancelled. Waiting in the block ends with the experiment.
    """
    from submit.backends.local import LocalBackend  # noqa: PLC0415 # not for AWS

    backend = session.backend(kept.scope)
    assert isinstance(backend, LocalBackend), "nobody else has somebody to attend to it"
    names = [row.job_id for row in session.ledger().rows(kept) if row.job_id]
    clock = session.clock
    with backend.attend(names) as line:
        session.clock = line
        try:
            yield
        finally:
            session.clock = clock
