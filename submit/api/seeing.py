"""What became of experiments and runs, and what runs print."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from submit.api.fleets import changed_fleet, fleet_of, known_fleet_of
from submit.errors import Refused, ServiceFailed, WrongUse
from submit.experiment import Run
from submit.fleet import LOCAL
from submit.records import Kept
from submit.session import Session

if TYPE_CHECKING:
    from submit.backends import LogLine
    from submit.fleet import Fleet
    from submit.keeping import Details
    from submit.progress import Progress
    from submit.runs import RunView, Selection
    from submit.states import RunState


def experiments(session: Session) -> list[Kept]:
    """All experiments that were sent from here, the newest first."""
    return session.ledger().experiments()


def find(session: Session, reference: str) -> Kept:
    """The experiment of that id, beginning of an id, name, or `latest`.

    Raises WrongUse with the nearest when there is none.
    """
    return session.ledger().find(reference)


def complete_experiments(session: Session) -> list[tuple[str, str]]:
    """Ids and names of experiments, the newest first."""
    return [(kept.id, kept.name) for kept in session.ledger().experiments()]


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

    def fleet(kept: Kept) -> Fleet:
        return fleet_of(session, kept)

    def changed(kept: Kept, before: Fleet) -> Fleet | None:
        return changed_fleet(session, kept, before)

    found = poll(session, experiments)
    moved = [fall_back(session, one, fleet, changed, note) for one in found]
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
    if row.queue_arn == LOCAL:  # in its own words already
        return list(dict.fromkeys(reasons))
    vcpus = _vcpus(session, progress.kept, row.queue_name)
    return explain(facts, [*reasons, *([row.reason] if row.reason else [])], vcpus)


def _vcpus(session: Session, kept: Kept, queue_name: str) -> int:
    """How many a run has on all its nodes, as far as the fleet is known without a call."""
    from submit.resources import resolve_resources  # noqa: PLC0415 # not for a plan

    asked = kept.experiment.resources
    fleet = known_fleet_of(session, kept)
    if fleet and queue_name in fleet.queues:
        try:
            has = resolve_resources(asked, fleet, queue_name)
        except Refused:  # the queue is another one than it was
            pass
        else:
            return has.vcpus * has.nodes
    return (asked.vcpus or 1) * (asked.nodes or 1)


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


def check_selection(kept: Kept, selection: Selection) -> None:
    """Raises WrongUse for a selection that the experiment does not have."""
    from submit import runs as of_experiment  # noqa: PLC0415 # not for a plan

    of_experiment.check_selection(kept.experiment, selection)


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
    node: int | None = None,
    since: float | None = None,
) -> Iterator[LogLine]:
    """What a run has printed; with `tail` its last lines alone, with `attempt` that try's (from
    1, over all jobs in which it was), with `node` what one of its machines has (from 0; without, the
    main one), with `since` what came after that time (seconds since 1970).
    """
    from submit.logs import of_node, read_log, tried  # noqa: PLC0415 # not for a plan

    kept = progress.kept
    backend = session.backend(kept.scope)
    shown = tried(of_node(progress, view, backend, node), attempt)
    return read_log(kept.log_group, shown, backend, tail, _ms(since))


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
    node: int | None = None,
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
        node=node,
        since_ms=_ms(since),
    )
    return Followed(runs=chosen, lines=lines)


def _details(session: Session, kept: Kept) -> Details:
    from submit.keeping import Details  # noqa: PLC0415 # with the ledger

    return Details(session.ledger(), session.backend(kept.scope))


def _ms(since: float | None) -> int | None:
    return None if since is None else int(since * 1000)
