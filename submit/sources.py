"""Where a stack's fleet document is to be found: which stack, and by which way. Pure.

Said on the line or in the environment, remembered by `submit use`, or told by the folder.
"""

from __future__ import annotations

import msgspec

from submit.errors import WrongUse

PROJECT = "runfleet"
"""The name in a Pulumi.yaml of this kind."""


class Output(msgspec.Struct, frozen=True, tag="pulumi"):
    """The output of a Pulumi stack; of the one that is selected when `stack` is empty."""

    project: str
    """The folder of the Pulumi project."""
    stack: str = ""


class Parameters(msgspec.Struct, frozen=True, tag="ssm"):
    """The SSM parameters that a stack with the setting `publish` leaves.

    Without a region they are in that of the AWS configuration.
    """

    stack: str
    region: str = ""


Source = Output | Parameters


def choose_source(stack: str, project: str, used: Source | None, cwd: str) -> Source:
    """The source of a stack that was named on the line or in the environment (`stack`), with the
    Pulumi project at hand (`project`) and what `submit use` has remembered. Each may be empty.

    Raises WrongUse when nothing of it tells.
    """
    if used and stack in {"", used.stack}:
        return used
    if project:
        return Output(project=project, stack=stack)
    if stack and used:
        return msgspec.structs.replace(used, stack=stack)
    if stack:
        return Parameters(stack=stack)
    raise WrongUse(
        "no-project",
        f"no fleet is known here: neither {cwd} nor a folder above it is a runfleet "
        f"project (Pulumi.yaml with name: {PROJECT}), and no stack is named or in use",
        "submit use TEAM; or cd to the project, export RUNFLEET_PROJECT=FOLDER, or give "
        "--fleet fleet.json",
    )
