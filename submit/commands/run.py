"""submit run."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from submit import api
from submit.commands.options import (
    Parsed,
    complete_queue,
    fallback_of,
    fallback_options,
    fleet_option,
    json_option,
    stack_option,
)
from submit.commands.planned import print_dry_run, print_summary, requests
from submit.commands.text import INTERRUPTED, plural, progress_text, say, show_json
from submit.errors import WrongUse
from submit.experiment import Axis, Experiment, Resources, run_count
from submit.fleet import LOCAL
from submit.grid import axis, parse_axis, parse_values
from submit.units import parse_duration, parse_memory, parse_seeds

if TYPE_CHECKING:
    from submit.sending import Delivery

EXAMPLE = "submit run --queue QUEUE --seeds 3 -- python train.py"


class _Run(click.Command):
    """Keeps in which order --grid and --env-ids were given (the grid's order), and what stands
    before the command.
    """

    def make_parser(self, ctx: click.Context) -> Any:
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            given = list(args)
            opts, rest, order = parse(args)
            words = [arg for arg in (opts.get("command"),) if isinstance(arg, (list, tuple))]
            before = given[: len(given) - sum(map(len, words))]
            ctx.meta["before"] = before
            ctx.meta["order"] = [param.name for param in order]
            return opts, rest, order

        parser.parse_args = parse_args  # type: ignore[method-assign] # the parser is ours alone
        return parser


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise WrongUse("env", f"{text!r} is no NAME=VALUE", "--env OMP_NUM_THREADS=1")
    return name, value


@click.command(
    "run",
    cls=_Run,
    context_settings={"allow_interspersed_args": False},
    options_metavar="--queue QUEUE [OPTIONS] --",
    epilog="COMMAND gets `--name value` for each parameter of the grid and `--seed N` appended; "
    "where it says {name} or {seed} it gets them there instead. A comma within a value is "
    r"written \, and a backslash \\.",
)
@click.option(
    "--queue",
    metavar="QUEUE",
    shell_complete=complete_queue,
    help="Where to run: one of `submit queues`.",
)
@click.option(
    "--seeds", type=Parsed("seeds", parse_seeds), help="3 (the seeds 1, 2, 3), 1,5,7 or 1..10."
)
@click.option(
    "--env-ids",
    multiple=True,
    type=Parsed("id,…", lambda text: axis("env-id", parse_values(text))),
    help="Environments: the parameter env-id of the grid.",
)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    type=Parsed("name=value,…", parse_axis),
    help="A parameter and its values: --grid lr=3e-4,1e-3.  [repeatable]",
)
@click.option("--image", metavar="IMAGE", default="", help="[default: the stack's]")
@click.option("--no-image-check", is_flag=True, help="Send without a look at the image's registry.")
@click.option("--vcpus", type=click.IntRange(1), help="[default: 1, or a GPU's share]")
@click.option(
    "--memory",
    type=Parsed("amount", parse_memory),
    help="3000 (MiB) or 3GiB.  [default: the share of the vCPUs or GPUs]",
)
@click.option("--gpus", type=click.IntRange(0), help="[default: 1 on a queue that has GPUs]")
@click.option(
    "--shm",
    type=Parsed("amount", parse_memory),
    help="Shared memory, a part of the memory.  [default: half of it]",
)
@click.option(
    "--hours",
    type=Parsed("duration", parse_duration),
    help="The longest that a try may take: 12, 1.5 or 90m.  [default: no limit]",
)
@click.option(
    "--env",
    "environment",
    multiple=True,
    type=Parsed("name=value", _variable),
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
    type=click.IntRange(0, 9),
    default=3,
    show_default=True,
    help="Further tries when the machine is taken away; a command that fails gets none.",
)
@fallback_options
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="On --queue local: runs at once.  [default: as many as there is room for]",
)
@click.option(
    "--cores-per-run",
    "vcpus",
    type=click.IntRange(1),
    help="On --queue local: the same as --vcpus.",
)
@click.option(
    "--foreground",
    is_flag=True,
    help="On --queue local: stay to the end, and end its runs with this command.",
)
@click.option("--name", metavar="TEXT", help="For people.  [default: the script's]")
@click.option("--group", metavar="TEXT", default="", help="W&B group.  [default: the experiment]")
@click.option(
    "--wandb-project", metavar="NAME", default="", help="W&B project; the stack's key is used."
)
@click.option("--wandb-entity", metavar="NAME", default="", help="W&B team or user.")
@click.option("--again", is_flag=True, help="Once more what was sent before, as a new experiment.")
@click.option("--watch", is_flag=True, help="Then follow it to its end.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, exactly; send nothing.")
@stack_option
@fleet_option
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Submit COMMAND over a grid of parameters and seeds, in as few jobs as possible.

    The same line again sends only what is not there yet.
    """
    _check_given(ctx, given)
    with api.Session(fleet=given["fleet"], stack=given["stack"]) as session:
        fallback = fallback_of(given["fallback"], given["after"])
        plan = api.plan(session, _experiment(ctx, given), given["queue"], fallback)
        if given["again"]:
            again = api.next_generation(session, plan)
            plan = api.plan(session, again, given["queue"], fallback)
        if given["dry_run"]:
            if given["as_json"]:
                show_json(requests(plan))
            else:
                print_dry_run(plan)
            return 0
        try:
            if not given["no_image_check"]:
                plan = api.check_image(session, plan, note=say)
            delivery = api.send(session, plan, tell=_show_sending, note=say)
        except KeyboardInterrupt:
            say(f"\ninterrupted; {_sent_so_far(session, plan)}\n  next: the same line goes on")
            return INTERRUPTED
        if given["as_json"]:
            show_json(_delivered(plan, delivery))
        else:
            print_summary(plan)
            _print_delivery(session, delivery, again=not (given["watch"] or given["foreground"]))
        if given["foreground"]:
            from submit.commands.foreground import attend  # noqa: PLC0415 # likewise

            return attend(session, delivery.kept)
        if not given["watch"]:
            return 0
        from submit.commands.watch import watch  # noqa: PLC0415 # a dry run does without

        return watch(session, delivery.kept)


def _check_given(ctx: click.Context, given: dict[str, Any]) -> None:
    for option in ("workers", "foreground"):
        if given[option] and given["queue"] not in {LOCAL, None}:
            raise WrongUse(
                "only-local", f"--{option} is for the own machine: --queue local", "submit queues"
            )
    words = given["command"]
    if not words:
        raise WrongUse("no-command", "no command to run was given: it stands behind --", EXAMPLE)
    before = ctx.meta["before"]
    if before[-1:] != ["--"]:
        raise WrongUse(
            "no-dashes",
            f"the command to run, {shlex.join(words)}, must stand behind --",
            shlex.join(["submit", "run", *before, "--", *words]),
        )
    if not given["queue"]:
        raise WrongUse(
            "no-queue",
            "no queue was named",
            f"submit queues, then submit run --queue QUEUE … -- {shlex.join(words)}",
        )


def _experiment(ctx: click.Context, given: dict[str, Any]) -> Experiment:
    return Experiment(
        command=given["command"],
        axes=_axes(ctx.meta["order"], given),
        seeds=given["seeds"] or (),
        image=given["image"],
        resources=Resources(
            vcpus=given["vcpus"],
            memory_mib=given["memory"],
            gpus=given["gpus"],
            shm_mib=given["shm"],
            timeout_s=given["hours"],
        ),
        environment=given["environment"],
        secrets=given["secrets"],
        retries=_retries(ctx, given),
        workers=given["workers"],
        name=_name(given["command"]) if given["name"] is None else given["name"],
        group=given["group"],
        project=given["wandb_project"],
        entity=given["wandb_entity"],
    )


def _retries(ctx: click.Context, given: dict[str, Any]) -> int:
    """On the own machine no machine is taken away: a lost run is not started again unasked."""
    unasked = ctx.get_parameter_source("retries") is click.core.ParameterSource.DEFAULT
    return 0 if given["queue"] == LOCAL and unasked else int(given["retries"])


def _axes(order: list[str], given: dict[str, Any]) -> tuple[Axis, ...]:
    left = {name: list(given[name]) for name in ("env_ids", "grids")}
    return tuple(left[name].pop(0) for name in order if name in left)


def _name(words: tuple[str, ...]) -> str:
    """After the script that is run: `python -u examples/ppo.py` → ppo."""
    scripts = [word for word in words if word.endswith((".py", ".sh"))]
    name = (scripts or words)[0].rpartition("/")[2]
    return name.removesuffix(".py").removesuffix(".sh")


def _show_sending(done: int, of: int) -> None:
    """A line that is written over, when there is time to read it."""
    if of > 1 and sys.stderr.isatty():
        click.echo(f"\r\033[Ksending job {done + 1} of {of}", nl=False, err=True)
        if done + 1 == of:
            click.echo("\r\033[K", nl=False, err=True)


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
        (delivery.adopted, "found in the queue, sent before from elsewhere"),
    ):
        if jobs:
            click.echo(f"{plural(jobs, 'job')} {how}")
    if not delivery.sent:
        click.echo(f"{progress_text(api.poll(session, [delivery.kept])[0])}; nothing to send")
        click.echo("  to run it once more: the same line with --again", err=True)
    if again:
        click.echo(f"  next: submit status {delivery.kept.id} --watch", err=True)
