"""submit status."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from submit import api
from submit.commands.options import (
    complete_experiment,
    json_option,
    selection,
    selection_options,
    state_option,
)
from submit.commands.text import (
    INTERRUPTED,
    bar,
    one_line,
    plural,
    progress_text,
    run_text,
    say,
    seconds,
    show_json,
)
from submit.errors import ServiceFailed, WrongUse
from submit.experiment import parameter_names
from submit.states import BAD, RunState

if TYPE_CHECKING:
    from submit.experiment import Experiment
    from submit.progress import Progress
    from submit.runs import RunView, Selection

SHOWN_RUNS = 50
"""Runs up to which all are shown without being asked for: one call."""
SHOWN_FAILURES = 20
SHOWN_EXPERIMENTS = 20


@click.command("status")
@click.argument(
    "experiment", metavar="[EXPERIMENT]", required=False, shell_complete=complete_experiment
)
@selection_options
@state_option
@click.option("--all", "everything", is_flag=True, help="Show all, however many they are.")
@click.option("--watch", "follow", is_flag=True, help="Follow it to its end.")
@json_option
def command(experiment: str | None, follow: bool, as_json: bool, **given: Any) -> int:  # noqa: FBT001 # click passes by name
    """Show all experiments, or the runs of one: its id, the beginning of it, its name, or latest.

    Exits with 1 when runs of that one have failed.
    """
    with api.Session() as session:
        if follow or experiment:
            kept = api.find(session, experiment or "latest")
            if follow:
                from submit.commands.watch import watch  # noqa: PLC0415 # rarely

                api.check_selection(kept, _selection(given))
                code = watch(session, kept, quiet=as_json)
                more = as_json or given["everything"] or _chosen(given)
                if not more or code == INTERRUPTED:
                    return code
            return _show_one(session, kept, given, as_json=as_json, told=follow)
        if _chosen(given):
            raise WrongUse("whose-runs", "runs of which experiment?", "submit status latest …")
        return _show_all(session, everything=given["everything"], as_json=as_json)


def exit_code(progress: Progress) -> int:
    """1 when runs ended badly."""
    return 1 if progress.bad else 0


def took(progress: Progress) -> str:
    """`in 41 s`, once it is over; `for 41 s` before."""
    if progress.sent_at is None:
        return ""
    if progress.ended_at is not None:
        return f"in {seconds(progress.ended_at - progress.sent_at)}"
    return f"for {seconds(time.time() - progress.sent_at)}"


def tell_end(session: api.Session, progress: Progress) -> None:
    """What to know, and what to type, when an experiment goes no further."""
    kept = progress.kept
    if RunState.UNSENT in progress.counts:
        unsent = plural(progress.counts[RunState.UNSENT], "run was", "runs were")
        say(f"{unsent} not sent: the same `submit run` line sends the rest")
    if RunState.UNKNOWN in progress.counts:
        say("AWS Batch does not know the job any more (it keeps them for a week or so)")
        say(f"  next: submit retry {kept.id} --unknown")
    failed = progress.bad - progress.counts.get(RunState.CANCELLED, 0)
    failures = api.failed_runs(session, progress, 1) if failed else []
    for view in failures:
        say(f"first that failed: run {run_text(view.run)}: {reason_text(view)}")
        lines = [line.text.rstrip() for line in api.log(session, progress, view, 5)]
        last = next((line for line in reversed(lines) if line), None)
        if last:
            say(f"  its last line: {one_line(last)}")
        say(f"  next: submit logs {kept.id} --run {view.run.index}; submit retry {kept.id}")
    if progress.is_over and not failures:
        if RunState.DONE in progress.counts:
            say(f"  next: submit results {kept.id}")
        elif RunState.CANCELLED in progress.counts:
            say(f"  next: submit retry {kept.id} --cancelled")


def reason_text(view: RunView) -> str:
    """Why a run ended as it did, with its exit status."""
    status = "" if view.exit_code is None else f"exit status {view.exit_code}"
    return ", ".join(part for part in (status, view.reason or "") if part) or view.state.value


def _show_one(
    session: api.Session, kept: Any, given: dict[str, Any], *, as_json: bool, told: bool
) -> int:
    """Shows it; `told` is what to know at its end already."""
    found, trouble = _look(session, [kept])
    progress = found[0]
    why: list[str] = []
    views: list[RunView] = []
    left = 0
    if not trouble:
        try:
            views, left = _choose_runs(session, progress, given)
            why = api.why_waiting(session, progress, views)
        except ServiceFailed as err:
            trouble = err
    if as_json:
        details = [_run_json(view) for view in views]
        show_json(_json(progress) | {"waits": why, "details": details})
    else:
        _print_one(progress, views, left, why)
    if trouble:
        raise trouble
    if not as_json and not told:
        if progress.is_stuck:
            tell_end(session, progress)
        else:
            say(f"  next: submit status {kept.id} --watch")
    return exit_code(progress)


def _look(
    session: api.Session, experiments: list[Any]
) -> tuple[list[Progress], ServiceFailed | None]:
    """How they stand; when AWS can't be asked, how they stood when it last could, and why."""
    try:
        return api.look(session, experiments, say), None
    except ServiceFailed as err:
        found = api.known(session, experiments)
        seen = [progress.seen for progress in found if progress.seen]
        age = f", {seconds(time.time() - min(seen))} ago" if seen else ""
        message = f"{err.message}; shown is what was known before{age}"
        return found, ServiceFailed(err.slug, message, err.hint)


def _choose_runs(
    session: api.Session, progress: Progress, given: dict[str, Any]
) -> tuple[list[RunView], int]:
    """The runs to show, and how many are left out."""
    if _chosen(given) or given["everything"] or progress.runs <= SHOWN_RUNS:
        states = [RunState(state) for state in given["states"]]
        return api.runs(session, progress, _selection(given), states), 0
    views = api.failed_runs(session, progress, SHOWN_FAILURES) if progress.bad else []
    return views, progress.runs - len(views)


def _selection(given: dict[str, Any]) -> Selection:
    return selection(given["runs"], given["seeds"], given["wheres"])


def _chosen(given: dict[str, Any]) -> bool:
    return any(given[name] for name in ("runs", "seeds", "wheres", "states"))


def _print_one(progress: Progress, views: list[RunView], left: int, why: list[str]) -> None:
    from submit.commands.tables import print_table  # noqa: PLC0415 # not for JSON

    kept = progress.kept
    queues = ", ".join(dict.fromkeys(row.queue_name for row in progress.rows))
    name = f" ({kept.name})" if kept.name else ""
    click.echo(f"{kept.id}{name} on {queues or 'no queue'} of {kept.stack}")
    text = f"{bar(progress.counts)} {progress_text(progress)}, {took(progress)}"
    click.echo(text.removesuffix(", "))
    if progress.losses or progress.tries > progress.runs:
        tries = plural(progress.tries, "try", "tries")
        click.echo(f"{tries} so far, {plural(progress.losses, 'machine')} lost")
    if kept.fallback:
        click.echo(
            f"runs that lose {plural(kept.fallback.after, 'machine')} go on to {kept.fallback.queue}"
        )
    for words in why:
        click.echo(f"waiting: {words}")
    if views:
        click.echo()
        bad = any(view.state in BAD for view in views)
        lost = any(view.losses for view in views)
        columns = (
            *("run", *_parameter_names(kept.experiment), "state", "exit", "tries"),
            *(("lost", "time") if lost else ("time",)),
            *(("reason",) if bad else ()),
        )
        print_table(
            columns,
            [_cells(view, lost=lost, bad=bad) for view in views],
            spare=("lost", "tries", "time", "exit", "reason"),
            cut="reason",
        )
    if left:
        which = "failed ones; in all " if views else ""
        click.echo(f"({which}{progress.runs:,} runs: --all, --where, --seed and --run show them)")


def _cells(view: RunView, *, lost: bool, bad: bool) -> tuple[Any, ...]:
    run = view.run
    seed = () if run.seed is None else (run.seed,)
    cells = (
        run.index,
        *(one_line(value) for _, value in run.parameters),
        *seed,
        view.state,
        view.exit_code,
        view.attempts or None,
        *((view.losses or None,) if lost else ()),
        _duration(view),
    )
    return (*cells, view.reason if view.state in BAD else None) if bad else cells


def _duration(view: RunView) -> str | None:
    if view.started_ms is None:
        return None
    end_s = time.time() if view.stopped_ms is None else view.stopped_ms / 1000
    return seconds(end_s - view.started_ms / 1000)


def _parameter_names(experiment: Experiment) -> list[str]:
    names = parameter_names(experiment)
    return [*names, "seed"] if experiment.seeds else names


def _show_all(session: api.Session, *, everything: bool, as_json: bool) -> int:
    kept = api.experiments(session)
    shown = kept if everything or as_json else kept[:SHOWN_EXPERIMENTS]
    found, trouble = _look(session, shown)
    if as_json:
        show_json([_json(progress) for progress in found])
    elif not kept:
        say("nothing was submitted from here yet\n  next: submit run --help")
    else:
        _print_all(found)
        if len(kept) > len(shown):
            say(f"{len(kept) - len(shown):,} older ones: submit status --all")
    if trouble:
        raise trouble
    return 0


def _print_all(found: list[Progress]) -> None:
    from submit.commands.tables import print_table  # noqa: PLC0415 # not for JSON

    print_table(
        ("experiment", "name", "stack", "queue", "sent", "", "runs", "time", "lost"),
        [
            (
                progress.kept.id,
                progress.kept.name,
                progress.kept.stack,
                ", ".join(dict.fromkeys(row.queue_name for row in progress.rows)),
                f"{seconds(time.time() - progress.kept.created)} ago",
                bar(progress.counts),
                progress_text(progress),
                _elapsed(progress),
                progress.losses or None,
            )
            for progress in found
        ],
        spare=("lost", "stack", "", "time", "name", "queue", "sent"),
    )


def _elapsed(progress: Progress) -> str | None:
    if progress.sent_at is None:
        return None
    return seconds((progress.ended_at or time.time()) - progress.sent_at)


def _json(progress: Progress) -> dict[str, Any]:
    kept = progress.kept
    return {
        "experiment": kept.id,
        "name": kept.name,
        "stack": kept.stack,
        "account": kept.scope.account,
        "region": kept.scope.region,
        "command": kept.experiment.command,
        "image": kept.experiment.image,
        "runs": progress.runs,
        "states": {state.value: count for state, count in progress.counts.items()},
        "over": progress.is_over,
        "sent_at": progress.sent_at,
        "ended_at": progress.ended_at,
        "reason": progress.reason,
        "tries": progress.tries,
        "losses": progress.losses,
        "fallback": msgspec.to_builtins(kept.fallback),
        "jobs": [
            {
                "id": row.job_id,
                "name": row.name,
                "submission": row.number,
                "queue": row.queue_name,
                "runs": row.runs,
                "owner": row.owner,
            }
            for row in progress.rows
        ],
    }


def _run_json(view: RunView) -> dict[str, Any]:
    run = view.run
    fields: dict[str, Any] = msgspec.to_builtins(view)
    del fields["run"]
    return {
        "run": run.index,
        "parameters": dict(run.parameters),
        "seed": run.seed,
        "wandb_run_id": run.wandb_run_id,
        **fields,
    }
