"""What the options of `submit run`, and the file it is given, ask for. Reads the file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from submit.asked import Asked, merge, parse_command
from submit.commands.headings import write_options
from submit.errors import WrongUse
from submit.experiment import Axis

EXAMPLE = "submit run --queue QUEUE --seeds 3 -- python train.py"
CLEANRL_COMMAND = ("uv", "run", "python", "cleanrl/ppo.py")
CLEANRL_IMAGE = "vwxyzjn/cleanrl:latest"
CLEANRL_NAMES = frozenset(
    {
        "--aws-num-retries",
        "--docker-tag",
        "--exp-script",
        "--job-queue",
        "--num-gpu",
        "--num-hours",
        "--num-memory",
        "--num-seed",
        "--num-vcpu",
        "--provider",
        "--wandb-key",
    }
)
"""Options that only CleanRL calls so: who uses one wants its defaults of command, seed and image."""


HEADINGS = {
    "What to run": "--file --seeds --env-ids --grid --zip --exclude --include",
    "Where": "--queue --fallback --after --retries --share --stack --fleet",
    "What each run gets": "--vcpus --memory --gpus --shm --hours --nodes --env --secret",
    "Image": "--image --no-image-check --build --push --archs",
    "Sending": "--dry-run --again --watch --name --tag",
    "Weights & Biases": "--wandb-project --wandb-entity --group",
    "On the own machine, --queue local": "--workers --cores-per-run --foreground",
    "What is printed": "--json --aws-cli --quiet --help",
}
"""Options under their headings, in the order in which they are asked for."""


class RunCommand(click.Command):
    """Keeps in which order --grid and --env-ids were given (the grid's order), and what stands
    before the command. Takes `--env-ids A B` as CleanRL writes it.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter, HEADINGS)

    def make_parser(self, ctx: click.Context) -> Any:
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            given = join_env_ids(args)
            opts, rest, order = parse(list(given))
            words = [arg for arg in (opts.get("command"),) if isinstance(arg, (list, tuple))]
            before = given[: len(given) - sum(map(len, words))]
            ctx.meta["before"] = before
            ctx.meta["order"] = [param.name for param in order]
            return opts, rest, order

        parser.parse_args = parse_args  # type: ignore[method-assign] # the parser is ours alone
        return parser


def join_env_ids(args: list[str]) -> list[str]:
    """With a --command, the words behind --env-ids are all environments: `A B` is `A,B`."""
    if not any(arg.partition("=")[0] == "--command" for arg in args):
        return list(args)
    joined: list[str] = []
    collecting = False
    for place, arg in enumerate(args):
        if arg == "--":
            return [*joined, *args[place:]]
        if collecting and not arg.startswith("-"):
            joined[-1] += f",{arg}" if joined[-1] != "--env-ids" else ""
            if joined[-1] == "--env-ids":
                joined.append(arg)
            continue
        collecting = arg == "--env-ids"
        joined.append(arg)
    return joined


def ask(ctx: click.Context, given: dict[str, Any]) -> Asked:
    """What the line asks for, on top of what the file does.

    A line that builds an image may do without a command. Raises WrongUse for a file that can't be
    read, and for a line that has no command or its command in the wrong place.
    """
    if given["wandb_key"]:
        from submit.tracking.hiding import hide_argument  # noqa: PLC0415 # rarely

        hide_argument(given["wandb_key"])
    line = _asked(ctx, given)
    if given["file"] is not None:
        line = merge(_read(given["file"], given["fleet"]), line)
    if is_cleanrl(ctx):
        line = merge(Asked(command=CLEANRL_COMMAND, seeds=(1,)), line)
    if line.command or given["build"]:
        return line
    raise WrongUse("no-command", "no command to run was given: it stands behind --", EXAMPLE)


def is_cleanrl(ctx: click.Context) -> bool:
    """Whether the line uses names that only CleanRL's submit_exp has."""
    before: list[str] = ctx.meta["before"]
    return any(word.partition("=")[0] in CLEANRL_NAMES for word in before)


def _asked(ctx: click.Context, given: dict[str, Any]) -> Asked:
    return Asked(
        queue=given["queue"],
        command=_command(ctx, given),
        seeds=given["seeds"],
        axes=_axes(ctx.meta["order"], given),
        zips=given["zips"],
        include=given["included"],
        exclude=given["excluded"],
        image=given["image"],
        nodes=given["nodes"],
        vcpus=given["vcpus"],
        memory_mib=given["memory"],
        gpus=given["gpus"],
        shm_mib=given["shm"],
        timeout_s=given["hours"],
        environment=given["environment"],
        secrets=given["secrets"],
        retries=_retries(given),
        fallback=given["fallback"],
        after=given["after"],
        name=given["name"],
        group=given["group"],
        project=given["wandb_project"],
        entity=given["wandb_entity"],
        tags=tuple(tag for tags in given["tags"] for tag in tags),
        share=given["share"],
        workers=given["workers"],
    )


def _command(ctx: click.Context, given: dict[str, Any]) -> tuple[str, ...]:
    words: tuple[str, ...] = given["command"]
    text = given["command_text"]
    if not words:
        return parse_command(text) if text is not None else ()
    before = masked(ctx.meta["before"])
    if before[-1:] != ["--"]:
        raise WrongUse(
            "no-dashes",
            f"the command to run, {shlex.join(words)}, must stand behind --",
            shlex.join(["submit", "run", *before, "--", *words]),
        )
    if text is not None:
        raise WrongUse(
            "two-commands",
            f"there are two commands: --command {shlex.quote(text)}, and behind -- "
            f"{shlex.join(words)}",
            "leave one of them out",
        )
    return words


def masked(words: list[str]) -> list[str]:
    """The words of the line without the key of W&B."""
    shown: list[str] = []
    for word in words:
        if shown[-1:] == ["--wandb-key"]:
            shown.append("KEY")
        else:
            shown.append("--wandb-key=KEY" if word.startswith("--wandb-key=") else word)
    return shown


def _retries(given: dict[str, Any]) -> int | None:
    """CleanRL counts tries, the first among them."""
    tries: int | None = given["aws_num_retries"]
    return given["retries"] if tries is None else tries - 1


def _axes(order: list[str], given: dict[str, Any]) -> tuple[Axis, ...]:
    left = {name: list(given[name]) for name in ("env_ids", "grids")}
    return tuple(left[name].pop(0) for name in order if name in left)


def _read(source: str, fleet: str | None) -> Asked:
    from submit.experiment_file import MAX_BYTES, parse_description  # noqa: PLC0415 # only with a file

    if source == "-":
        if fleet == "-":
            raise WrongUse("two-inputs", "standard input can't be both -f and --fleet", "-f FILE")
        return parse_description(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")
    try:
        with Path(source).open("rb") as file:
            text = file.read(MAX_BYTES + 1)  # it may be one without an end
    except OSError as err:
        raise WrongUse(
            "experiment-file", f"{source} can't be read: {err.strerror}", "submit run -f FILE"
        ) from err
    except ValueError as err:  # a NUL in the name
        raise WrongUse(
            "experiment-file", f"{source!r} is no file's name", "submit run -f FILE"
        ) from err
    return parse_description(text, source)
