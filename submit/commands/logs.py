"""submit logs."""

from __future__ import annotations

import click

from submit import api
from submit.commands.options import experiment_argument, session
from submit.commands.output import say
from submit.commands.status import describe
from submit.errors import WrongUse
from submit.experiment import Experiment, Run, iter_runs, run_count
from submit.ledger import Kept

MOST_RUNS = 100
"""Runs that are shown without being chosen."""


@click.command("logs")
@experiment_argument
@click.option("--run", "index", type=click.IntRange(0), help="The run of that number.")
@click.option("--seed", type=click.IntRange(0), help="The runs with that seed.")
@click.option("--where", "wheres", multiple=True, metavar="NAME=VALUE", help="[repeatable]")
@click.option("--tail", type=click.IntRange(1, 10_000), help="Only the last lines of each.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the runs are over.")
def command(
    experiment: str,
    index: int | None,
    seed: int | None,
    wheres: tuple[str, ...],
    tail: int | None,
    follow: bool,  # noqa: FBT001 # click passes by name
) -> int:
    """Show what the runs of an experiment have printed; of several, with the run before."""
    ours = session()
    kept = api.find(ours, experiment)
    wanted = _chosen(kept.experiment, index, seed, wheres)
    if len(wanted) > MOST_RUNS:
        say(f"the first {MOST_RUNS} of {len(wanted):,} runs; choose with --run, --seed or --where")
        wanted = wanted[:MOST_RUNS]
    details = api.runs(ours, kept, [run.index for run in wanted])
    several = len(details) > 1
    silent = True
    if follow:
        for detail, line in api.follow(ours, kept, details):
            _show(detail, line, several=several)
            silent = False
    else:
        for detail in details:
            for line in _lines(ours, kept, detail, tail):
                _show(detail, line, several=several)
                silent = False
    if silent:
        say("no lines yet" if details else "none of the runs has begun")
        say(f"  next: submit status {kept.id}")
    return 0


def _lines(ours: api.Session, kept: Kept, detail: api.RunDetail, tail: int | None) -> list[str]:
    if tail:
        return api.tail(ours, kept, detail, tail)
    return api.whole_log(ours, kept, detail)


def _show(detail: api.RunDetail, line: str, *, several: bool) -> None:
    click.echo(f"[{detail.run.index} {describe(detail.run)}] {line}" if several else line)


def _chosen(
    experiment: Experiment, index: int | None, seed: int | None, wheres: tuple[str, ...]
) -> list[Run]:
    pairs = []
    for where in wheres:
        name, equals, value = where.partition("=")
        if not equals:
            raise WrongUse("where", f"{where!r} is no NAME=VALUE", "--where env-id=CartPole-v1")
        pairs.append((name, value))
    chosen = [
        run
        for run in iter_runs(experiment)
        if (index is None or run.index == index)
        and (seed is None or run.seed == seed)
        and all(pair in run.parameters for pair in pairs)
    ]
    if not chosen:
        raise WrongUse(
            "no-such-run",
            f"none of the {run_count(experiment):,} runs is of that kind",
            "submit status EXPERIMENT",
        )
    return chosen
