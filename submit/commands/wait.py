"""submit wait."""

from __future__ import annotations

import click

from submit import api
from submit.commands.options import Parsed, experiments_argument, json_option
from submit.commands.status import took
from submit.commands.text import INTERRUPTED, TIMED_OUT, progress_text, say, show_json
from submit.errors import WrongUse
from submit.states import RunState
from submit.units import parse_duration


@click.command("wait")
@experiments_argument
@click.option(
    "--timeout",
    type=Parsed("duration", parse_duration),
    help="Wait so long at most: 90m, 2h.  [default: no limit]",
)
@json_option
def command(experiments: tuple[str, ...], timeout: int | None, as_json: bool) -> int:  # noqa: FBT001 # click passes by name
    """Wait until experiments are over: exits with 0 when all runs are done, with 1 when some are
    not, with 124 when the time was over before.
    """
    if not experiments:
        raise WrongUse("no-experiment", "which experiment?", "submit wait latest")
    with api.Session() as session:
        kept = [api.find(session, reference) for reference in experiments]
        try:
            found = api.wait_for(
                session,
                kept,
                timeout_s=timeout,
                trouble=lambda err: say(f"{err.message}; trying again"),
                note=say,
            )
        except KeyboardInterrupt:
            say(f"\nthe runs go on without you\n  next: submit wait {' '.join(experiments)}")
            return INTERRUPTED
    done = all(set(one.counts) == {RunState.DONE} for one in found)
    if as_json:
        show_json(
            [
                {
                    "experiment": one.kept.id,
                    "states": {state.value: count for state, count in one.counts.items()},
                    "over": one.is_over,
                }
                for one in found
            ]
        )
    else:
        for one in found:
            click.echo(f"{one.kept.id}: {progress_text(one)}, {took(one)}".removesuffix(", "))
    if not all(one.is_stuck for one in found):
        say(f"not over yet\n  next: submit wait {' '.join(experiments)}")
        return TIMED_OUT
    return 0 if done else 1
