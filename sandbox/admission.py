"""What a client needs before it can work with a sandbox. Speaks to the file system."""

from __future__ import annotations

from pathlib import Path

from sandbox.client import environment
from sandbox.provider import plugin
from sandbox.state import CLIENT_FOLDERS, State


def admit(folder: Path, state: State) -> dict[str, str]:
    """The variables that lead to the sandbox; the folders and the plugin that they name are there."""
    variables = environment(folder, port=state.port, region=state.region, key=state.key)
    for name in CLIENT_FOLDERS:
        (folder / name).mkdir(exist_ok=True)
    plugin.install(Path(variables["PULUMI_HOME"]))
    return variables
