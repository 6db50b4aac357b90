"""submit results."""

from __future__ import annotations

import click
import msgspec

from submit import api
from submit.commands.options import experiment_argument, json_option, session
from submit.commands.output import number, say, show_json, show_table
from submit.results import MARK, Spread, group_results


@click.command("results")
@experiment_argument
@json_option
def command(experiment: str, as_json: bool) -> int:  # noqa: FBT001 # click passes by name
    """Show the metrics of each run, and their mean ± standard deviation over the seeds.

    A run tells them on a line of its own: runfleet-metrics {"return": 487.2}
    """
    ours = session()
    kept = api.find(ours, experiment)
    found = api.results(ours, kept)
    groups = group_results(found)
    if as_json:
        show_json(
            {
                "experiment": kept.id,
                "runs": [msgspec.to_builtins(result) for result in found],
                "groups": [msgspec.to_builtins(group) for group in groups],
            }
        )
        return 0
    metrics = list(dict.fromkeys(name for result in found for name in result.metrics))
    if not metrics:
        say(f"no run has printed a line `{MARK} {{…}}` yet\n  next: submit logs {kept.id}")
        return 0
    parameters = [name for axis in kept.experiment.axes for name in axis.names]
    show_table(
        ("run", *parameters, "seed", *metrics),
        [
            (
                result.run.index,
                *(value for _, value in result.run.parameters),
                result.run.seed,
                *(_cell(result.metrics.get(name)) for name in metrics),
            )
            for result in found
        ],
        right=f"run seed {' '.join(metrics)}",
    )
    click.echo()
    show_table(
        (*parameters, "runs", *(f"{name} (mean ± std)" for name in metrics)),
        [
            (
                *(value for _, value in group.parameters),
                group.runs,
                *(_spread(group.metrics.get(name)) for name in metrics),
            )
            for group in groups
        ],
        right="runs",
    )
    return 0


def _cell(value: float | None) -> str:
    return "" if value is None else number(value)


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return ""
    return number(spread.mean) + ("" if spread.std is None else f" ± {number(spread.std)}")
