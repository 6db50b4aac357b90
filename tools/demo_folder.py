"""The folder of one demo, and those that killed ones have left. Speaks to the file system."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PREFIX = "runfleet-demo-"
LOCK = "lock"
"""Held for as long as the demo runs, whatever ends it."""


@contextlib.contextmanager
def demo_folder() -> Iterator[Path]:
    """A new folder, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        part = folder / "lock.part"
        with part.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            part.rename(folder / LOCK)  # whoever finds it finds it locked
            yield folder


@contextlib.contextmanager
def leftovers() -> Iterator[list[Path]]:
    """Folders of demos that were killed; no other demo takes them meanwhile."""
    found = []
    with contextlib.ExitStack() as locks:
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):  # another user's, or one that is being made
                if folder.stat().st_uid == os.getuid():
                    locks.enter_context(_locked(folder / LOCK))
                    found.append(folder)
        yield found


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Raises BlockingIOError while somebody else has it."""
    with path.open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock
