"""Where the engine looks for its plugins, and what it finds there. Speaks to the file system."""

from __future__ import annotations

import contextlib
from pathlib import Path

VERSION = "7.51.1"
"""Of the provider whose place it takes: the one that requirements.lock names."""
LAUNCHER = Path(__file__).parent / "bin" / "pulumi-resource-aws"


def install(pulumi_home: Path) -> None:
    """Puts the plugin where the real one would be, in a PULUMI_HOME that is the sandbox's alone.

    On PATH it would do as well, and the engine would warn of it at every command.
    """
    folder = pulumi_home / "plugins" / f"resource-aws-v{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / LAUNCHER.name
    if not link.exists():
        with contextlib.suppress(FileNotFoundError):
            link.unlink()  # it led to a clone that is gone
        with contextlib.suppress(FileExistsError):  # another has just done it
            link.symlink_to(LAUNCHER)
