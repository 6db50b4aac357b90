"""The command line: `submit VERB …`. A file a verb, loaded when it is used."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from submit.errors import SubmitError

VERBS = {
    "run": "Submit an experiment: a command over a grid of parameters and seeds.",
    "status": "Show how experiments stand.",
    "logs": "Show what runs have printed.",
    "results": "Show the metrics that runs have printed, and their mean over the seeds.",
    "cancel": "Stop an experiment.",
    "queues": "Show the team's queues.",
}
INTERRUPTED = 130
"""As shells have it: 128 and the number of SIGINT."""


class _Verbs(click.Group):
    """Knows all verbs and loads the one that is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        _ = ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        _ = ctx
        if cmd_name not in VERBS:
            return None
        module = import_module(f"submit.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _ = ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            import difflib  # noqa: PLC0415 # only for a slip

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            guess = f" Did you mean {near[0]}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{guess}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 some runs failed; 2 wrong use; 3 refused by a check; "
    "4 the service failed.",
)
@click.version_option(package_name="runfleet", prog_name="submit")
def cli() -> None:
    """Run experiments on the team's AWS Batch queues."""


def main() -> None:
    """The console script: prints what went wrong, and exits with the code for it."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Runs one command line; its exit code. A user's mistake is never a traceback."""
    try:
        result = cli.main(arguments, prog_name="submit", standalone_mode=False)
    except click.ClickException as err:
        err.show()
        return err.exit_code
    except SubmitError as err:
        click.echo(f"submit: {err.message}", err=True)
        if err.hint:
            click.echo(f"  next: {err.hint}", err=True)
        return err.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("submit: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read has gone: no more to say, also not when Python closes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as err:
        if os.environ.get("RUNFLEET_DEBUG"):
            raise
        click.echo(f"submit: a mistake of runfleet's own: {type(err).__name__}: {err}", err=True)
        click.echo("  next: RUNFLEET_DEBUG=1 and the same line shows where", err=True)
        return SubmitError.exit_code
    return result if isinstance(result, int) else 0
