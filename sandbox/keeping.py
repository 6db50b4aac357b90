"""What a sandbox remembers, in a folder of the user's, from one life to the next. Speaks files.

Written whole beside the old, then moved over it: a crash leaves the last that was complete. It is
pickled, so a folder of another user's is refused: reading it would run what is in it.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sandbox.batch.account import MOTO
from sandbox.errors import SandboxError

VERSION = 2
EVERY_SECONDS = 2.0
"""What a crash may lose; more where saving takes long."""
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class Keeper:
    """`load` what was kept under a name, `save` what is to be kept."""

    def __init__(self, folder: Path) -> None:
        """Raises SandboxError for a folder that is not this user's alone."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = folder.stat()
        except OSError as err:
            raise SandboxError(f"--state {folder} can't be used: {err.strerror}") from err
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise SandboxError(
                f"--state {folder} can be written by others: chmod 700 {folder}, or give another"
            )

    def names(self) -> list[str]:
        """What there is to load."""
        return sorted(path.stem for path in self._folder.glob("*.state"))

    def load(self, name: str) -> Any:
        """What was saved under that name, None if nothing was.

        Raises SandboxError when it is from another version, or broken.
        """
        path = self._folder / f"{name}.state"
        if not path.exists():
            return None
        try:
            with path.open("rb") as stream:
                version, value = _Unpickler(stream).load()
        except Exception as err:  # whatever a broken pickle raises
            raise SandboxError(f"{path} can't be read ({err}): give another --state") from err
        if version != VERSION:
            raise SandboxError(f"{path} is of another version: give another --state")
        return value

    def save(self, name: str, value: Any) -> None:
        """Keeps the value under that name."""
        buffer = io.BytesIO()
        _Pickler(buffer).dump((VERSION, value))
        part = self._folder / f"{name}.part"
        part.touch(mode=0o600)
        part.write_bytes(buffer.getvalue())
        part.replace(self._folder / f"{name}.state")


class Diary:
    """Saves now and then, in a thread, while there is something new."""

    def __init__(self, save: Callable[[], None], news: Callable[[], int]) -> None:
        self._save = save
        self._news = news
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="diary", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Saves for the last time."""
        self._stopped.set()
        self._thread.join()
        self._save()

    def _loop(self) -> None:
        seen, pause_s = self._news(), EVERY_SECONDS
        while not self._stopped.wait(pause_s):
            if (now := self._news()) == seen:
                continue
            seen, started = now, time.monotonic()
            self._save()
            pause_s = max(EVERY_SECONDS, 10 * (time.monotonic() - started))


def load_moto(keeper: Keeper) -> None:
    """Gives moto's backends back what they knew."""
    with MOTO:
        for name in keeper.names():
            kind, _, rest = name.partition("=")
            if kind == "moto":
                backend = _backend(*rest.split("="))
                for attribute, value in keeper.load(name).items():
                    _restore(backend, attribute, value)


def save_moto(keeper: Keeper) -> None:
    """Keeps what moto's backends know."""
    with MOTO:
        for service, account, region, backend in _backends():
            state = vars(backend)
            keeper.save(f"moto={service}={account}={region}", state)


def _backends() -> Iterator[tuple[str, str, str, Any]]:
    """Those that are in use. IAM has one a partition, each with all of AWS's own policies."""
    from moto.core.base_backend import BackendDict  # noqa: PLC0415 # loaded by then

    found: Any = vars(BackendDict)["_instances"]
    for services in list(found):
        for account, regions in list(services.items()):
            for region, backend in list(regions.items()):
                if not region.startswith("aws-"):
                    yield services.service_name, account, region, backend


def _backend(service: str, account: str, region: str) -> Any:
    from moto.backends import get_backend  # noqa: PLC0415 # only where something is kept

    return get_backend(service)[account][region]  # type: ignore[call-overload] # any service


def _restore(backend: Any, attribute: str, value: Any) -> None:
    now = getattr(backend, attribute, None)
    if isinstance(now, defaultdict):  # its default may be a function that can't be kept
        now.clear()
        now.update(value)
    else:
        setattr(backend, attribute, value)


def _mapping(kind: type[defaultdict[Any, Any]], default: Any) -> Any:
    """An empty one; its other members and its items follow."""
    made = kind.__new__(kind)
    made.default_factory = default
    return made


class _Pickler(pickle.Pickler):
    """Locks are made anew; a backend is named, not copied; a mapping's default is a class or none."""

    def __init__(self, stream: io.BytesIO) -> None:
        from moto.core.base_backend import BaseBackend  # noqa: PLC0415 # loaded by then

        super().__init__(stream, protocol=5)
        self._backends = BaseBackend

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, _LOCKS):
            make: Callable[[], Any] = threading.RLock if "RLock" in repr(value) else threading.Lock
            return make, ()
        if isinstance(value, defaultdict):
            default = value.default_factory if isinstance(value.default_factory, type) else None
            state = getattr(value, "__dict__", None) or None
            return _mapping, (type(value), default), state, None, iter(dict.items(value))
        return NotImplemented

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, self._backends):
            return _service_of(value), value.account_id, value.region_name
        return None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: Any) -> Any:
        return _backend(*name)


def _service_of(backend: Any) -> str:
    for service, _, _, known in _backends():
        if known is backend:
            return service
    raise SandboxError(f"moto's {type(backend).__name__} can't be kept")
