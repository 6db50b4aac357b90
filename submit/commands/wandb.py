"""submit wandb."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from submit import api
from submit.commands.options import fleet_option, stack_option
from submit.commands.text import say
from submit.errors import WrongUse
from submit.tracking.wanted import KEY, wandb_secret


@click.group("wandb", subcommand_metavar="login …")
def command() -> None:
    """Track runs with Weights & Biases."""


@command.command("login")
@click.option(
    "--wandb-key",
    "given",
    metavar="KEY",
    help="The key, or - to read it from standard input.  [default: WANDB_API_KEY, netrc, else you "
    "are asked]",
)
@stack_option
@fleet_option
def login(given: str | None, stack: str | None, fleet: str | None) -> int:
    """Put your key into the stack's secret, from which its runs get it.

    Once for a team; it stands in no request, and AWS hands it to a run as it starts.
    """
    with api.Session(fleet=fleet, stack=stack) as session:
        found = api.queues(session)
        wandb_secret(found)  # before the user is asked
        key = _key(given, session.environ)
        api.store_wandb_key(session, key)
    say(f"the runs of {found.stack} that start from now on have the key")
    say("  next: submit run --wandb-project PROJECT …")
    return 0


def _key(given: str | None, environ: Mapping[str, str]) -> str:
    from submit.tracking.hiding import hide_argument  # noqa: PLC0415 # not for a help page
    from submit.tracking.keys import checked_key, find_key  # noqa: PLC0415 # likewise

    if given == "-":
        return checked_key(sys.stdin.readline().strip(), "the line on standard input")
    if given:
        hide_argument(given)
    found = find_key(given, environ)
    if found:
        return found
    if not sys.stdin.isatty():
        raise WrongUse(
            "no-wandb-key",
            f"there is no key: neither {KEY} nor netrc has one for W&B",
            "submit wandb login --wandb-key - < FILE",
        )
    asked: str = click.prompt("key (https://wandb.ai/authorize)", hide_input=True, err=True)
    return checked_key(asked.strip(), "what you typed")
