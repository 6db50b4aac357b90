"""Asks the Pulumi command line for the fleet document. Starts a process."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from submit.errors import ServiceFailed, SubmitError, WrongUse


def fleet_output(project: Path, stack: str, environ: Mapping[str, str]) -> bytes:
    """The output `fleet` of the stack, or of the selected one when `stack` is empty.

    Raises WrongUse and ServiceFailed with what to type.
    """
    command = ["pulumi", "stack", "output", "fleet", "--json", "--non-interactive"]
    command += [f"--stack={stack}"] if stack else []
    try:
        done = subprocess.run(
            command,
            cwd=project,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as err:
        raise ServiceFailed(
            "no-pulumi",
            "the fleet is read from the Pulumi stack, and there is no pulumi on PATH",
            f". {project}/.venv/bin/activate, or give --fleet fleet.json",
        ) from err
    if done.returncode:
        raise _in_words(done.stderr.decode(errors="replace").strip(), stack)
    return done.stdout


def _in_words(said: str, stack: str) -> SubmitError:
    lower = said.lower()
    named = f"the stack {stack}" if stack else "the selected stack"
    if "no stack named" in lower:
        return WrongUse("no-such-stack", f"there is no stack {stack!r}", "pulumi stack ls")
    if "no stack selected" in lower:
        return WrongUse(
            "no-stack",
            "no stack is selected here",
            "pulumi stack select TEAM (or: pulumi stack init TEAM && pulumi up), or --stack TEAM",
        )
    if "does not have output property" in lower:
        return ServiceFailed(
            "stack-down",
            f"{named} has no fleet: it was never brought up, or it was destroyed",
            f"pulumi up --stack {stack}" if stack else "pulumi up",
        )
    if "unable to open state directory" in lower:
        return ServiceFailed(
            "state-gone",
            "the folder with Pulumi's stacks (PULUMI_BACKEND_URL) is not there; if it was a "
            "sandbox's, that sandbox is down",
            'python -m sandbox up && eval "$(python -m sandbox env)", then '
            "pulumi stack init TEAM && pulumi up",
        )
    if "passphrase" in lower:
        return ServiceFailed(
            "passphrase",
            f"Pulumi can't open {named}: its passphrase is missing or wrong",
            "export PULUMI_CONFIG_PASSPHRASE=…",
        )
    if "must be set for login" in lower or "pulumi login" in lower:
        return ServiceFailed(
            "logged-out",
            "Pulumi is not logged in",
            'pulumi login, or for a sandbox: eval "$(python -m sandbox env)"',
        )
    last = said.splitlines()[-1] if said else "it said nothing"
    return ServiceFailed("pulumi", f"Pulumi could not be asked: {last}", "pulumi stack ls")
