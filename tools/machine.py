"""What the set-up asks of the machine and says to the user. The standard library only."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class Missing(Exception):
    """What the machine lacks; the last line is what to type."""


def say(text: str) -> None:
    """Tells the user, at once even into a pipe."""
    print(f"setup: {text}", flush=True)


def answer_of(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> str | None:
    """What the command prints, None when it can't be run or fails."""
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads its own group, and all that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
