"""submit completion."""

from __future__ import annotations

import os
from pathlib import Path

import click

from submit.errors import WrongUse

WHERE = {
    "bash": '~/.bashrc:  eval "$(submit completion bash)"',
    "zsh": '~/.zshrc:  eval "$(submit completion zsh)"',
    "fish": "~/.config/fish/config.fish:  submit completion fish | source",
}


@click.command("completion", epilog="\b\n" + "\n".join(WHERE.values()))
@click.argument("shell", metavar="[bash|zsh|fish]", required=False)
def command(shell: str | None) -> int:
    """Print what makes the shell complete verbs, options, queues and experiments.

    Without an argument: for the shell in SHELL. To have it always, put the line below into the
    shell's own file.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 # here alone

    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in WHERE else None
    if kind is None:
        raise WrongUse(
            "shell", f"there is no completion for the shell {name!r}", "submit completion bash"
        )
    from submit.commands import cli  # noqa: PLC0415 # it loads this module

    click.echo(kind(cli, {}, "submit", "_SUBMIT_COMPLETE").source())
    return 0
