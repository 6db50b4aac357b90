"""Options that several verbs share, and parameters that answer with the accepted form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from submit.api import Session
from submit.errors import WrongUse


class Parsed(click.ParamType[Any]):
    """A parameter that one of runfleet's parsers reads."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except WrongUse as err:
            hint = f"\n  next: {err.hint}" if err.hint else ""
            self.fail(f"{err.message}{hint}", param, ctx)


stack_option = click.option(
    "--stack",
    metavar="TEAM",
    help="The Pulumi stack.  [default: RUNFLEET_STACK, else the selected one]",
)
fleet_option = click.option(
    "--fleet",
    metavar="FILE",
    help="Read the fleet document from a file (- for standard input).  [default: RUNFLEET_FLEET]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
experiment_argument = click.argument("experiment", metavar="EXPERIMENT")


def session(stack: str | None = None, fleet: str | None = None) -> Session:
    """The session of this process."""
    return Session.from_environment(stack=stack, fleet=fleet)
