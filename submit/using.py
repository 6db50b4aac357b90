"""What `submit use` remembers: one file in runfleet's home. Speaks to the file system."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from submit.errors import ServiceFailed
from submit.session import Session
from submit.sources import Source


def used(session: Session) -> Source | None:
    """The source in use, None when there is none. Raises ServiceFailed for a file that is broken."""
    path = _path(session)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Source)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as err:
        raise ServiceFailed(
            "use-file", f"{path} can't be read: {err}", "submit use TEAM (or: submit use --none)"
        ) from err


def use(session: Session, source: Source | None) -> None:
    """Remembers the source, or nothing. Raises ServiceFailed when it can't be written."""
    path = _path(session)
    part = path.with_suffix(f".{os.getpid()}")
    try:
        if source is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.write_bytes(msgspec.json.encode(source))
        part.replace(path)
    except OSError as err:
        raise ServiceFailed(
            "use-file",
            f"{path} can't be written: {err.strerror}",
            f"ls -ld {path.parent}; then the same line again",
        ) from err


def _path(session: Session) -> Path:
    return session.home / "use.json"
