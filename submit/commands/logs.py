"""submit logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from submit import api
from submit.commands.options import (
    Count,
    experiment_argument,
    selection,
    selection_options,
    state_option,
)
from submit.commands.text import INTERRUPTED, plural, run_text, say, show_json_line
from submit.errors import WrongUse
from submit.moments import parse_moment
from submit.states import RunState

if TYPE_CHECKING:
    from submit.backends import LogLine
    from submit.runs import RunView

SHOWN_RUNS = 100
"""Runs whose logs are shown without being chosen: one call or more each."""


@click.command("logs")
@experiment_argument
@selection_options
@state_option
@click.option(
    "--attempt", type=Count(1), help="Only the try of that number, from 1.  [default: all]"
)
@click.option(
    "--node",
    type=Count(0),
    help="Of runs on several machines: that machine's, from 0.  [default: the main one's]",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Only what came after: 10m (ago), 2h, 2026-12-01T10:00.",
)
@click.option("--tail", type=Count(1, 10_000), help="The last lines of each run alone.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the runs are over.")
@click.option("--json", "as_json", is_flag=True, help="Each line as a JSON object of its own.")
def command(experiment: str, since: str | None, follow: bool, **given: Any) -> int:  # noqa: FBT001 # click passes by name
    """Show what the runs of an experiment have printed; of several, each line with its run."""
    wanted = selection(given["runs"], given["seeds"], given["wheres"])
    states = [RunState(state) for state in given["states"]]
    which = {"tail": given["tail"], "attempt": given["attempt"], "node": given["node"]}
    with api.Session() as session:
        kept = api.find(session, experiment)
        which["since"] = parse_moment(since, session.clock.time()) if since else None
        if follow:
            asked = {"states": states, **which}
            return _follow(session, kept, wanted, asked, as_json=given["as_json"])
        progress = api.poll(session, [kept])[0]
        chosen = wanted.runs or wanted.seeds or wanted.where or states
        if progress.runs > SHOWN_RUNS and not chosen:
            raise WrongUse(
                "too-many-logs",
                f"these are {progress.runs:,} runs",
                f"submit logs {kept.id} --run 0 (or --seed, --where; submit status {kept.id})",
            )
        views = api.runs(session, progress, wanted, states)
        show = _shower(len(views), as_json=given["as_json"])
        silent = []
        for view in views:
            empty = True
            for line in api.log(session, progress, view, **which):
                show(view, line)
                empty = False
            silent += [view] if empty else []
        _tell_silent(silent, kept.id)
    return 0


def _follow(
    session: api.Session, kept: Any, wanted: Any, which: dict[str, Any], *, as_json: bool
) -> int:
    try:
        followed = api.follow(session, kept, wanted, **which)
        show = _shower(len(followed.runs), as_json=as_json)
        for view, line in followed.lines:
            show(view, line)
    except KeyboardInterrupt:
        say(f"\nthe runs go on without you\n  next: submit status {kept.id} --watch")
        return INTERRUPTED
    return 0


def _shower(runs: int, *, as_json: bool) -> Callable[[RunView, LogLine], None]:
    """What prints a line: of several runs, with the one that has printed it."""
    if as_json:
        return _show_object
    if runs == 1:
        return lambda _, line: click.echo(line.text)
    return lambda view, line: click.echo(f"[{run_text(view.run)}] {line.text}")


def _show_object(view: RunView, line: LogLine) -> None:
    show_json_line(
        {
            "run": view.run.index,
            "parameters": dict(view.run.parameters),
            "seed": view.run.seed,
            "at": line.at_ms / 1000,
            "text": line.text,
        }
    )


def _tell_silent(views: list[RunView], experiment: str) -> None:
    """That there is nothing to read yet, and why."""
    if not views:
        return
    states: dict[str, int] = {}
    for view in views:
        states[view.state.value] = states.get(view.state.value, 0) + 1
    how = ", ".join(f"{count:,} {state}" for state, count in states.items())
    say(
        f"nothing printed by {plural(len(views), 'run')} ({how})\n  next: submit status {experiment}"
    )
