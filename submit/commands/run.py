"""submit run."""

from __future__ import annotations

import os
import shlex
from typing import Any

import click

from submit import api
from submit.commands.options import Parsed, fleet_option, json_option, session, stack_option
from submit.commands.output import plural, say, show_json
from submit.errors import WrongUse
from submit.experiment import (
    Experiment,
    Resources,
    check_experiment,
    iter_runs,
    run_arguments,
    run_count,
)
from submit.fleet import Fleet
from submit.grid import axis, parse_axis, parse_values
from submit.plan import Submission
from submit.units import parse_duration, parse_memory, parse_seeds

SHOWN_RUNS = 6
"""Runs that a dry run spells out."""


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise WrongUse("env", f"{text!r} is no NAME=VALUE", "--env OMP_NUM_THREADS=1")
    return name, value


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    epilog="COMMAND gets `--name value` for each parameter and `--seed N` appended, or where it "
    "says {name} and {seed} it gets them there. Values with commas: `\\,`.",
)
@click.option("--queue", metavar="QUEUE", help="Where to run (submit queues).")
@click.option("--seeds", type=Parsed("seeds", parse_seeds), help="3 (is 1,2,3), 1,5,7 or 1..10.")
@click.option(
    "--env-ids",
    type=Parsed("ids", lambda text: axis("env-id", parse_values(text))),
    help="Environments: the grid's parameter env-id.",
)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    type=Parsed("name=values", parse_axis),
    help="Another parameter: --grid lr=3e-4,1e-3.  [repeatable]",
)
@click.option("--image", metavar="IMAGE", help="[default: the stack's]")
@click.option("--vcpus", type=click.IntRange(1), help="[default: one, or a GPU's share]")
@click.option("--memory", type=Parsed("memory", parse_memory), help="MiB, or 3GiB.")
@click.option("--gpus", type=click.IntRange(0), help="[default: one on a queue that has some]")
@click.option(
    "--shm", type=Parsed("memory", parse_memory), help="Shared memory (/dev/shm): MiB, or 3GiB."
)
@click.option(
    "--hours", type=Parsed("duration", parse_duration), help="The most a run may take: 12, or 90m."
)
@click.option(
    "--env",
    "environment",
    multiple=True,
    type=Parsed("name=value", _variable),
    help="An environment variable; secrets are not for it.  [repeatable]",
)
@click.option("--secret", "secrets", multiple=True, metavar="NAME", help="A secret of the stack.")
@click.option(
    "--retries",
    "--spot-retries",
    type=click.IntRange(0, 9),
    default=3,
    show_default=True,
    help="Further tries after a lost machine.",
)
@click.option("--name", metavar="TEXT", help="For people.  [default: after the command]")
@click.option("--group", metavar="TEXT", help="Weights & Biases group.  [default: the id]")
@click.option("--again", is_flag=True, help="Run the same once more, as another experiment.")
@click.option("--watch", is_flag=True, help="Follow it to its end.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, exactly, and send nothing.")
@stack_option
@fleet_option
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(**given: Any) -> int:
    """Submit COMMAND over a grid of parameters and seeds, as few jobs as possible.

    The same line again sends only what is not there yet.
    """
    if not given["command"]:
        raise WrongUse(
            "no-command",
            "no command to run was given: it follows --",
            "submit run --queue QUEUE --seeds 3 -- python train.py",
        )
    if not given["queue"]:
        raise WrongUse("no-queue", "no queue was given", "submit queues, then submit run --queue …")
    ours = session(given["stack"], given["fleet"])

    def describe(fleet: Fleet) -> Experiment:
        experiment = _experiment(given, fleet)
        check_experiment(experiment)
        return api.next_generation(ours, experiment, fleet) if given["again"] else experiment

    submission, fleet = api.plan(ours, describe, given["queue"])
    if given["dry_run"]:
        _show_dry_run(submission, as_json=given["as_json"])
        return 0
    delivery = api.send(ours, submission, fleet, progress=_progress)
    _tell(submission, fleet, delivery.sent, delivery.adopted, delivery.known)
    if given["as_json"]:
        show_json(
            {
                "experiment": submission.experiment_id,
                "runs": run_count(submission.experiment),
                "jobs": {
                    "sent": delivery.sent,
                    "adopted": delivery.adopted,
                    "known": delivery.known,
                },
            }
        )
    if delivery.known and not (delivery.sent or delivery.adopted):
        from submit.commands.status import one_line  # noqa: PLC0415 # rarely

        (now,) = api.status(ours, [delivery.kept])
        say(f"nothing to send: {one_line(now)}\n  once more, as another experiment: --again")
    if given["watch"]:
        from submit.commands.status import watch  # noqa: PLC0415 # rarely

        return watch(ours, delivery.kept)
    say(f"  next: submit status {submission.experiment_id} --watch")
    return 0


def _experiment(given: dict[str, Any], fleet: Fleet) -> Experiment:
    image = given["image"] or fleet.image
    if not image:
        raise WrongUse(
            "no-image",
            f"no image was given, and the stack {fleet.stack} has none of its own",
            "--image REPOSITORY:TAG, or: pulumi config set image REPOSITORY:TAG && pulumi up",
        )
    axes = ([given["env_ids"]] if given["env_ids"] else []) + list(given["grids"])
    return Experiment(
        command=tuple(given["command"]),
        axes=tuple(axes),
        seeds=given["seeds"] or (),
        image=image,
        resources=Resources(
            vcpus=given["vcpus"],
            memory_mib=given["memory"],
            gpus=given["gpus"],
            shm_mib=given["shm"],
            timeout_s=given["hours"],
        ),
        environment=tuple(given["environment"]),
        secrets=tuple(given["secrets"]),
        retries=given["retries"],
        name=given["name"] or _name(given["command"]),
        group=given["group"] or "",
    )


def _name(command: tuple[str, ...]) -> str:
    """After the script that is run: `python -u ppo.py` → ppo."""
    scripts = [argument for argument in command if argument.endswith((".py", ".sh"))]
    return os.path.basename((scripts or command)[0]).rpartition(".")[0] or os.path.basename(  # noqa: PTH119 # no Path needed
        command[0]
    )


def _tell(submission: Submission, fleet: Fleet, sent: int, adopted: int, known: int) -> None:
    experiment, has = submission.experiment, submission.resources
    factors = [
        plural(len(axis.rows), " and ".join(axis.names)).replace("s", "s")
        if len(axis.names) > 1
        else f"{len(axis.rows)} {axis.names[0]}"
        for axis in experiment.axes
    ]
    if experiment.seeds:
        factors.append(plural(len(experiment.seeds), "seed"))
    spelled = f" = {' × '.join(factors)}" if len(factors) > 1 else ""
    queue = fleet.queues[submission.queue_name]
    gpus = f", {plural(has.gpus, 'GPU')}" if has.gpus else ""
    say(f"experiment {submission.experiment_id} ({experiment.name})")
    say(f"  {plural(run_count(experiment), 'run')}{spelled}")
    say(
        f"  queue {submission.queue_name} ({queue.instance_type}): "
        f"{plural(has.vcpus, 'vCPU')}, {has.memory_mib:,} MiB{gpus} a run"
    )
    say(f"  image {experiment.image}")
    parts = [
        f"{plural(count, 'job')} {what}"
        for count, what in ((sent, "sent"), (adopted, "found in the queue"), (known, "known"))
        if count
    ]
    say(f"  {', '.join(parts) or 'no jobs'}")


def _progress(done: int, total: int) -> None:
    """A line that is written over, for submissions of many jobs on a terminal."""
    import sys  # noqa: PLC0415 # rarely

    if total > 1 and sys.stderr.isatty():
        click.echo(f"\rsending job {done} of {total}", nl=done == total, err=True)


def _show_dry_run(submission: Submission, *, as_json: bool) -> None:
    requests = [
        {
            "operation": "SubmitJob",
            "request": {"jobDefinition": f"{submission.definition.name}:…", **job.request},
        }
        for job in submission.jobs
    ]
    define = {
        "operation": "RegisterJobDefinition",
        "unless": "an active definition of this name stands: its content is its name",
        "request": submission.definition.request,
    }
    if as_json:
        show_json(
            {
                "experiment": submission.experiment_id,
                "runs": run_count(submission.experiment),
                "queue": submission.queue_name,
                "requests": [define, *requests],
            }
        )
        return
    experiment, has = submission.experiment, submission.resources
    total = run_count(experiment)
    click.echo(f"experiment {submission.experiment_id} ({experiment.name}), {plural(total, 'run')}")
    click.echo(f"queue      {submission.queue_name} ({submission.queue_arn})")
    click.echo(f"image      {experiment.image}")
    click.echo(
        f"a run has  {plural(has.vcpus, 'vCPU')}, {has.memory_mib:,} MiB, "
        f"{plural(has.gpus, 'GPU')}, {experiment.retries} retries after a lost machine"
    )
    for secret in experiment.secrets:
        click.echo(f"secret     {secret} (read by AWS when the run starts)")
    click.echo(f"definition {submission.definition.name}, registered unless it stands")
    for job in submission.jobs:
        size = f"array of {job.size:,}" if job.size > 1 else "single"
        click.echo(f"job        {job.name} ({size}): runs {job.runs[:60]}")
    click.echo("runs")
    for run in iter_runs(experiment):
        if run.index == SHOWN_RUNS and total > SHOWN_RUNS + 1:
            click.echo(f"  … {total - SHOWN_RUNS:,} more")
            break
        click.echo(f"  {run.index:>3}  {shlex.join(run_arguments(experiment, run))}")
    click.echo("nothing was sent; the requests themselves: --dry-run --json")
