"""submit status."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from submit import api
from submit.commands.options import json_option, session
from submit.commands.output import duration, plural, say, show_json, show_table
from submit.experiment import Run, run_count
from submit.ledger import Kept
from submit.states import BAD, OVER, RunState

MOST_ROWS = 100
"""Runs that the table shows without being asked for more: one call."""
ORDER = list(RunState)


@click.command("status")
@click.argument("experiment", metavar="[EXPERIMENT]", required=False)
@click.option("--watch", "follow", is_flag=True, help="Follow it to its end.")
@click.option("--all", "all_runs", is_flag=True, help=f"Show more than {MOST_ROWS} runs.")
@json_option
def command(experiment: str | None, follow: bool, all_runs: bool, as_json: bool) -> int:  # noqa: FBT001 # click passes by name
    """Show all experiments, or one (its id, a beginning of it, its name, or `latest`).

    Exits with 1 when runs have failed.
    """
    ours = session()
    if experiment is None:
        return _show_all(ours, as_json=as_json)
    kept = api.find(ours, experiment)
    if follow:
        return watch(ours, kept)
    (now,) = api.status(ours, [kept])
    shown = range(run_count(kept.experiment) if all_runs else min(now.runs, MOST_ROWS))
    details = api.runs(ours, kept, shown) if now.rows else []
    if as_json:
        show_json(_as_json(now, details))
        return _exit_code(now)
    click.echo(f"experiment {kept.id} ({kept.name})")
    click.echo(f"  {one_line(now)}")
    show_table(
        ("run", *_parameter_names(kept), "state", "exit", "tries", "time", "reason"),
        [_row(detail) for detail in details],
        right="run exit tries",
    )
    if now.runs > len(shown):
        click.echo(f"… {plural(now.runs - len(shown), 'run')} more: --all, or --json")
    _tell_first_failure(ours, kept, now)
    return _exit_code(now)


def one_line(now: api.Status) -> str:
    """`6 runs: 4 done, 2 running, for 12 s`."""
    counts = [f"{now.counts[state]:,} {state.value}" for state in ORDER if now.counts.get(state)]
    if now.unsent > 0:
        counts.append(f"{now.unsent:,} not sent")
    end = now.stopped_ms or (time.time() * 1000)
    took = (
        f", {'in' if now.over else 'for'} {duration(end - now.started_ms)}"
        if now.started_ms
        else ""
    )
    return f"{plural(now.runs, 'run')}: {', '.join(counts) or 'nothing sent'}{took}"


def watch(ours: api.Session, kept: Kept) -> int:
    """Shows the progress until all is over; the exit code."""
    try:
        now = _watch_terminal(ours, kept) if sys.stderr.isatty() else _watch_lines(ours, kept)
    except KeyboardInterrupt:
        say(f"\nthe runs go on without you\n  next: submit status {kept.id} --watch")
        return 130
    _tell_first_failure(ours, kept, now)
    return _exit_code(now)


def _watch_lines(ours: api.Session, kept: Kept) -> api.Status:
    said = None
    for now in _polls(ours, kept):
        if now.counts != said:
            click.echo(one_line(now))
            said = now.counts
    return now


def _watch_terminal(ours: api.Session, kept: Kept) -> api.Status:
    from rich.console import Console  # noqa: PLC0415 # takes as long as a dry run
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415 # likewise

    bar = Progress(
        TextColumn(f"{kept.name}"),
        BarColumn(bar_width=None),
        TextColumn("{task.description}"),
        console=Console(stderr=True, highlight=False),
    )
    with bar:
        task = bar.add_task("", total=run_count(kept.experiment))
        for now in _polls(ours, kept):
            over = sum(count for state, count in now.counts.items() if state in OVER)
            bar.update(task, completed=over, description=one_line(now))
    return now


def _polls(ours: api.Session, kept: Kept) -> Iterator[api.Status]:
    """The status again and again, less often when nothing happens."""
    pause, before = 1.0, None
    while True:
        (now,) = api.status(ours, [kept])
        yield now
        if now.over or not now.rows:
            return
        pause = 1.0 if now.counts != before else min(pause * 1.3, 15.0)
        before = now.counts
        time.sleep(pause)


def _show_all(ours: api.Session, *, as_json: bool) -> int:
    found = api.status(ours, api.experiments(ours))
    if as_json:
        show_json([_as_json(now, []) for now in found])
    elif not found:
        say("nothing was submitted from here yet\n  next: submit run --help")
    else:
        rows = [
            (
                now.kept.id,
                now.kept.name,
                now.kept.stack,
                time.strftime("%Y-%m-%d %H:%M", time.localtime(now.kept.created)),
                one_line(now),
            )
            for now in found
        ]
        show_table(("experiment", "name", "stack", "submitted", "runs"), rows)
    return max(map(_exit_code, found), default=0)


def _tell_first_failure(ours: api.Session, kept: Kept, now: api.Status) -> None:
    if not any(now.counts.get(state) for state in (RunState.FAILED, RunState.LOST)):
        return
    detail = api.first_failure(ours, kept)
    if detail is None:
        return
    exit_code = detail.status.exit_code
    code = "" if exit_code is None else f" with exit status {exit_code}"
    say(
        f"first failure: run {detail.run.index} ({describe(detail.run)}){code}: {detail.status.reason}"
    )
    for line in api.tail(ours, kept, detail, 1):
        say(f"  its last line: {line}")
    say(f"  next: submit logs {kept.id} --run {detail.run.index}")


def describe(run: Run) -> str:
    """`env-id=CartPole-v1 seed=2`."""
    parts = [f"{name}={value}" for name, value in run.parameters]
    return " ".join(parts if run.seed is None else [*parts, f"seed={run.seed}"]) or "the only one"


def _parameter_names(kept: Kept) -> list[str]:
    names = [name for axis in kept.experiment.axes for name in axis.names]
    return [*names, "seed"] if kept.experiment.seeds else names


def _row(detail: api.RunDetail) -> list[Any]:
    run, status = detail.run, detail.status
    values: list[Any] = [value for _, value in run.parameters]
    if run.seed is not None:
        values.append(run.seed)
    took = (
        (status.stopped_ms or time.time() * 1000) - status.started_ms if status.started_ms else None
    )
    reason = status.reason if status.state in BAD or status.state is RunState.WAITING else None
    return [
        run.index,
        *values,
        status.state.value,
        status.exit_code,
        status.attempts or None,
        duration(took),
        reason,
    ]


def _as_json(now: api.Status, details: list[api.RunDetail]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "experiment": now.kept.id,
        "name": now.kept.name,
        "stack": now.kept.stack,
        "submitted": now.kept.created,
        "runs": now.runs,
        "counts": {state.value: count for state, count in now.counts.items()},
        "unsent": now.unsent,
        "over": now.over,
        "jobs": [
            {"name": row.name, "id": row.job_id, "queue": row.queue_name, "size": row.size}
            for row in now.rows
        ],
    }
    if details:
        answer["details"] = [
            {
                "run": detail.run.index,
                "parameters": dict(detail.run.parameters),
                "seed": detail.run.seed,
                "wandb_run_id": detail.run.wandb_run_id,
                **msgspec.to_builtins(detail.status),
            }
            for detail in details
        ]
    return answer


def _exit_code(now: api.Status) -> int:
    return 1 if any(now.counts.get(state) for state in BAD) else 0
