"""The last fleet document, for as long as nothing tells that it has changed.

Speaks to the file system.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from submit.fleet import Fleet, FleetError, parse_fleet
from submit.session import Session

MAX_AGE_S = 300.0
"""How long a document counts whose stack lies where no file tells of changes."""


class _Cached(msgspec.Struct, frozen=True, kw_only=True):
    """`proof` has (file, mtime in ns, size) of what the answer rests on; with any other it is
    asked again. `lasting` when the stack's own state is among them.
    """

    fetched: float
    lasting: bool
    proof: list[tuple[str, int, int]]
    fleet: msgspec.Raw


class FleetCache:
    """The cache of one source, which `key` tells from all others."""

    def __init__(self, session: Session, key: Iterable[str]) -> None:
        self._clock = session.clock
        name = hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
        self._path = session.home / "fleets" / f"{name}.json"

    def read(self, *, stale: bool = False) -> Fleet | None:
        """The document, None when it may have changed; `stale` takes that for granted."""
        try:
            cached = msgspec.json.decode(self._path.read_bytes(), type=_Cached)
            if not (stale or self._holds(cached)):
                return None
            return parse_fleet(cached.fleet)
        except (OSError, msgspec.DecodeError, FleetError):
            return None  # it is only a cache: the source is asked

    def write(self, text: bytes, *, files: Iterable[Path] = (), lasting: bool = False) -> None:
        """Keeps the document, which counts while the files are what they are now; not for long
        unless it is `lasting`.
        """
        proof = [(str(file), _stat(str(file))) for file in files]
        cached = _Cached(
            fetched=self._clock.time(),
            lasting=lasting,
            proof=[(name, *stat) for name, stat in proof if stat],
            fleet=msgspec.Raw(text),
        )
        if len(cached.proof) < len(proof):
            return  # there is no telling when one that is not there yet comes
        part = self._path.with_suffix(f".{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_bytes(msgspec.json.encode(cached))
            part.replace(self._path)
        except OSError:
            return  # without a cache it takes a second longer

    def _holds(self, cached: _Cached) -> bool:
        if not all(_stat(name) == (mtime, size) for name, mtime, size in cached.proof):
            return False
        return cached.lasting or 0 <= self._clock.time() - cached.fetched < MAX_AGE_S


def _stat(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 # no Path for each of them
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
