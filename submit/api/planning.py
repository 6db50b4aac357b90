"""From an experiment to the exact requests; nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from submit.api.fleets import fleet_here, own_machine
from submit.errors import Refused, WrongUse
from submit.experiment import Experiment, experiment_id
from submit.fleet import LOCAL, SPOT_SUFFIX, Fleet
from submit.plan import MAX_RETRIES, Submission, plan_submission
from submit.records import Fallback, Scope
from submit.session import Session
from submit.stacks import load_fleet
from submit.tracking.wanted import with_tracking

if TYPE_CHECKING:
    from submit.standing import Look


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent, the fleet for which it was planned, and where runs go that lose their
    machines too often.
    """

    submission: Submission
    fleet: Fleet
    fallback: Fallback | None = None
    seen: Look | None = None
    """What stood of it when its image was looked at, so that sending need not look again."""


def plan(
    session: Session, experiment: Experiment, queue: str, fallback: Fallback | None = None
) -> Plan:
    """The exact requests that put the experiment on the queue; nothing is sent. With a fallback
    its runs lose so many machines there at most, and then go to that queue.

    An experiment without an image takes the fleet's. Raises WrongUse and Refused for what can't
    work, before anything is sent.
    """
    if queue == LOCAL:
        return _plan_here(session, experiment, fallback)
    fleet = load_fleet(session)
    if queue not in fleet.queues and not session.fleet:
        fleet = load_fleet(session, fresh=True)  # the stack may have got it only just now
    if not experiment.image:
        experiment = msgspec.structs.replace(experiment, image=_image(fleet))
    experiment = with_tracking(experiment, fleet, lambda: bool(_wandb_key(session)))
    if fallback:
        check_fallback(session, experiment, fleet, queue, fallback)
    submission = plan_submission(
        experiment, fleet, queue, user=session.user, tries=fallback.after if fallback else None
    )
    return Plan(submission=submission, fleet=fleet, fallback=fallback)


def _plan_here(session: Session, experiment: Experiment, fallback: Fallback | None) -> Plan:
    from submit.local.planning import at_home  # noqa: PLC0415 # not for AWS

    if fallback:
        raise WrongUse(
            "local-fallback",
            "nobody takes the own machine away: there is nothing to fall back from",
            "leave --fallback out",
        )
    experiment = at_home(experiment, session.environ, session.cwd)
    experiment = with_tracking(experiment, own_machine(session), lambda: bool(_wandb_key(session)))
    fleet = fleet_here(session, experiment)
    submission = plan_submission(experiment, fleet, LOCAL, user=session.user)
    return Plan(submission=submission, fleet=fleet)


def next_generation(session: Session, plan: Plan) -> Experiment:
    """The planned experiment, to be run once more: in the first generation that was not sent
    from here yet.
    """
    experiment = plan.submission.experiment
    scope = Scope(plan.fleet.account, plan.fleet.region)
    while session.ledger().has(scope, experiment_id(experiment)):
        experiment = msgspec.structs.replace(experiment, generation=experiment.generation + 1)
    return experiment


def check_image(
    session: Session, plan: Plan, *, note: Callable[[str], None] = lambda _: None
) -> Plan:
    """The plan, with its image pinned to the digest that it has now: a tag that moves later does
    not change half an experiment. What was sent before goes on with the image it began with.

    `note` is told when the image's registry can't be asked. Raises Refused for an image that
    there is not, or that is built for other machines than the queue's.
    """
    from submit.images import check  # noqa: PLC0415 # speaks HTTP
    from submit.standing import look  # noqa: PLC0415 # with the ledger

    before = plan.submission
    if plan.fleet.account == LOCAL:
        return plan
    begun, digest = check.digest_sent(session, before)
    if begun:
        return replanned(plan, plan.fleet, session.user, digest) if digest else plan
    refusal: Refused | None = None
    try:
        image = before.experiment.image
        digest = check.check_image(image, plan.fleet, before.queue_name, session.environ, note)
    except Refused as err:
        refusal = err  # unless others have sent it, when there was such an image
    # The registry may take its time: the look comes after it, so that sending can go by it.
    seen = look(before, session.backend(Scope(before.account, before.region)), session.clock)
    if seen.jobs:
        digest = check.digest_seen(session, before, seen)
    elif refusal:
        raise refusal
    pinned = replanned(plan, plan.fleet, session.user, digest) if digest else plan
    return msgspec.structs.replace(pinned, seen=seen)


def check_fallback(
    session: Session, experiment: Experiment, fleet: Fleet, queue: str, fallback: Fallback
) -> None:
    """Raises WrongUse and Refused for a fallback that could not be sent to."""
    if fallback.queue == queue:
        other = queue.removesuffix(SPOT_SUFFIX)
        raise WrongUse(
            "same-fallback",
            f"--fallback {fallback.queue} is the queue itself",
            f"--fallback {other}"
            if other != queue
            else "leave --fallback out: nobody takes an "
            f"on-demand machine away; or --queue {queue}{SPOT_SUFFIX} --fallback {queue}",
        )
    if not 1 <= fallback.after <= MAX_RETRIES + 1:
        raise WrongUse(
            "after",
            f"a run may lose 1 to {MAX_RETRIES + 1} machines before it goes on elsewhere, not "
            f"{fallback.after}",
            "--after 3",
        )
    plan_submission(experiment, fleet, fallback.queue, user=session.user)


def replanned(before: Plan, fleet: Fleet, user: str, digest: str | None) -> Plan:
    """The same experiment on the same queue of that fleet, its image pinned to the digest."""
    submission = plan_submission(
        before.submission.experiment,
        fleet,
        before.submission.queue_name,
        user=user,
        tries=before.fallback.after if before.fallback else None,
        digest=digest,
    )
    return Plan(submission=submission, fleet=fleet, fallback=before.fallback)


def _wandb_key(session: Session) -> str | None:
    from submit.tracking.keys import find_key  # noqa: PLC0415 # reads files

    return find_key(None, session.environ)


def _image(fleet: Fleet) -> str:
    if fleet.image:
        return fleet.image
    raise WrongUse(
        "no-image",
        f"no image was named, and the stack {fleet.stack} has none for all",
        "--image REPOSITORY:TAG, or for all: pulumi config set image REPOSITORY:TAG && pulumi up",
    )
