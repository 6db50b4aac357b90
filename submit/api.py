"""The verbs as typed functions, for scripts and notebooks; the commands use nothing else.

    with Session(stack="rl") as session:
        experiment = Experiment(command=("python", "ppo.py"), seeds=(1, 2, 3))
        delivery = send(session, plan(session, experiment, "g4dn-xlarge-spot"))
        progress = wait(session, delivery.kept)

What takes long to import (SQLite, boto3) is imported by the verb that needs it: a plan is made
without any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from submit.errors import Refused, ServiceFailed, SubmitError, WrongUse
from submit.experiment import Axis, Experiment, Resources, Run, experiment_id
from submit.fleet import LOCAL, SPOT_SUFFIX, Fleet
from submit.plan import Submission, plan_submission
from submit.records import Fallback, Kept
from submit.session import Session
from submit.stacks import load_fleet
from submit.tracking.wanted import wandb_secret, with_tracking

if TYPE_CHECKING:
    from submit.backends import LogLine
    from submit.cancelling import Stopped
    from submit.findings import Finding
    from submit.images.ecr import Tagged
    from submit.interquartile import Interquartile
    from submit.keeping import Details
    from submit.progress import Progress
    from submit.results import Outcome, Parameters
    from submit.retrying import Retry
    from submit.runs import RunView, Selection
    from submit.sending import Delivery
    from submit.sources import Source
    from submit.states import RunState
    from submit.tracking.resuming import Comeback, Crashed

__all__ = [
    "Axis",
    "Experiment",
    "Fallback",
    "Followed",
    "Plan",
    "Resources",
    "Session",
    "Summary",
    "attended",
    "build_image",
    "cancel",
    "check_image",
    "complete_experiments",
    "complete_queues",
    "crashed_runs",
    "draw_curves",
    "examine",
    "experiments",
    "failed_runs",
    "find",
    "follow",
    "image_repository",
    "images",
    "in_use",
    "known",
    "log",
    "look",
    "next_generation",
    "own_machine",
    "plan",
    "poll",
    "push_image",
    "put_back",
    "queues",
    "remove",
    "results",
    "results_from_files",
    "results_from_wandb",
    "retry",
    "runs",
    "send",
    "store_wandb_key",
    "summarize",
    "use",
    "wait",
    "wait_for",
    "why_waiting",
]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent, the fleet for which it was planned, and where runs go that lose their
    machines too often.
    """

    submission: Submission
    fleet: Fleet
    fallback: Fallback | None = None


def queues(session: Session) -> Fleet:
    """The fleet of the stack."""
    return load_fleet(session)


def own_machine(session: Session) -> Fleet:
    """The own machine, as a fleet of one queue, `local`."""
    from submit.local.planning import fleet_here  # noqa: PLC0415 # not for AWS

    return fleet_here(None, session.environ)


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


def complete_experiments(session: Session) -> list[tuple[str, str]]:
    """Ids and names of experiments, the newest first."""
    return [(kept.id, kept.name) for kept in session.ledger().experiments()]


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
        _check_fallback(session, experiment, fleet, queue, fallback)
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
    fleet = _fleet_here(session, experiment)
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


def check_image(
    session: Session, plan: Plan, *, note: Callable[[str], None] = lambda _: None
) -> Plan:
    """The plan, with its image pinned to the digest that it has now: a tag that moves later does
    not change half an experiment. What was sent before goes on with the image it began with.

    `note` is told when the image's registry can't be asked. Raises Refused for an image that
    there is not, or that is built for other machines than the queue's.
    """
    from submit.images.check import check_image as look  # noqa: PLC0415 # speaks HTTP
    from submit.images.check import digest_so_far  # noqa: PLC0415 # likewise

    before = plan.submission
    if plan.fleet.account == LOCAL:
        return plan
    begun, digest = digest_so_far(session, before)
    if not begun:
        image = before.experiment.image
        digest = look(image, plan.fleet, before.queue_name, session.environ, note)
    if not digest:
        return plan
    submission = plan_submission(
        before.experiment,
        plan.fleet,
        before.queue_name,
        user=session.user,
        tries=plan.fallback.after if plan.fallback else None,
        digest=digest,
    )
    return msgspec.structs.replace(plan, submission=submission)


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
    try:
        return _deliver(session, plan, tell, note)
    except ServiceFailed as err:
        newer = _planned_anew(session, plan) if err.slug == "aws-ClientException" else None
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
    from submit.retrying import discover  # noqa: PLC0415 # likewise
    from submit.sending import deliver, kept_experiment  # noqa: PLC0415 # with the ledger

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
    )
    if plan.fallback:
        ledger.fall_back(kept, plan.fallback)  # it may have been sent without
    if delivery.adopted:  # whoever has sent it may have sent runs of it again
        with ledger.lock(kept.id):
            discover(kept, plan.fleet, ledger, backend)
    return delivery


def _planned_anew(session: Session, plan: Plan) -> Plan | None:
    """The plan for the fleet as it is now, if its queue was replaced since the one was read that
    this plan was made for.
    """
    if session.fleet:
        return None
    before = plan.submission
    try:
        fleet = load_fleet(session, fresh=True)
    except SubmitError:
        return None  # what AWS said of the job is what matters
    queue = fleet.queues.get(before.queue_name)
    if queue is None or queue.arn == before.queue_arn:
        return None
    after = plan_submission(
        before.experiment,
        fleet,
        before.queue_name,
        user=session.user,
        tries=plan.fallback.after if plan.fallback else None,
        digest=before.digest,
    )
    return Plan(submission=after, fleet=fleet, fallback=plan.fallback)


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


def look(
    session: Session,
    experiments: Sequence[Kept],
    note: Callable[[str], None] = lambda _: None,
) -> list[Progress]:
    """As `poll`, and sends runs that have lost their machines too often to their experiment's
    fallback; `note` is told of it.
    """
    from submit.retrying import fall_back  # noqa: PLC0415 # with the ledger

    found = poll(session, experiments)
    moved = [fall_back(session, one, lambda kept: _fleet_of(session, kept), note) for one in found]
    return poll(session, experiments) if any(moved) else found


def wait(
    session: Session,
    kept: Kept,
    *,
    see: Callable[[Progress], None] = lambda _: None,
    trouble: Callable[[ServiceFailed], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> Progress:
    """Waits until the experiment is over, or nothing more can be learned of it.

    `see` is shown each look, `trouble` each that failed, `note` told of runs that were sent to
    their fallback. Raises ServiceFailed when looking does not work any more.
    """
    return wait_for(session, [kept], see=lambda found: see(found[0]), trouble=trouble, note=note)[0]


def wait_for(
    session: Session,
    experiments: Sequence[Kept],
    *,
    timeout_s: float | None = None,
    see: Callable[[list[Progress]], None] = lambda _: None,
    trouble: Callable[[ServiceFailed], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> list[Progress]:
    """Waits until all of them are over, or the time is; else as `wait`."""
    from submit import watching  # noqa: PLC0415 # with the ledger

    def looked() -> list[Progress]:
        return look(session, experiments, note)

    return watching.wait(session, looked, see=see, trouble=trouble, timeout_s=timeout_s)


def why_waiting(session: Session, progress: Progress, views: Sequence[RunView]) -> list[str]:
    """Why runs of the experiment wait, in words: 2 calls when some do, none else."""
    from submit.retrying import waiting_queue  # noqa: PLC0415 # with the ledger
    from submit.states import RunState  # noqa: PLC0415 # not for a plan
    from submit.waiting import why_waiting as explain  # noqa: PLC0415 # likewise

    row = waiting_queue(progress)
    if row is None:
        return []
    facts = session.backend(progress.kept.scope).facts(row.queue_arn)
    reasons = [view.reason for view in views if view.state is RunState.WAITING and view.reason]
    vcpus = progress.kept.experiment.resources.vcpus or 1
    if row.queue_arn == LOCAL:  # in its own words already
        return list(dict.fromkeys(reasons))
    return explain(facts, [*reasons, *([row.reason] if row.reason else [])], vcpus)


def runs(
    session: Session,
    progress: Progress,
    selection: Selection | None = None,
    states: Collection[RunState] = (),
) -> list[RunView]:
    """What became of single runs, in the order of their indexes; with `states` of those in one
    of them: one call per 100 that are not over.

    Raises WrongUse for a selection that the experiment does not have.
    """
    from submit.runs import Selection, fetch_runs, find_runs, select_runs  # noqa: PLC0415 # not for a plan

    kept = progress.kept
    details = _details(session, kept)
    chosen = select_runs(kept.experiment, kept.id, selection or Selection())
    if states:
        found = set(find_runs(progress, details, states))
        chosen = (run for run in chosen if run.index in found)
    return fetch_runs(progress, details, list(chosen))


def failed_runs(session: Session, progress: Progress, most: int) -> list[RunView]:
    """Some of the runs that ended badly, the first `most` that can be told: one call a job."""
    from submit.runs import Selection, find_runs  # noqa: PLC0415 # not for a plan
    from submit.states import BAD  # noqa: PLC0415 # likewise

    indexes = find_runs(progress, _details(session, progress.kept), BAD, most)
    return runs(session, progress, Selection(runs=tuple(indexes))) if indexes else []


def log(
    session: Session,
    progress: Progress,
    view: RunView,
    tail: int | None = None,
    *,
    attempt: int | None = None,
    since: float | None = None,
) -> Iterator[LogLine]:
    """What a run has printed; with `tail` its last lines alone, with `attempt` that try's (from
    1, over all jobs in which it was), with `since` what came after that time (seconds since 1970).
    """
    from submit.logs import read_log, tried  # noqa: PLC0415 # not for a plan

    kept = progress.kept
    backend = session.backend(kept.scope)
    return read_log(kept.log_group, tried(view, attempt), backend, tail, _ms(since))


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, and each line that they print, as it comes."""

    runs: Sequence[Run]
    lines: Iterator[tuple[RunView, LogLine]]


def follow(
    session: Session,
    kept: Kept,
    selection: Selection,
    *,
    states: Collection[RunState] = (),
    tail: int | None = None,
    attempt: int | None = None,
    since: float | None = None,
) -> Followed:
    """The lines that the runs print, until all have ended; with `tail` the last ones alone of
    what is there already. `states` are those in which they are now.

    Raises WrongUse for more runs than can be followed together.
    """
    from submit.logs import FOLLOW_AT_ONCE, follow_logs  # noqa: PLC0415 # not for a plan
    from submit.runs import select_runs  # noqa: PLC0415 # not for a plan

    chosen = list(select_runs(kept.experiment, kept.id, selection))
    if states:
        chosen = [view.run for view in runs(session, poll(session, [kept])[0], selection, states)]
    if len(chosen) > FOLLOW_AT_ONCE:
        raise WrongUse(
            "too-many-to-follow",
            f"these are {len(chosen):,} runs; {FOLLOW_AT_ONCE} can be followed together",
            f"submit logs {kept.id} -f --seed {(kept.experiment.seeds or (0,))[0]}",
        )
    lines = follow_logs(
        session,
        lambda: poll(session, [kept])[0],
        chosen,
        tail=tail,
        attempt=attempt,
        since_ms=_ms(since),
    )
    return Followed(runs=chosen, lines=lines)


def cancel(session: Session, kept: Kept, selection: Selection | None = None) -> Stopped:
    """Stops whatever is selected (all, when nothing is) and not over: one call for 50 jobs.

    Jobs of which nothing stands in the queue are forgotten, so that the same `submit run`
    sends them. Raises Refused when all that goes on was sent by others.
    """
    from submit.cancelling import stop  # noqa: PLC0415 # with the ledger
    from submit.runs import Selection  # noqa: PLC0415 # likewise

    return stop(session, kept, selection or Selection())


def retry(
    session: Session,
    kept: Kept,
    selection: Selection | None = None,
    *,
    states: Collection[RunState] = (),
    queue: str | None = None,
    fallback: Fallback | None = None,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
    note: Callable[[str], None] = lambda _: None,
) -> Retry:
    """Sends runs again, in as few jobs as possible: the selected ones that are in one of the
    states (failed or lost, when none is given), to `queue`, else to that of their latest job.

    They keep their numbers, parameters and Weights & Biases ids. Raises ServiceFailed with what
    was sent until then; the same call goes on.
    """
    from submit import retrying  # noqa: PLC0415 # with the ledger
    from submit.runs import Selection  # noqa: PLC0415 # likewise

    fleet = _fleet_of(session, kept)
    if fallback:
        _check_fallback(session, kept.experiment, fleet, queue or "", fallback)
        session.ledger().fall_back(kept, fallback)
        kept = msgspec.structs.replace(kept, fallback=fallback)
    return retrying.retry(
        session,
        kept,
        fleet,
        states=states or retrying.AGAIN,
        selection=selection or Selection(),
        queue=queue,
        tell=tell,
        note=note,
    )


def remove(session: Session, kept: Kept, *, force: bool = False) -> None:
    """Forgets the experiment here; nothing of it is stopped, and its logs and W&B runs stay.

    Raises Refused while runs of it go on, unless `force`.
    """
    from submit.removing import forget  # noqa: PLC0415 # with the ledger

    forget(session, kept, force=force)


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


def _fleet_of(session: Session, kept: Kept) -> Fleet:
    """The fleet of the experiment's own stack, whichever is in use now."""
    if kept.scope.account == LOCAL:
        return _fleet_here(session, kept.experiment)
    if session.fleet:
        return load_fleet(session)
    own = Session(stack=kept.stack, environ=session.environ, cwd=session.cwd, clock=session.clock)
    return load_fleet(own)


def _fleet_here(session: Session, experiment: Experiment) -> Fleet:
    from submit.local.planning import fleet_here, with_key  # noqa: PLC0415 # not for AWS

    return fleet_here(experiment, with_key(session.environ, experiment.secrets))


def _check_fallback(
    session: Session, experiment: Experiment, fleet: Fleet, queue: str, fallback: Fallback
) -> None:
    """Raises WrongUse and Refused for a fallback that could not be sent to."""
    if fallback.queue == queue:
        raise WrongUse(
            "same-fallback",
            f"--fallback {fallback.queue} is the queue itself",
            f"--fallback {queue.removesuffix(SPOT_SUFFIX)}",
        )
    plan_submission(experiment, fleet, fallback.queue, user=session.user)


def _ms(since: float | None) -> int | None:
    return None if since is None else int(since * 1000)


def _details(session: Session, kept: Kept) -> Details:
    from submit.keeping import Details  # noqa: PLC0415 # with the ledger

    return Details(session.ledger(), session.backend(kept.scope))


def results_from_files(kept: Kept, pattern: str) -> list[Outcome]:
    """The metrics of each run that has left a file of them (submit.metrics_files)."""
    from submit.experiment import iter_runs  # noqa: PLC0415 # not for a plan
    from submit.metrics_files import read_outcomes  # noqa: PLC0415 # likewise

    runs = list(iter_runs(kept.experiment))
    return read_outcomes(pattern, kept.id, runs, region=kept.scope.region)


def results_from_wandb(
    session: Session, kept: Kept, path: str, *, curves: bool = False
) -> list[Outcome]:
    """The metrics of each run that Weights & Biases knows in the project ENTITY/PROJECT; with
    `curves` also its history.
    """
    from submit.tracking.server import fetch_outcomes  # noqa: PLC0415 # loads wandb

    return fetch_outcomes(session.environ, kept, path, curves=curves)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the seeds of one combination of parameters. `interquartile` is None where
    scipy is not installed.
    """

    parameters: Parameters
    metric: str
    n: int
    mean: float
    std: float | None
    interquartile: Interquartile | None


def summarize(outcomes: Sequence[Outcome], over: Sequence[str] = ()) -> list[Summary]:
    """Each metric over the seeds of each combination of parameters; those named in `over` are
    taken together, each value of them a stratum of the bootstrap.

    Raises WrongUse for a parameter that there is not.
    """
    from submit.interquartile import interquartile, is_available  # noqa: PLC0415 # not for a plan
    from submit.results import check_over, samples, spread  # noqa: PLC0415 # likewise

    check_over(outcomes, over)
    known = is_available()
    return [
        Summary(
            parameters=sample.parameters,
            metric=sample.metric,
            **msgspec.structs.asdict(spread(sample.values)),
            interquartile=interquartile(sample.strata) if known else None,
        )
        for sample in samples(outcomes, over)
    ]


def draw_curves(outcomes: Sequence[Outcome], metric: str, path: Path, title: str) -> None:
    """The metric over the steps of training, as a picture (submit.picture)."""
    from submit.picture import draw  # noqa: PLC0415 # loads matplotlib

    draw(outcomes, metric, path, title)


def crashed_runs(session: Session, path: str, states: Sequence[str]) -> Crashed:
    """The runs of experiments from here that are in one of these states in W&B's project
    ENTITY/PROJECT, and whether they are over here too.
    """
    from submit.runs import Selection  # noqa: PLC0415 # not for a plan
    from submit.tracking.resuming import Crashed, comeback, sort_tracked  # noqa: PLC0415 # likewise
    from submit.tracking.server import fetch_tracked  # noqa: PLC0415 # loads wandb

    found = sort_tracked(fetch_tracked(session.environ, path, states), experiments(session))
    ours = [(kept, Selection(runs=numbers)) for kept, numbers in found.ours if numbers]
    now = poll(session, [kept for kept, _ in ours])
    return Crashed(
        ours=tuple(
            comeback(kept, runs(session, progress, selection))
            for (kept, selection), progress in zip(ours, now, strict=True)
        ),
        others=found.others,
    )


def put_back(
    session: Session,
    crashed: Comeback,
    *,
    queue: str | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Retry:
    """Sends those runs again, however they ended here: W&B's word counts."""
    from submit.runs import Selection  # noqa: PLC0415 # not for a plan
    from submit.states import OVER  # noqa: PLC0415 # likewise

    selection = Selection(runs=crashed.runs)
    return retry(session, crashed.kept, selection, states=OVER, queue=queue, note=note)


def image_repository(session: Session) -> str:
    """Where the stack's images go. Raises Refused where it has no repository."""
    fleet = load_fleet(session)
    if not fleet.image_repository:
        raise Refused(
            "no-repository",
            f"the stack {fleet.stack} has no repository for images",
            f"--repository REPOSITORY, or pulumi config set repository true --stack {fleet.stack}, "
            f"then pulumi up --stack {fleet.stack}",
        )
    return fleet.image_repository


def build_image(
    image: str,
    *,
    archs: Sequence[str] | str | None = (),
    push: bool = False,
    context: Path | None = None,
    dockerfile: Path | None = None,
    cache: bool = False,
) -> str:
    """Builds a folder's image with Docker (submit.images.build); its name with its tag."""
    from submit.images.build import build_image as build  # noqa: PLC0415 # starts Docker

    return build(
        image,
        archs=archs,
        push=push,
        context=context or Path(),
        dockerfile=dockerfile,
        cache=cache,
    )


def push_image(source: str, target: str) -> str:
    """Pushes an image of this machine's Docker under another name; that name."""
    from submit.images.build import push_image as push  # noqa: PLC0415 # starts Docker

    return push(source, target)


def images(session: Session, repository: str) -> list[Tagged]:
    """The tagged images there, the latest first where the registry says when they came."""
    from submit.images.listing import list_images  # noqa: PLC0415 # asks the registry

    return list_images(repository, session.environ)


def store_wandb_key(session: Session, key: str) -> None:
    """Runs of the stack that start from now on have that key of Weights & Biases.

    Raises Refused for a stack that has no secret for it.
    """
    from submit.tracking.secret import put_secret  # noqa: PLC0415 # speaks boto3

    put_secret(wandb_secret(load_fleet(session)), key)


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
