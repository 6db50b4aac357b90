"""submit results."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submit import api
from submit.commands.options import experiment_argument, json_option
from submit.commands.text import number, progress_text, say, show_json
from submit.errors import WrongUse
from submit.results import MARK, STEPS, Outcome, metric_names

if TYPE_CHECKING:
    from submit.api import Summary
    from submit.records import Kept

Table = tuple[list[str], list[list[Any]]]


@click.command("results")
@experiment_argument
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only that.  [repeatable]")
@click.option(
    "--over",
    multiple=True,
    metavar="NAME",
    help="Take the values of a parameter together too, such as --over env-id.  [repeatable]",
)
@click.option(
    "--file",
    "pattern",
    metavar="PATTERN",
    help="From files in place of the logs: runs/{run}.jsonl or s3://bucket/{experiment}/{run}.jsonl",
)
@click.option(
    "--wandb", metavar="ENTITY/PROJECT", help="From Weights & Biases in place of the logs."
)
@click.option("--plot", metavar="FILE", help="Draw learning curves: curve.png, .svg or .pdf.")
@click.option("--csv", "as_csv", type=click.Choice(["runs", "summary"]), help="Answer in CSV.")
@json_option
def command(experiment: str, **given: Any) -> int:
    """Show the metrics of each run, and over the seeds mean ± standard deviation and the
    interquartile mean with its 95 % bootstrap interval.

    A run tells them on a line of its own: runfleet-metrics {"step": 1000, "return": 487.2}
    """
    if sum(map(bool, (given["as_json"], given["as_csv"]))) > 1:
        raise WrongUse("results", "--json and --csv are two answers", "submit results --help")
    with api.Session() as session:
        kept = api.find(session, experiment)
        outcomes = _outcomes(session, kept, given)
    names = _chosen(outcomes, given["metrics"])
    if given["plot"]:
        _draw(kept, outcomes, names, given)
        return 0
    summaries = [one for one in api.summarize(outcomes, given["over"]) if one.metric in names]
    if given["as_json"]:
        show_json(_json(kept.id, outcomes, names, summaries))
    elif given["as_csv"]:
        runs = given["as_csv"] == "runs"
        click.echo(
            _csv(_runs_table(outcomes, names) if runs else _summary_table(summaries)), nl=False
        )
    elif outcomes:
        # How far the runs got is no outcome, unless somebody asks for it.
        _print(outcomes, names, [s for s in summaries if s.metric not in STEPS] or summaries)
    return 0


def _outcomes(session: api.Session, kept: Kept, given: dict[str, Any]) -> list[Outcome]:
    """From where the user says; says itself why there are none."""
    if given["pattern"] and given["wandb"]:
        raise WrongUse("results", "--file and --wandb are two sources", "submit results --help")
    if given["pattern"]:
        found = api.results_from_files(kept, given["pattern"])
        empty = f"no run has left a file {given['pattern']} with a line of JSON"
    elif given["wandb"]:
        found = api.results_from_wandb(session, kept, given["wandb"], curves=bool(given["plot"]))
        empty = f"{given['wandb']} knows no run of {kept.id}"
    else:
        progress = api.poll(session, [kept])[0]
        if not progress.is_over:
            say(f"not over yet: {progress_text(progress)}")
        found = api.results(session, progress)
        empty = f'no run has printed a line like {MARK} {{"return": 487.2}}'
    if not found:
        say(empty)
        say(f"  next: submit logs {kept.id} --tail 5")
    return found


def _chosen(outcomes: list[Outcome], wanted: tuple[str, ...]) -> list[str]:
    names = metric_names(outcomes)
    for name in wanted:
        if outcomes and name not in names:
            raise WrongUse(
                "no-metric",
                f"no run tells {name!r}; there is: {', '.join(names)}",
                f"submit results … --metric {names[0]}",
            )
    return [name for name in names if not wanted or name in wanted]


def _draw(kept: Kept, outcomes: list[Outcome], names: list[str], given: dict[str, Any]) -> None:
    if not outcomes:
        return
    metric = next((name for name in names if name not in STEPS), names[0])
    path = Path(given["plot"])
    api.draw_curves(outcomes, metric, path, f"{kept.name or kept.id}: {metric}")
    say(f"{path}: {metric} over the steps")


def _print(outcomes: list[Outcome], names: list[str], summaries: list[Summary]) -> None:
    from submit.commands.tables import print_table  # noqa: PLC0415 # not for JSON

    columns, rows = _runs_table(outcomes, names)
    width = len(names)
    print_table(columns, [[*row[:-width], *map(_cell, row[-width:])] for row in rows])
    click.echo()
    known = any(one.interquartile for one in summaries)
    print_table(
        (
            *(name for name, _ in summaries[0].parameters),
            "metric",
            "n",
            "mean ± std",
            *(("IQM (95 %)",) if known else ()),
        ),
        [
            (
                *(value for _, value in one.parameters),
                one.metric,
                one.n,
                _spread(one),
                *((_interquartile(one),) if known else ()),
            )
            for one in summaries
        ],
    )
    if not known:
        say("  for the interquartile mean: pip install 'runfleet[results]'")


def _runs_table(outcomes: list[Outcome], names: list[str]) -> Table:
    """A row a run: its number, parameters, seed and metrics."""
    if not outcomes:
        return ["run"], []
    first = outcomes[0].run
    seed = [] if first.seed is None else ["seed"]
    columns = ["run", *(name for name, _ in first.parameters), *seed, *names]
    rows = [
        [
            one.run.index,
            *(value for _, value in one.run.parameters),
            *([one.run.seed] if seed else []),
            *(one.metrics.get(name) for name in names),
        ]
        for one in outcomes
    ]
    return columns, rows


def _summary_table(summaries: list[Summary]) -> Table:
    columns = ["metric", "n", "mean", "std", "iqm", "low", "high"]
    if not summaries:
        return columns, []
    rows = [
        [*(value for _, value in one.parameters), *(_member(one, name) for name in columns)]
        for one in summaries
    ]
    return [*(name for name, _ in summaries[0].parameters), *columns], rows


def _member(one: Summary, name: str) -> Any:
    return getattr(one.interquartile if name in {"iqm", "low", "high"} else one, name, None)


def _csv(table: Table) -> str:
    columns, rows = table
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else number(value)


def _spread(summary: Summary) -> str:
    mean = number(summary.mean)
    return mean if summary.std is None else f"{mean} ± {number(summary.std)}"


def _interquartile(summary: Summary) -> str:
    found = summary.interquartile
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return number(found.iqm)
    return f"{number(found.iqm)} [{number(found.low)}, {number(found.high)}]"


def _json(
    experiment: str, outcomes: list[Outcome], names: list[str], summaries: list[Summary]
) -> dict[str, Any]:
    return {
        "experiment": experiment,
        "runs": [
            {
                "run": outcome.run.index,
                "parameters": dict(outcome.run.parameters),
                "seed": outcome.run.seed,
                "metrics": {n: outcome.metrics[n] for n in names if n in outcome.metrics},
            }
            for outcome in outcomes
        ],
        "summary": [
            {
                "parameters": dict(one.parameters),
                **{name: _member(one, name) for name in _summary_table([])[0]},
            }
            for one in summaries
        ],
    }
