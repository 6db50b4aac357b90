"""Where runs can go: fleets, stacks, their examination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from submit.errors import SubmitError
from submit.experiment import Experiment
from submit.fleet import LOCAL, Fleet
from submit.records import Kept
from submit.session import Session
from submit.stacks import load_fleet

if TYPE_CHECKING:
    from submit.findings import Finding
    from submit.sources import Source


def queues(session: Session) -> Fleet:
    """The fleet of the stack."""
    return load_fleet(session)


def own_machine(session: Session) -> Fleet:
    """The own machine, as a fleet of one queue, `local`."""
    from submit.local import planning  # noqa: PLC0415 # not for AWS

    return planning.fleet_here(None, session.environ)


def use(
    session: Session, stack: str | None, *, published: bool = False, region: str = ""
) -> Fleet | None:
    """Makes that stack the one that is meant wherever none is named; None: none any more.

    It is looked for in the Pulumi project at hand, and where there is none, or when it is
    `published`, in SSM, in `region`. The fleet that was found there. Raises WrongUse and
    ServiceFailed when there is none; then nothing has changed.
    """
    from submit import using  # noqa: PLC0415 # not for a plan
    from submit.sources import Output, Parameters  # noqa: PLC0415 # likewise
    from submit.stacks import find_project, read_source  # noqa: PLC0415 # likewise

    if stack is None:
        using.use(session, None)
        return None
    project = None if published or region else find_project(session)
    if project:
        source: Output | Parameters = Output(project=str(project.resolve()), stack=stack)
        fleet = read_source(session, source, fresh=True)
    else:
        fleet = read_source(session, Parameters(stack=stack, region=region), fresh=True)
        source = Parameters(stack=stack, region=fleet.region)
    using.use(session, source)
    return fleet


def in_use(session: Session) -> Source | None:
    """What `use` has remembered."""
    from submit.using import used  # noqa: PLC0415 # not for a plan

    return used(session)


def examine(session: Session) -> Iterator[Finding]:
    """Whether all that a submission rests on is as it should be, each thing as it is known."""
    from submit import doctor  # noqa: PLC0415 # with AWS

    return doctor.examine(session)


def complete_queues(session: Session) -> list[str]:
    """Names of queues, as they were when the fleet was last asked for; no process, no call."""
    from submit.stacks import last_known  # noqa: PLC0415 # with the file system

    fleet = last_known(session)
    return sorted(fleet.queues) if fleet else []


def changed_fleet(session: Session, kept: Kept, before: Fleet) -> Fleet | None:
    """The fleet of the experiment's own stack, asked for again, when its queues are not what they
    were `before`; None when they are, and when there is no answer.
    """
    try:
        now = fleet_of(session, kept, fresh=True)
    except SubmitError:
        return None
    queues = {name: queue.arn for name, queue in now.queues.items()}
    return None if queues == {name: one.arn for name, one in before.queues.items()} else now


def fleet_of(session: Session, kept: Kept, *, fresh: bool = False) -> Fleet:
    """The fleet of the experiment's own stack, whichever is in use now."""
    if kept.scope.account == LOCAL:
        return fleet_here(session, kept.experiment)
    return load_fleet(_of_its_stack(session, kept), fresh=fresh)


def known_fleet_of(session: Session, kept: Kept) -> Fleet | None:
    """The fleet of the experiment's own stack as it was last known; no process, no call."""
    from submit.stacks import last_known  # noqa: PLC0415 # with the file system

    try:
        return last_known(_of_its_stack(session, kept))
    except SubmitError:
        return None


def _of_its_stack(session: Session, kept: Kept) -> Session:
    if session.fleet:
        return session
    return Session(stack=kept.stack, environ=session.environ, cwd=session.cwd, clock=session.clock)


def fleet_here(session: Session, experiment: Experiment) -> Fleet:
    """The own machine, as far as the experiment may use it."""
    from submit.local import planning  # noqa: PLC0415 # not for AWS

    return planning.fleet_here(experiment, planning.with_key(session.environ, experiment.secrets))
