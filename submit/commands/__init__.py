"""The command line: `submit VERB …`. A file a verb, loaded when it is used."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

import click

from submit.commands.text import INTERRUPTED
from submit.errors import SubmitError
from submit.nearest import did_you_mean

VERBS = {
    "run": "Submit an experiment: a command over a grid of parameters and seeds.",
    "status": "Show how experiments stand.",
    "watch": "Follow an experiment to its end.",
    "logs": "Show what runs have printed.",
    "results": "Show the metrics that runs have printed, and their mean over the seeds.",
    "wait": "Wait until experiments are over.",
    "retry": "Send runs again that failed or were lost.",
    "cancel": "Stop experiments, or some of their runs.",
    "rm": "Forget old experiments.",
    "queues": "Show the team's queues.",
    "image": "Build images, push them, and list those of the team.",
    "resume": "Send runs again that Weights & Biases saw crash.",
    "wandb": "Track runs with Weights & Biases.",
    "use": "Choose the team's stack for all that follows.",
    "doctor": "Look at all that a submission rests on, and say what is wrong.",
    "completion": "Print what makes the shell complete verbs, queues and experiments.",
}


class _Verbs(click.Group):
    """Knows all verbs and loads the one that is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in VERBS:
            guess = did_you_mean(cmd_name, list(VERBS), most=2)
            ctx.fail(f"there is no verb {cmd_name!r}{guess}")
        command: click.Command = import_module(f"submit.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read has gone: no more to say, also not when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except click.UsageError as err:
            verb = ctx.invoked_subcommand
            if err.ctx is None and verb:  # click does not always say where a line was wrong
                err.ctx = click.Context(self.get_command(ctx, verb), ctx, verb)
            raise
        return result


@click.command(
    cls=_Verbs,
    subcommand_metavar="VERB …",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 some runs failed; 2 wrong use; 3 refused by a check; "
    "4 a service failed. RUNFLEET_DEBUG=1 shows where an error arose.",
)
@click.version_option(package_name="runfleet", prog_name="submit")
def cli() -> None:
    """Run experiments on the team's AWS Batch queues."""


def main() -> None:
    """The console script: prints what went wrong, and exits with the code for it."""
    _take_closed_streams()
    _take_any_letter()
    sys.exit(run_command([_utf8(word) for word in sys.argv[1:]]))


def run_command(arguments: list[str]) -> int:
    """Runs one command line; its exit code. A user's mistake is never a traceback."""
    try:
        result = cli.main(arguments, prog_name="submit", standalone_mode=False)
    except (SubmitError, click.ClickException, click.Abort, KeyboardInterrupt) as err:
        if os.environ.get("RUNFLEET_DEBUG"):
            raise
        return _complain(err)
    except Exception as err:
        if os.environ.get("RUNFLEET_DEBUG"):
            raise
        if isinstance(err, OSError) and err.errno == errno.ENOSPC and err.filename is None:
            _tell(f"not all could be printed: {err.strerror}")
            _tell_next("submit status; what was sent is known")
            return SubmitError.exit_code
        _tell(f"a mistake of runfleet's own: {type(err).__name__}: {err}")
        _tell_next("RUNFLEET_DEBUG=1 submit …   (the same line) shows where")
        return SubmitError.exit_code
    return result if isinstance(result, int) else 0


def _utf8(word: str) -> str:
    """The word of the command line as UTF-8, which a job gets it in, also where Python was told
    that there is nothing but ASCII; as it is when it is something else.
    """
    try:
        return os.fsencode(word).decode("utf-8")
    except UnicodeDecodeError:
        return word


def _take_closed_streams() -> None:
    """A stream that was closed before the program began (`>&-`) is one that nobody reads."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 # to the end


def _take_any_letter() -> None:
    """What the terminal's encoding does not have is shown as an escape, and ends nothing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(err: BaseException) -> int:
    if isinstance(err, SubmitError):
        _tell(err.message)
        if err.hint:
            _tell_next(err.hint)
        return err.exit_code
    if isinstance(err, click.exceptions.NoArgsIsHelpError):
        err.show()
        return err.exit_code
    if isinstance(err, click.ClickException):
        _tell(err.format_message())
        context = getattr(err, "ctx", None)
        _tell_next(f"{context.command_path if context else 'submit'} --help")
        return err.exit_code
    click.echo(err=True)  # after ^C
    _tell("interrupted")
    return INTERRUPTED


def _tell(message: str) -> None:
    click.echo(f"submit: {message}", err=True)


def _tell_next(hint: str) -> None:
    click.echo(f"  next: {hint}", err=True)
