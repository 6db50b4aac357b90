"""submit cancel."""

from __future__ import annotations

import sys

import click

from submit import api
from submit.commands.options import experiment_argument, session
from submit.commands.output import plural, say
from submit.commands.status import one_line
from submit.errors import ServiceFailed


@click.command("cancel")
@experiment_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(experiment: str, yes: bool) -> int:  # noqa: FBT001 # click passes by name
    """Stop an experiment: what waits never starts, what runs is ended."""
    ours = session()
    kept = api.find(ours, experiment)
    (now,) = api.status(ours, [kept])
    if now.over or not now.rows:
        say(f"nothing to stop: {one_line(now)}")
        return 0
    if not yes and sys.stdin.isatty():
        click.confirm(f"{kept.id} ({kept.name}), {one_line(now)}: stop it?", abort=True, err=True)
    told, failed = api.cancel(ours, kept)
    if failed:
        first = next(iter(failed.items()))
        raise ServiceFailed(
            "cancel",
            f"{plural(told, 'job')} stopped, {len(failed)} not; job {first[0]}: {first[1]}",
            f"submit cancel {kept.id}",
        )
    say(f"{plural(told, 'job')} told to stop\n  next: submit status {kept.id}")
    return 0
