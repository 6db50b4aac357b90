"""submit results."""

from __future__ import annotations

from typing import Any

import click

from submit import api
from submit.commands.options import experiment_argument, json_option
from submit.commands.text import number, progress_text, say, show_json
from submit.results import MARK, Outcome, Summary, metric_names, summarize


@click.command("results")
@experiment_argument
@json_option
def command(experiment: str, as_json: bool) -> int:  # noqa: FBT001 # click passes by name
    """Show the metrics of each run, and mean ± standard deviation over the seeds.

    A run tells them on a line of its own: runfleet-metrics {"return": 487.2}
    """
    with api.Session() as session:
        kept = api.find(session, experiment)
        progress = api.poll(session, [kept])[0]
        outcomes = api.results(session, progress)
    summaries = summarize(outcomes)
    if as_json:
        show_json(_json(kept.id, outcomes, summaries))
        return 0
    if not progress.is_over:
        say(f"not over yet: {progress_text(progress)}")
    if not outcomes:
        say(f'no run has printed a line like {MARK} {{"return": 487.2}}')
        say(f"  next: submit logs {kept.id} --tail 5")
        return 0
    _print(outcomes, summaries)
    return 0


def _print(outcomes: list[Outcome], summaries: list[Summary]) -> None:
    from submit.commands.tables import print_table  # noqa: PLC0415 # not for JSON

    metrics = metric_names(outcomes)
    parameters = [name for name, _ in outcomes[0].run.parameters]
    seed = [] if outcomes[0].run.seed is None else ["seed"]
    print_table(
        ("run", *parameters, *seed, *metrics),
        [
            (
                outcome.run.index,
                *(value for _, value in outcome.run.parameters),
                *([outcome.run.seed] if seed else []),
                *(_cell(outcome.metrics.get(metric)) for metric in metrics),
            )
            for outcome in outcomes
        ],
    )
    click.echo()
    print_table(
        (*parameters, "metric", "n", "mean ± std"),
        [
            (*(value for _, value in one.parameters), one.metric, one.n, _spread(one))
            for one in summaries
        ],
    )


def _cell(value: float | None) -> str:
    return "" if value is None else number(value)


def _spread(summary: Summary) -> str:
    mean = number(summary.mean)
    return mean if summary.std is None else f"{mean} ± {number(summary.std)}"


def _json(experiment: str, outcomes: list[Outcome], summaries: list[Summary]) -> dict[str, Any]:
    return {
        "experiment": experiment,
        "runs": [
            {
                "run": outcome.run.index,
                "parameters": dict(outcome.run.parameters),
                "seed": outcome.run.seed,
                "metrics": outcome.metrics,
            }
            for outcome in outcomes
        ],
        "summary": [
            {
                "parameters": dict(one.parameters),
                "metric": one.metric,
                "n": one.n,
                "mean": one.mean,
                "std": one.std,
            }
            for one in summaries
        ],
    }
