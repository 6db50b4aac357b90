"""submit cancel."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from submit import api
from submit.commands.options import experiments_argument, json_option, selection, selection_options
from submit.commands.text import plural, progress_text, say, show_json
from submit.errors import Refused, WrongUse

if TYPE_CHECKING:
    from submit.cancelling import Stopped
    from submit.progress import Progress
    from submit.records import Kept
    from submit.runs import Selection


@click.command("cancel")
@experiments_argument
@selection_options
@click.option("--mine", is_flag=True, help="All that goes on and was sent by me.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def command(experiments: tuple[str, ...], yes: bool, as_json: bool, **given: Any) -> int:  # noqa: FBT001 # click passes by name
    """Stop experiments, or some of their runs: what waits never starts, what runs is ended.

    Without an experiment, --run, --seed and --where choose from all that goes on. What others have
    sent is left alone.
    """
    wanted = selection(given["runs"], given["seeds"], given["wheres"])
    # A choice of runs without an experiment is one among all of them.
    mine = given.pop("mine") or (not experiments and any(given.values()))
    with api.Session() as session:
        found = _meant(session, experiments, mine=mine)
        if mine and any(given.values()):
            found = _having(found, wanted)
        now = api.poll(session, found)
        going = [one for one in now if not one.is_stuck]
        more = mine or _is_more_than_named(session, experiments, found)
        if going and not yes and not _agreed(going, more=more, part=any(given.values())):
            say("nothing was stopped")
            return 0
        if mine or len(found) > 1:
            stopped = api.cancel_all(session, found, wanted)
        else:
            stopped = [api.cancel(session, found[0], wanted)]
    if as_json:
        show_json([_json(one) for one in stopped])
        return 0
    for one in stopped:
        if one.runs or not mine:
            _tell(one)
    if mine and not any(one.runs for one in stopped):
        say("nothing goes on that was sent by you")
    return 0


def _meant(session: api.Session, references: tuple[str, ...], *, mine: bool) -> list[Kept]:
    if mine and references:
        raise WrongUse("mine-and-named", "--mine is all of them: name none", "submit cancel --mine")
    if not mine and not references:
        raise WrongUse("no-experiment", "which experiment?", "submit cancel EXPERIMENT, or --mine")
    if not mine:
        found = [api.find(session, reference) for reference in references]
        return list({(one.scope, one.id): one for one in found}.values())
    kept = api.experiments(session)
    return [one.kept for one in api.known(session, kept) if not one.is_over]


def _having(experiments: list[Kept], wanted: Selection) -> list[Kept]:
    """Those of the experiments that have such runs. Raises WrongUse when none of them has."""
    refusals = [_refusal(one, wanted) for one in experiments]
    having = [one for one, err in zip(experiments, refusals, strict=True) if err is None]
    told = [err for err in refusals if err]
    if told and not having:  # the nearest miss tells most
        raise min(told, key=lambda err: err.slug == "no-such-parameter")
    return having


def _refusal(experiment: Kept, wanted: Selection) -> WrongUse | None:
    try:
        api.check_selection(experiment, wanted)
    except WrongUse as err:
        return err
    return None


def _is_more_than_named(
    session: api.Session, references: tuple[str, ...], found: list[Kept]
) -> bool:
    """Whether a name is that of several experiments, so that another one may have been meant."""
    names = [one.name for one in api.experiments(session)]
    return any(
        names.count(reference) > 1
        for reference in references
        if all(one.id != reference for one in found)
    )


def _agreed(going: list[Progress], *, more: bool, part: bool) -> bool:
    """Whether the person at the terminal agrees; without one, what was named is meant."""
    if not sys.stdin.isatty():
        if more:
            raise Refused(
                "not-asked",
                f"this would stop {plural(len(going), 'experiment')}, more than was named, and "
                "there is no terminal to ask at",
                "the same line with --yes",
            )
        return True
    for one in going[:20]:
        name = f" ({one.kept.name})" if one.kept.name else ""
        say(f"{one.kept.id}{name}, {progress_text(one)}")
    what = "the chosen runs of " if part else ""
    whose = "it" if len(going) == 1 else f"these {len(going)}"
    return click.confirm(f"stop {what}{whose}?", err=True)


def _tell(stopped: Stopped) -> None:
    kept = stopped.before.kept
    if stopped.runs:
        click.echo(f"{kept.id}: {plural(stopped.runs, 'run')} told to stop")
        say(f"  next: submit status {kept.id}")
    else:
        click.echo(f"{kept.id}: {progress_text(stopped.before)}; nothing to stop")
    if stopped.left:
        say(f"{plural(stopped.left, 'run')} sent by others left alone")


def _json(stopped: Stopped) -> dict[str, Any]:
    return {"experiment": stopped.before.kept.id, "stopped": stopped.runs, "left": stopped.left}
