"""Options that several verbs share, and kinds of values that answer with the accepted form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from submit import api
from submit.errors import SubmitError, WrongUse
from submit.fleet import LOCAL
from submit.records import Fallback
from submit.session import Session
from submit.states import RunState

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from submit.runs import Selection

FALLBACK_AFTER = 3
"""Machines that a run may lose before it goes to its fallback, when nothing is said."""


class Count(click.IntRange):
    """A number, which people are told in one letter."""

    name = "n"


class Parsed(click.ParamType[Any]):
    """A value that one of runfleet's parsers reads; its complaint is the user's answer."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except WrongUse as err:
            option = param.opts[0] if param else self.name
            verb = ctx.command_path if ctx else "submit"
            raise WrongUse(
                err.slug, f"{option}: {err.message}", err.hint or f"{verb} --help"
            ) from err


def complete_queue(ctx: click.Context, _param: click.Parameter, start: str) -> list[str]:
    """Names of queues that begin so; the own machine alone where no fleet is known."""
    try:
        with Session(fleet=ctx.params.get("fleet"), stack=ctx.params.get("stack")) as session:
            names = [*api.complete_queues(session), LOCAL]
            return [name for name in names if name.startswith(start)]
    except SubmitError:  # a person is typing: nothing to complete, and nobody to tell
        return []


def complete_experiment(
    _ctx: click.Context, _param: click.Parameter, start: str
) -> list[CompletionItem]:
    """Ids of experiments that begin so, the newest first, with their names; and `latest`."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 # while a person types

    try:
        with Session() as session:
            known = [("latest", "the one sent last"), *api.complete_experiments(session)]
    except SubmitError:  # likewise
        return []
    return [CompletionItem(name, help=help_) for name, help_ in known if name.startswith(start)]


class Named(click.Option):
    """An option that CleanRL calls otherwise; people are told our name alone."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        with self._ours():
            return super().get_help_record(ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        with self._ours():
            return super().get_error_hint(ctx)

    @contextmanager
    def _ours(self) -> Iterator[None]:
        every, self.opts = self.opts, self.opts[:1]
        try:
            yield
        finally:
            self.opts = every


stack_option = click.option(
    "--stack",
    metavar="TEAM",
    help="The stack.  [default: RUNFLEET_STACK, `submit use`, or the selected one]",
)
fleet_option = click.option(
    "--fleet",
    metavar="FILE",
    help="A file with the fleet document (- for standard input).  [default: RUNFLEET_FLEET]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
experiment_argument = click.argument(
    "experiment", metavar="EXPERIMENT", shell_complete=complete_experiment
)
experiments_argument = click.argument(
    "experiments", metavar="EXPERIMENT…", nargs=-1, shell_complete=complete_experiment
)
state_option = click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in RunState]),
    help="Runs in that state.  [repeatable]",
)


def fallback_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where runs go that have lost their machines: --fallback, --after."""
    command = click.option(
        "--after",
        type=Count(1, 10),
        help="Spot machines that a run may lose before it goes there.  [default: 3]",
    )(command)
    return click.option(
        "--fallback",
        metavar="QUEUE",
        shell_complete=complete_queue,
        help="Runs that lose their spot machines go on there: by `submit status`, `wait` or "
        "--watch, when they see it.",
    )(command)


def fallback_of(queue: str | None, after: int | None) -> Fallback | None:
    """What the fallback options say. Raises WrongUse for --after alone."""
    if queue is None and after is not None:
        raise WrongUse("after-what", "--after says when to go to --fallback", "--fallback QUEUE")
    return None if queue is None else Fallback(queue=queue, after=after or FALLBACK_AFTER)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which runs of the experiment are meant: --run, --seed, --where."""
    for option in (
        click.option(
            "--where",
            "wheres",
            multiple=True,
            metavar="NAME=VALUE,…",
            help="Runs with one of these values of a parameter.  [repeatable]",
        ),
        click.option(
            "--seed",
            "seeds",
            type=Count(0),
            multiple=True,
            help="Runs with that seed.  [repeatable]",
        ),
        click.option(
            "--run",
            "runs",
            type=Count(0),
            multiple=True,
            help="The run of that number.  [repeatable]",
        ),
    ):
        command = option(command)
    return command


def selection(runs: tuple[int, ...], seeds: tuple[int, ...], wheres: tuple[str, ...]) -> Selection:
    """What the selection options say.

    Raises WrongUse for what is no NAME=VALUE.
    """
    from submit.grid import parse_axis  # noqa: PLC0415 # not by all who share options
    from submit.runs import Selection  # noqa: PLC0415 # likewise

    axes = [parse_axis(where) for where in wheres]
    return Selection(
        runs=runs,
        seeds=seeds,
        where=tuple((axis.names[0], tuple(row[0] for row in axis.rows)) for axis in axes),
    )


__all__ = [
    "Count",
    "Named",
    "Parsed",
    "Session",
    "experiment_argument",
    "experiments_argument",
    "fallback_of",
    "fallback_options",
    "fleet_option",
    "json_option",
    "selection",
    "selection_options",
    "stack_option",
    "state_option",
]
