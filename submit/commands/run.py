"""submit run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from submit import api
from submit.asked import Asked, make_experiment
from submit.commands import cleanrl
from submit.commands.asking import CLEANRL_IMAGE, RunCommand, ask, is_cleanrl
from submit.commands.options import (
    Count,
    Named,
    Parsed,
    complete_queue,
    fallback_of,
    fallback_options,
    fleet_option,
    json_option,
    stack_option,
)
from submit.commands.planned import print_aws_cli, print_dry_run, print_summary, requests
from submit.commands.text import INTERRUPTED, plural, progress_text, say, show_json
from submit.errors import WrongUse
from submit.experiment import run_count
from submit.fleet import LOCAL
from submit.grid import env_ids, parse_axis, parse_cell, parse_names, parse_values
from submit.sending_line import sending_line
from submit.units import parse_duration, parse_memory, parse_seeds, parse_variable

if TYPE_CHECKING:
    from submit.sending import Delivery

TOGGLE: dict[str, Any] = {
    "type": click.BOOL,
    "is_flag": False,
    "flag_value": "true",
    "metavar": "[true|false]",
}
"""A flag that may be followed by true or false, as CleanRL has them."""


@click.command(
    "run",
    cls=RunCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="--queue QUEUE [OPTIONS] --",
    epilog="COMMAND gets `--name value` for each parameter of the grid and `--seed N` appended; "
    "where it says {name} or {seed} it gets them there instead. A comma within a value is "
    r"written \, and a backslash \\. The options of CleanRL's submit_exp work too, by their names.",
)
@click.option(
    "--queue",
    metavar="QUEUE",
    shell_complete=complete_queue,
    help="Where to run: one of `submit queues`.",
)
@click.option(
    "-f",
    "--file",
    metavar="FILE",
    help="A description in YAML, with the options' names (- for standard input); options win.",
)
@click.option(
    "--seeds",
    "--num-seed",
    "--num-seeds",
    cls=Named,
    type=Parsed("seeds", parse_seeds),
    help="3 (the seeds 1, 2, 3), 1,5,7 or 1..10.",
)
@click.option(
    "--env-ids",
    "--env-id",
    cls=Named,
    multiple=True,
    type=Parsed("id,…", env_ids),
    help="Environments: the parameter env-id of the grid.",
)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    type=Parsed("name=value,…", parse_axis),
    help="A parameter and its values: --grid lr=3e-4,1e-3.  [repeatable]",
)
@click.option(
    "--zip",
    "zips",
    multiple=True,
    type=Parsed("name,name,…", parse_names),
    help="Parameters of --grid that go together, first with first.  [repeatable]",
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    type=Parsed("name=value,…", parse_cell),
    help="Leave out all runs with these values, seed=3 among them.  [repeatable]",
)
@click.option(
    "--include",
    "included",
    multiple=True,
    type=Parsed("name=value,…", parse_cell),
    help="One more combination, with each seed: a value for every parameter.  [repeatable]",
)
@click.option(
    "--image",
    "--docker-tag",
    cls=Named,
    metavar="IMAGE",
    help="What the command runs in.  [default: the stack's]",
)
@click.option("--no-image-check", is_flag=True, help="Send without a look at the image's registry.")
@click.option(
    "--vcpus",
    "--num-vcpu",
    cls=Named,
    type=Count(1),
    help="[default: 1, or a GPU's share]",
)
@click.option(
    "--memory",
    "--num-memory",
    cls=Named,
    type=Parsed("amount", parse_memory),
    help="3000 (MiB) or 3GiB.  [default: the share of the vCPUs or GPUs]",
)
@click.option(
    "--gpus",
    "--num-gpu",
    cls=Named,
    type=Count(0),
    help="[default: 1 on a queue that has GPUs]",
)
@click.option(
    "--shm",
    type=Parsed("amount", parse_memory),
    help="Shared memory, a part of the memory.  [default: half of it]",
)
@click.option(
    "--hours",
    "--num-hours",
    cls=Named,
    type=Parsed("duration", parse_duration),
    help="The longest that a try may take: 12, 1.5 or 90m.  [default: no limit]",
)
@click.option(
    "--nodes",
    "--num-nodes",
    cls=Named,
    type=Count(1),
    help="Machines that one run takes together, each with all of this.  [default: 1]",
)
@click.option(
    "--env",
    "environment",
    multiple=True,
    type=Parsed("name=value", parse_variable),
    help="An environment variable; not for secrets.  [repeatable]",
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME",
    help="A secret of the stack's, as an environment variable.  [repeatable]",
)
@click.option(
    "--retries",
    "--spot-retries",
    type=Count(0, 9),
    help="Further tries when the machine is taken away; a command that fails gets none.  "
    "[default: 3]",
)
@fallback_options
@click.option(
    "--workers",
    type=Count(1),
    help="Runs at once.  [default: as many as there is room for]",
)
@click.option(
    "--cores-per-run",
    "vcpus",
    type=Count(1),
    help="The same as --vcpus.",
)
@click.option(
    "--foreground",
    is_flag=True,
    help="Stay to the end, and end its runs with this command.",
)
@click.option("--name", metavar="TEXT", help="For people.  [default: the script's]")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    type=Parsed("tag,…", parse_values),
    help="A tag of the jobs, and at W&B.  [repeatable]",
)
@click.option("--share", metavar="NAME", help="Whose share of a fair-share queue.  [default: you]")
@click.option("--group", metavar="TEXT", help="W&B group.  [default: the experiment]")
@click.option("--wandb-project", metavar="NAME", help="W&B project; the stack's key is used.")
@click.option("--wandb-entity", metavar="NAME", help="W&B team or user.")
@click.option("--again", is_flag=True, help="Once more what was sent before, as a new experiment.")
@click.option("--watch", is_flag=True, help="Then follow it to its end.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, exactly; send nothing.")
@click.option("--aws-cli", is_flag=True, help="With --dry-run: as lines for the AWS CLI.")
@click.option("-q", "--quiet", is_flag=True, help="Print the experiment's id alone.")
@click.option("-b", "--build", **TOGGLE, help="Build the image from the Dockerfile here first.")
@click.option("-p", "--push", **TOGGLE, help="With --build: push it to its registry.")
@click.option("--archs", metavar="OS/ARCH,…", help="With --build: for these platforms.")
@click.option("--command", "command_text", metavar="TEXT", hidden=True)
@click.option("--job-queue", metavar="QUEUE", hidden=True)
@click.option("--provider", type=click.Choice(["aws"]), hidden=True)
@click.option("--aws-num-retries", type=Count(1, 10), hidden=True)
@click.option("--wandb-key", metavar="KEY", hidden=True)
@click.option("--exp-script", metavar="PATH", hidden=True)
@click.option("--instance-type", metavar="TYPE", hidden=True)
@stack_option
@fleet_option
@json_option
@click.argument("command", metavar="COMMAND…", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Submit COMMAND over a grid of parameters and seeds, in as few jobs as possible.

    The same line again sends only what is not there yet.
    """
    asked = ask(ctx, given)
    _refuse_together(given, asked.queue)
    environ = cleanrl.environment(asked, given)
    with api.Session(fleet=given["fleet"], stack=given["stack"], environ=environ) as session:
        queue = cleanrl.find_queue(session, asked, given)
        if given["build"]:
            asked = cleanrl.build(session, asked, given)
            if not asked.command:
                return 0
        if queue is None:
            return _without_queue(ctx, asked, given)
        experiment = cleanrl.with_key(session, make_experiment(asked), queue, given)
        fallback = fallback_of(asked.fallback, asked.after)
        plan = api.plan(session, experiment, queue, fallback)
        if given["again"]:
            again = api.next_generation(session, plan)
            plan = api.plan(session, again, queue, fallback)
        if given["dry_run"]:
            return _show_dry_run(plan, given)
        return _send(session, plan, given)


def _refuse_together(given: dict[str, Any], queue: str | None) -> None:
    for option in ("workers", "foreground"):
        if given[option] and queue not in {LOCAL, None}:
            raise WrongUse(
                "only-local", f"--{option} is for the own machine: --queue local", "submit queues"
            )
    if given["aws_cli"] and not given["dry_run"]:
        raise WrongUse("aws-cli", "--aws-cli says how a dry run is shown", "--dry-run --aws-cli")
    if given["aws_cli"] and given["as_json"]:
        raise WrongUse(
            "aws-cli",
            "--aws-cli and --json are two ways to show it; choose one",
            "--dry-run --aws-cli",
        )
    for option in ("push", "archs"):
        if given[option] and not given["build"]:
            raise WrongUse("no-build", f"--{option} says how to build", f"--build --{option} …")


def _without_queue(ctx: click.Context, asked: Asked, given: dict[str, Any]) -> int:
    """As CleanRL does without a provider, for whoever names an image."""
    image = asked.image or (CLEANRL_IMAGE if is_cleanrl(ctx) else "")
    several = (asked.nodes or 1) > 1
    if given["provider"] or not image or several:
        raise WrongUse(
            "no-queue",
            "no queue was named",
            "submit queues, then submit run --queue QUEUE …"
            + ("" if several else "; or --image IMAGE alone, for lines that run it here in Docker"),
        )
    return cleanrl.show_docker(asked, given, image)


def _show_dry_run(plan: api.Plan, given: dict[str, Any]) -> int:
    if given["as_json"]:
        show_json(requests(plan))
    elif given["aws_cli"]:
        print_aws_cli(plan)
    elif given["quiet"]:
        click.echo(plan.submission.experiment_id)
    else:
        print_dry_run(plan)
    return 0


def _send(session: api.Session, plan: api.Plan, given: dict[str, Any]) -> int:
    quiet = given["quiet"]
    line = SendingLine(session.clock.time, quiet=quiet)
    try:
        if not given["no_image_check"]:
            plan = api.check_image(session, plan, note=line.note)
        delivery = api.send(session, plan, tell=line.tell, note=line.note)
    except KeyboardInterrupt:
        line.clear()
        say(f"interrupted; {_sent_so_far(session, plan)}\n  next: the same line goes on")
        return INTERRUPTED
    finally:
        line.clear()
    if given["as_json"]:
        show_json(_delivered(plan, delivery))
    elif quiet:
        click.echo(delivery.kept.id)
    else:
        print_summary(plan)
        _print_delivery(session, delivery, again=not (given["watch"] or given["foreground"]))
    if given["foreground"]:
        from submit.commands.foreground import attend  # noqa: PLC0415 # likewise

        return attend(session, delivery.kept, quiet=quiet or given["as_json"])
    if not given["watch"]:
        return 0
    from submit.commands.watch import watch  # noqa: PLC0415 # a dry run does without

    return watch(session, delivery.kept, quiet=quiet or given["as_json"])


class SendingLine:
    """A line that is written over while jobs are sent, where a terminal shows it."""

    def __init__(self, now: Callable[[], float], *, quiet: bool = False) -> None:
        self._now = now
        self._begun = now()
        self._quiet = quiet
        self._shown = False

    def tell(self, done: int, of: int) -> None:
        """`done` of so many jobs are sent."""
        if of > 1 and not self._quiet and sys.stderr.isatty():
            import shutil  # noqa: PLC0415 # a dry run does without

            columns = shutil.get_terminal_size().columns
            text = sending_line(done, of, self._now() - self._begun, columns)
            click.echo(f"\r\033[K{text}", nl=False, err=True)
            self._shown = True

    def note(self, text: str) -> None:
        """Why it takes its time, on a line of its own."""
        self.clear()
        say(text)

    def clear(self) -> None:
        """The line is gone."""
        if self._shown:
            click.echo("\r\033[K", nl=False, err=True)
            self._shown = False


def _sent_so_far(session: api.Session, plan: api.Plan) -> str:
    identity = plan.submission.experiment_id
    for kept in api.experiments(session):
        if kept.id == identity:
            return progress_text(api.known(session, [kept])[0])
    return "nothing was sent"


def _delivered(plan: api.Plan, delivery: Delivery) -> dict[str, Any]:
    submission = plan.submission
    return {
        "experiment": submission.experiment_id,
        "name": submission.experiment.name,
        "stack": submission.stack,
        "queue": submission.queue_name,
        "runs": run_count(submission.experiment),
        "jobs": {"sent": delivery.sent, "adopted": delivery.adopted, "known": delivery.known},
    }


def _print_delivery(session: api.Session, delivery: Delivery, *, again: bool) -> None:
    for jobs, how in (
        (delivery.sent, "sent"),
        (
            delivery.adopted,
            "found in the queue, sent before, from elsewhere or by a line that was cut off",
        ),
    ):
        if jobs:
            click.echo(f"{plural(jobs, 'job')} {how}")
    if not delivery.sent:
        click.echo(f"{progress_text(api.poll(session, [delivery.kept])[0])}; nothing to send")
        click.echo("  to run it once more: the same line with --again", err=True)
    if again:
        click.echo(f"  next: submit status {delivery.kept.id} --watch", err=True)
