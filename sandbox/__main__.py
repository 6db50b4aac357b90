"""`python -m sandbox`."""

from __future__ import annotations

import sys

import click

from sandbox.cli import main
from sandbox.errors import SandboxError

if __name__ == "__main__":
    try:
        main(prog_name="python -m sandbox")
    except SandboxError as err:
        click.echo(f"sandbox: {err}", err=True)
        sys.exit(1)
