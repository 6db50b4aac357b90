"""submit retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from submit import api
from submit.commands.options import (
    complete_queue,
    experiment_argument,
    fallback_of,
    fallback_options,
    json_option,
    selection,
    selection_options,
)
from submit.commands.text import INTERRUPTED, plural, progress_text, say, show_json
from submit.states import RunState

if TYPE_CHECKING:
    from submit.retrying import Retry


@click.command("retry")
@experiment_argument
@selection_options
@click.option("--failed", is_flag=True, help="Only those whose command failed.")
@click.option("--lost", is_flag=True, help="Only those whose machine was taken.")
@click.option("--cancelled", is_flag=True, help="Those that were cancelled.")
@click.option("--unknown", is_flag=True, help="Those that AWS Batch forgot before they were over.")
@click.option(
    "--queue",
    metavar="QUEUE",
    shell_complete=complete_queue,
    help="Another queue.  [default: where they were last]",
)
@fallback_options
@json_option
def command(experiment: str, queue: str | None, as_json: bool, **given: Any) -> int:  # noqa: FBT001 # click passes by name
    """Send runs of an experiment again: all that failed or were lost, unless some are chosen.

    They keep their numbers, parameters and W&B ids; in as few jobs as possible.
    """
    names = ("failed", "lost", "cancelled", "unknown")
    states = [RunState(name) for name in names if given[name]]
    fallback = fallback_of(given["fallback"], given["after"])
    with api.Session() as session:
        kept = api.find(session, experiment)
        try:
            done = api.retry(
                session,
                kept,
                selection(given["runs"], given["seeds"], given["wheres"]),
                states=states,
                queue=queue,
                fallback=fallback,
                note=say,
            )
        except KeyboardInterrupt:
            now = api.known(session, [kept])[0]
            say(f"\ninterrupted; {progress_text(now)}\n  next: the same line goes on")
            return INTERRUPTED
    if as_json:
        show_json(_json(done))
    else:
        _tell(done, [state.value for state in states] or ["failed", "lost"])
    return 0


def _tell(done: Retry, states: list[str]) -> None:
    kept = done.before.kept
    if not done.runs:
        click.echo(f"{progress_text(done.before)}; none to send again ({' or '.join(states)})")
        say(f"  next: submit status {kept.id}")
        return
    for queue, runs in done.queues.items():
        click.echo(f"{plural(runs, 'run')} of {kept.id} sent to {queue} again")
    jobs = sum(one.sent + one.adopted for one in done.deliveries)
    say(f"in {plural(jobs, 'job')}\n  next: submit status {kept.id} --watch")


def _json(done: Retry) -> dict[str, Any]:
    return {
        "experiment": done.before.kept.id,
        "runs": done.runs,
        "queues": done.queues,
        "jobs": sum(one.sent + one.adopted for one in done.deliveries),
    }
