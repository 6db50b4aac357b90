"""submit resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from submit import api
from submit.commands.options import Parsed, complete_queue, json_option
from submit.commands.text import plural, say, show_json
from submit.errors import WrongUse
from submit.tracking.resuming import STATES

if TYPE_CHECKING:
    from submit.tracking.resuming import Comeback, Crashed

SHOWN = 12


def _states(text: str) -> tuple[str, ...]:
    states = tuple(text.split(","))
    for state in states:
        if state not in STATES:
            raise WrongUse(
                "wandb-state",
                f"{state!r} is no state in which W&B has a run that is over: {', '.join(STATES)}",
                "--state crashed,failed",
            )
    return states


@click.command("resume")
@click.argument("project", metavar="ENTITY/PROJECT")
@click.option(
    "--state",
    "states",
    type=Parsed("state,…", _states),
    default="crashed,failed",
    show_default=True,
    help=f"Of {', '.join(STATES)}.",
)
@click.option(
    "--queue",
    metavar="QUEUE",
    shell_complete=complete_queue,
    help="Another queue.  [default: where they were last]",
)
@click.option("--dry-run", is_flag=True, help="Show which; send nothing.")
@json_option
def command(
    project: str,
    states: tuple[str, ...],
    queue: str | None,
    dry_run: bool,  # noqa: FBT001 # click passes by name
    as_json: bool,  # noqa: FBT001 # likewise
) -> int:
    """Send runs again that Weights & Biases saw crash: exactly those, under their own W&B ids.

    Runs of experiments that were sent from here; one that is under way is left alone.
    """
    with api.Session() as session:
        found = api.crashed_runs(session, project, states)
        if not as_json:
            _tell_left_alone(found)
        sent: dict[str, int] = {}
        for one in found.ours:
            if one.runs and not dry_run:
                sent[one.kept.id] = api.put_back(session, one, queue=queue, note=say).runs
            if one.runs and not as_json:
                _tell(one, sent.get(one.kept.id))
    if as_json:
        show_json(_json(found, sent))
    elif not any(one.runs for one in found.ours):
        click.echo(f"no run of an experiment from here is {' or '.join(states)} in {project}")
    return 0


def _tell(one: Comeback, sent: int | None) -> None:
    numbers = ", ".join(map(str, one.runs[:SHOWN])) + (", …" if len(one.runs) > SHOWN else "")
    name = f" ({one.kept.name})" if one.kept.name else ""
    if sent is None:
        click.echo(
            f"{plural(len(one.runs), 'run')} of {one.kept.id}{name} to send again: {numbers}"
        )
    else:
        click.echo(f"{plural(sent, 'run')} of {one.kept.id}{name} sent again: {numbers}")
        say(f"  next: submit status {one.kept.id} --watch")


def _tell_left_alone(found: Crashed) -> None:
    for one in found.ours:
        if one.under_way:
            say(
                f"{plural(len(one.under_way), 'run')} of {one.kept.id} left alone: under way, "
                "whatever W&B says"
            )
    if found.others:
        say(
            f"{plural(sum(found.others.values()), 'run')} of experiments that were not sent from here: "
            f"{', '.join(sorted(found.others)[:SHOWN])}"
        )


def _json(found: Crashed, sent: dict[str, int]) -> dict[str, Any]:
    return {
        "experiments": [
            {
                "experiment": one.kept.id,
                "runs": one.runs,
                "under_way": one.under_way,
                "sent": sent.get(one.kept.id, 0),
            }
            for one in found.ours
        ],
        "not_from_here": found.others,
    }
