"""What would be sent, as people and programs read it."""

from __future__ import annotations

import itertools
import shlex
from typing import Any

import click

from submit.api import Plan
from submit.aws_cli import iter_aws_cli
from submit.commands.text import plural, seconds
from submit.experiment import (
    Experiment,
    grid_size,
    iter_runs,
    retries_of,
    run_arguments,
    run_count,
)
from submit.fleet import LOCAL
from submit.plan import Job, Submission
from submit.ranges import plain_ranges
from submit.resources import JobResources

SHOWN_RUNS = 6
SHOWN_JOBS = 3
SHOWN_RANGES = 40
"""Letters: half a line."""
LABEL = 12
"""Columns for the words on the left."""


def print_summary(plan: Plan) -> None:
    """Experiment, runs, queue, resources, image, a line each."""
    submission = plan.submission
    experiment = submission.experiment
    queue = plan.fleet.queues[submission.queue_name]
    market = "spot" if queue.spot else "on demand"
    name = f" ({experiment.name})" if experiment.name else ""
    _line("experiment", f"{submission.experiment_id}{name}")
    _line("runs", _runs_text(experiment))
    where = f"{queue.instance_type}, {market}"
    if submission.account == LOCAL:
        where = f"this machine, {plural(queue.vcpus, 'core')}"
    _line("queue", f"{submission.queue_name} of {submission.stack}: {where}")
    retries = plan.fallback.after - 1 if plan.fallback else retries_of(experiment)
    _line("each run", _resources_text(submission.resources, retries))
    if plan.fallback:
        _line("fallback", f"{plan.fallback.queue}, for runs that lose their machine then")
    if experiment.image:
        _line("image", experiment.image)
    else:
        _line("folder", experiment.folder)


def print_dry_run(plan: Plan) -> None:
    """What would be sent, and what the first runs would execute."""
    submission = plan.submission
    print_summary(plan)
    for secret in submission.experiment.secrets:
        _line("secret", f"{secret}, {_secret_text(submission)}")
    for name, value in submission.experiment.environment:
        _line("environment", f"{name}={shlex.quote(value)}")
    _line("definition", f"{submission.definition.name}, registered unless it stands already")
    for job in submission.jobs[:SHOWN_JOBS]:
        _line("job", f"{job.name}: {_job_text(job)}")
    if len(submission.jobs) > SHOWN_JOBS:
        _line("", f"… {len(submission.jobs) - SHOWN_JOBS:,} more")
    _print_runs(submission)
    click.echo(
        "nothing was sent; the requests to the letter: --dry-run --json or --aws-cli", err=True
    )


def print_aws_cli(plan: Plan) -> None:
    """The AWS CLI's lines for the same requests."""
    for line in iter_aws_cli(plan.submission):
        click.echo(line)


def requests(plan: Plan) -> dict[str, Any]:
    """The requests to AWS Batch, exactly; but for the definition's revision, which is not known
    before.
    """
    submission = plan.submission
    return {
        "experiment": submission.experiment_id,
        "stack": submission.stack,
        "account": submission.account,
        "region": submission.region,
        "queue": submission.queue_name,
        "runs": run_count(submission.experiment),
        "requests": [
            {
                "operation": "RegisterJobDefinition",
                "unless": "an active one of that name stands: the name says the content",
                "parameters": submission.definition.request,
            },
            *(
                {
                    "operation": "SubmitJob",
                    "parameters": {"jobDefinition": submission.definition.name, **job.request},
                }
                for job in submission.jobs
            ),
        ],
    }


def _secret_text(submission: Submission) -> str:
    if submission.account == LOCAL:
        return "from this shell, by way of the memory alone"
    return "which AWS reads when a run starts"


def _line(label: str, text: str) -> None:
    click.echo(f"{label:<{LABEL}}{text}")


def _runs_text(experiment: Experiment) -> str:
    factors = [f"{len(axis.rows):,} {'+'.join(axis.names)}" for axis in experiment.axes]
    if experiment.seeds:
        factors.append(plural(len(experiment.seeds), "seed"))
    product = f" = {' × '.join(factors)}" if factors else ""
    count, seeds = run_count(experiment), max(1, len(experiment.seeds))
    included = len(experiment.include) * seeds
    if excluded := grid_size(experiment) * seeds + included - count:
        product += f" - {excluded:,} excluded"
    if included:
        product += f" + {included:,} included" if experiment.axes else ""
    return f"{count:,}{product}"


def _resources_text(has: JobResources, retries: int) -> str:
    parts = [f"{has.nodes:,} nodes, each with"] if has.nodes > 1 else []
    parts += [plural(has.vcpus, "vCPU"), f"{has.memory_mib:,} MiB of memory"]
    if has.gpus:
        parts.append(plural(has.gpus, "GPU"))
    if has.timeout_s:
        parts.append(f"at most {seconds(has.timeout_s)}")
    if retries:
        parts.append(f"up to {plural(retries, 'more try', 'more tries')} if its machine is lost")
    return ", ".join(parts).replace("each with,", "each with")


def _job_text(job: Job) -> str:
    if job.size == 1:
        return f"run {job.runs}"
    runs = plain_ranges(job.runs)
    if len(runs) > SHOWN_RANGES:
        runs = runs[:SHOWN_RANGES].rpartition(",")[0] + ",…"
    return f"an array of {job.size:,}, runs {runs}"


def _print_runs(submission: Submission) -> None:
    experiment = submission.experiment
    count = run_count(experiment)
    shown = count if count <= SHOWN_RUNS + 1 else SHOWN_RUNS
    for run in itertools.islice(iter_runs(experiment, submission.experiment_id), shown):
        _line(f"run {run.index}", shlex.join(run_arguments(experiment, run)))
    if shown < count:
        _line("", f"… {count - shown:,} more")
