"""The verbs as typed functions, for scripts and notebooks; the commands use nothing else.

    with Session(stack="rl") as session:
        experiment = Experiment(command=("python", "ppo.py"), seeds=(1, 2, 3))
        delivery = send(session, plan(session, experiment, "g4dn-xlarge-spot"))
        progress = wait(session, delivery.kept)

What takes long to import (SQLite, boto3) is imported by the verb that needs it: a plan is made
without any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Axis, Experiment, Resources, Run, experiment_id
from submit.fleet import LOCAL, Fleet
from submit.plan import Submission, plan_submission
from submit.session import Session
from submit.stacks import load_fleet

if TYPE_CHECKING:
    from submit.backends import LogLine
    from submit.progress import Progress
    from submit.records import Kept
    from submit.results import Outcome
    from submit.runs import RunView, Selection
    from submit.sending import Delivery

__all__ = [
    "Axis",
    "Experiment",
    "Followed",
    "Plan",
    "Resources",
    "Session",
    "attended",
    "cancel",
    "experiments",
    "failed_runs",
    "find",
    "follow",
    "known",
    "log",
    "next_generation",
    "own_machine",
    "plan",
    "poll",
    "queues",
    "results",
    "runs",
    "send",
    "wait",
]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent, and the fleet for which it was planned."""

    submission: Submission
    fleet: Fleet


def queues(session: Session) -> Fleet:
    """The fleet of the stack."""
    return load_fleet(session)


def own_machine(session: Session) -> Fleet:
    """The own machine, as a fleet of one queue, `local`."""
    from submit.local.planning import fleet_here  # noqa: PLC0415 # not for AWS

    return fleet_here(None, session.environ)


def plan(session: Session, experiment: Experiment, queue: str) -> Plan:
    """The exact requests that put the experiment on the queue; nothing is sent.

    An experiment without an image takes the fleet's. Raises WrongUse and Refused for what can't
    work, before anything is sent.
    """
    if queue == LOCAL:
        return _plan_here(session, experiment)
    fleet = load_fleet(session)
    if queue not in fleet.queues and not session.fleet:
        fleet = load_fleet(session, fresh=True)  # the stack may have got it only just now
    if not experiment.image:
        experiment = msgspec.structs.replace(experiment, image=_image(fleet))
    submission = plan_submission(experiment, fleet, queue, user=session.user)
    return Plan(submission=submission, fleet=fleet)


def _plan_here(session: Session, experiment: Experiment) -> Plan:
    from submit.local.planning import at_home, fleet_here  # noqa: PLC0415 # not for AWS

    experiment = at_home(experiment, session.environ, session.cwd)
    fleet = fleet_here(experiment, session.environ)
    submission = plan_submission(experiment, fleet, LOCAL, user=session.user)
    return Plan(submission=submission, fleet=fleet)


def next_generation(session: Session, plan: Plan) -> Experiment:
    """The planned experiment, to be run once more: in the first generation that was not sent
    from here yet.
    """
    from submit.records import Scope  # noqa: PLC0415 # with the ledger

    experiment = plan.submission.experiment
    scope = Scope(plan.fleet.account, plan.fleet.region)
    while session.ledger().has(scope, experiment_id(experiment)):
        experiment = msgspec.structs.replace(experiment, generation=experiment.generation + 1)
    return experiment


def send(
    session: Session,
    plan: Plan,
    *,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
    note: Callable[[str], None] = lambda _: None,
) -> Delivery:
    """Makes the planned jobs stand in the queue, each once, whatever was sent before.

    `tell` is told how many of how many jobs are done, `note` why it takes its time. Raises ServiceFailed with what was sent
    until then; the same call goes on.
    """
    from submit.sending import deliver, kept_experiment  # noqa: PLC0415 # with the ledger

    submission = plan.submission
    kept = kept_experiment(submission, plan.fleet.log_group, session.clock.time())
    return deliver(
        submission,
        kept,
        ledger=session.ledger(),
        backend=session.backend(kept.scope),
        clock=session.clock,
        tell=tell,
        note=note,
    )


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


def experiments(session: Session) -> list[Kept]:
    """All experiments that were sent from here, the newest first."""
    return session.ledger().experiments()


def find(session: Session, reference: str) -> Kept:
    """The experiment of that id, beginning of an id, name, or `latest`.

    Raises WrongUse with the nearest when there is none.
    """
    return session.ledger().find(reference)


def poll(session: Session, experiments: Sequence[Kept]) -> list[Progress]:
    """Where the experiments stand now: one call for 100 jobs that are not over.

    Raises ServiceFailed; `known` still tells what was seen last.
    """
    from submit import watching  # noqa: PLC0415 # with the ledger

    return watching.poll(session, experiments)


def known(session: Session, experiments: Sequence[Kept]) -> list[Progress]:
    """Where the experiments stood when last looked at; no call."""
    from submit import watching  # noqa: PLC0415 # with the ledger

    return watching.known(session, experiments)


def wait(
    session: Session,
    kept: Kept,
    *,
    see: Callable[[Progress], None] = lambda _: None,
    trouble: Callable[[ServiceFailed], None] = lambda _: None,
) -> Progress:
    """Waits until the experiment is over, or nothing more can be learned of it.

    `see` is shown each look, `trouble` each that failed. Raises ServiceFailed when looking does
    not work any more.
    """
    from submit import watching  # noqa: PLC0415 # with the ledger

    return watching.wait(session, kept, see=see, trouble=trouble)


def runs(session: Session, progress: Progress, selection: Selection | None = None) -> list[RunView]:
    """What became of single runs, in the order of their indexes: one call per 100.

    Raises WrongUse for a selection that the experiment does not have.
    """
    from submit.runs import Selection, fetch_runs, select_runs  # noqa: PLC0415 # not for a plan

    kept = progress.kept
    chosen = list(select_runs(kept.experiment, kept.id, selection or Selection()))
    return fetch_runs(progress, session.backend(kept.scope), chosen)


def failed_runs(session: Session, progress: Progress, most: int) -> list[RunView]:
    """Some of the runs that ended badly, the first `most` that can be told: one call a job."""
    from submit.runs import Selection, failed_indexes  # noqa: PLC0415 # not for a plan

    backend = session.backend(progress.kept.scope)
    indexes = failed_indexes(progress, backend, most)
    return runs(session, progress, Selection(runs=tuple(indexes))) if indexes else []


def log(
    session: Session, progress: Progress, view: RunView, tail: int | None = None
) -> Iterator[LogLine]:
    """What a run has printed; with `tail` its last lines alone."""
    from submit.logs import read_log  # noqa: PLC0415 # not for a plan

    kept = progress.kept
    return read_log(kept.log_group, view, session.backend(kept.scope), tail)


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, and each line that they print, as it comes."""

    runs: Sequence[Run]
    lines: Iterator[tuple[RunView, LogLine]]


def follow(
    session: Session, kept: Kept, selection: Selection, *, tail: int | None = None
) -> Followed:
    """The lines that the runs print, until all have ended; with `tail` the last ones alone of
    what is there already.

    Raises WrongUse for more runs than can be followed together.
    """
    from submit.logs import FOLLOW_AT_ONCE, follow_logs  # noqa: PLC0415 # not for a plan
    from submit.runs import select_runs  # noqa: PLC0415 # not for a plan

    chosen = list(select_runs(kept.experiment, kept.id, selection))
    if len(chosen) > FOLLOW_AT_ONCE:
        raise WrongUse(
            "too-many-to-follow",
            f"these are {len(chosen):,} runs; {FOLLOW_AT_ONCE} can be followed together",
            f"submit logs {kept.id} -f --seed {(kept.experiment.seeds or (0,))[0]}",
        )
    lines = follow_logs(session, lambda: poll(session, [kept])[0], chosen, tail=tail)
    return Followed(runs=chosen, lines=lines)


def cancel(session: Session, kept: Kept) -> Progress:
    """Stops whatever of the experiment is not over: one call a job. How it stood before.

    Jobs of which nothing stands in the queue are forgotten, so that the same `submit run`
    sends them.
    """
    from submit.cancelling import stop  # noqa: PLC0415 # with the ledger

    return stop(session, kept)


def results(session: Session, progress: Progress) -> list[Outcome]:
    """The metrics of each run that has printed any: two calls per 100 runs."""
    from submit.results import MARK, collect  # noqa: PLC0415 # not for a plan

    kept = progress.kept
    views = runs(session, progress)
    streams = {stream: view.run for view in views for stream in view.streams}
    order = list(streams)
    backend = session.backend(kept.scope)
    lines = backend.search(kept.log_group, order, MARK) if order else ()
    return collect(streams, lines, order)


def _image(fleet: Fleet) -> str:
    if fleet.image:
        return fleet.image
    raise WrongUse(
        "no-image",
        f"no image was named, and the stack {fleet.stack} has none for all",
        "--image REPOSITORY:TAG, or for all: pulumi config set image REPOSITORY:TAG && pulumi up",
    )
