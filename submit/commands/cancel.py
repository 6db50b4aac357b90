"""submit cancel."""

from __future__ import annotations

import sys

import click

from submit import api
from submit.commands.options import experiment_argument, json_option
from submit.commands.text import plural, progress_text, say, show_json
from submit.states import OVER, RunState


@click.command("cancel")
@experiment_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def command(experiment: str, yes: bool, as_json: bool) -> int:  # noqa: FBT001 # click passes by name
    """Stop an experiment: what waits never starts, what runs is ended."""
    with api.Session() as session:
        kept = api.find(session, experiment)
        if not yes and sys.stdin.isatty():
            now = api.poll(session, [kept])[0]
            if not now.is_stuck:
                named = f"{kept.id} ({kept.name})" if kept.name else kept.id
                if not click.confirm(f"stop {named}, {progress_text(now)}?", err=True):
                    say("nothing was stopped")
                    return 0
        before = api.cancel(session, kept)
    going = sum(
        count
        for state, count in before.counts.items()
        if state not in OVER | {RunState.UNSENT, RunState.UNKNOWN}
    )
    if as_json:
        show_json({"experiment": kept.id, "stopped": going})
    elif going:
        click.echo(f"{plural(going, 'run')} told to stop")
        say(f"  next: submit status {kept.id}")
    else:
        click.echo(f"{progress_text(before)}; nothing to stop")
    return 0
