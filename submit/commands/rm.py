"""submit rm."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from submit import api
from submit.commands.options import Parsed, experiments_argument
from submit.commands.text import plural, say
from submit.errors import Refused, WrongUse
from submit.units import parse_duration

if TYPE_CHECKING:
    from submit.records import Kept


@click.command("rm")
@experiments_argument
@click.option(
    "--older",
    type=Parsed("duration", parse_duration),
    help="All that were sent so long ago and are over: 30d.",
)
@click.option("--force", is_flag=True, help="Also while runs go on; they are not stopped by it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(experiments: tuple[str, ...], older: int | None, force: bool, yes: bool) -> int:  # noqa: FBT001 # click passes by name
    """Forget experiments: what is known of them here. Logs, results at W&B and whatever still
    runs are left as they are.
    """
    if bool(experiments) == (older is not None):
        raise WrongUse("what-to-forget", "name experiments, or --older", "submit rm --older 30d")
    with api.Session() as session:
        if older is None:
            named = [api.find(session, reference) for reference in experiments]
            return _remove(session, named, force=force)
        since = session.clock.time() - older
        old = [kept for kept in api.experiments(session) if kept.created < since]
        over = [one.kept for one in api.poll(session, old) if force or one.is_stuck]
        if over and not yes and not _agreed(len(over)):
            say("nothing was forgotten")
            return 0
        if len(over) < len(old):
            say(f"{plural(len(old) - len(over), 'experiment')} of that age still going, kept")
        return _remove(session, over, force=force)


def _remove(session: api.Session, experiments: list[Kept], *, force: bool) -> int:
    for kept in experiments:
        api.remove(session, kept, force=force)
    click.echo(f"{plural(len(experiments), 'experiment')} forgotten")
    return 0


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise Refused(
            "not-asked",
            f"this would forget {plural(count, 'experiment')}, and there is no terminal to ask at",
            "the same line with --yes",
        )
    return click.confirm(f"forget {plural(count, 'experiment')}?", err=True)
