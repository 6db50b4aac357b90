"""How commands and the supervisor speak. A Unix socket in the own machine's folder, which only
its owner may enter; a message is its length in four bytes, then msgpack.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import msgspec

from submit.errors import ServiceFailed
from submit.shared_file import WHERE

SOCKET = "supervisor.sock"
LOCK = "supervisor.lock"
LOG = "supervisor.log"
TRIES = 5
"""A supervisor that has nothing left to do may go in the very moment it is spoken to."""
PATIENCE_S = 30.0
_BOOT = (
    "import sys; sys.path[:1] = [sys.argv[1]]; "
    "from submit.local.supervisor import main; main(sys.argv[2])"
)


class Environment(msgspec.Struct, frozen=True, tag="environment"):
    """The environment of the runs of the task of that name, or of all that have none (None)."""

    task: str | None
    variables: dict[bytes, bytes]


class Look(msgspec.Struct, frozen=True, tag="look"):
    """There is something new in the store."""


class Attend(msgspec.Struct, frozen=True, tag="attend"):
    """Say so when these tasks are over; cancel them when this connection ends before."""

    tasks: tuple[str, ...]


Message = Environment | Look | Attend
DONE = b"."
"""The answer to each message, and what an attending connection gets when its tasks are over."""
_HEADER = struct.Struct("!I")


class Incoming:
    """Puts messages together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._decoder = msgspec.msgpack.Decoder(Message)

    def add(self, piece: bytes) -> list[Message]:
        """The messages that are complete with it. Raises DecodeError for what is none."""
        self._buffer += piece
        messages: list[Message] = []
        while len(self._buffer) >= _HEADER.size:
            end = _HEADER.size + _HEADER.unpack_from(self._buffer)[0]
            if len(self._buffer) < end:
                break
            messages.append(self._decoder.decode(self._buffer[_HEADER.size : end]))
            del self._buffer[:end]
        return messages


class Line:
    """A connection to the supervisor, which is started if there is none. A context manager."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._socket: socket.socket | None = None

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up."""
        if self._socket:
            self._socket.close()
            self._socket = None

    def say(self, message: Message) -> None:
        """Says it, and waits until it was heard. Raises ServiceFailed when there is nobody."""
        body = msgspec.msgpack.encode(message)
        why: Exception | None = None
        for _ in range(TRIES):
            try:
                if self._socket is None:
                    self._socket = self._connect()
                self._socket.sendall(_HEADER.pack(len(body)) + body)
                if self._socket.recv(1) == DONE:
                    return
            except OSError as err:
                why = err
            self.close()
        raise ServiceFailed(
            "no-supervisor",
            f"the own machine's supervisor does not answer ({why or 'it hangs up'})",
            f"cat {self._folder / LOG}",
        )

    def time(self) -> float:
        """Seconds since 1970: a line is a clock, too."""
        return time.time()

    def sleep(self, seconds: float, /) -> None:
        """Waits so long, or until there is news."""
        if self._socket is None:
            time.sleep(seconds)
            return
        self._socket.settimeout(seconds)
        try:
            if not self._socket.recv(1):
                self.close()  # the supervisor has gone: the next look starts another
        except TimeoutError:
            return
        except OSError:
            self.close()
        else:
            self._socket.settimeout(PATIENCE_S)

    def _connect(self) -> socket.socket:
        try:
            return connect(self._folder)
        except (FileNotFoundError, ConnectionRefusedError):
            start(self._folder, self._environ)
            found = connect(self._folder)
        # What runs that were waiting when their supervisor ended go on with.
        body = msgspec.msgpack.encode(environment(None, self._environ))
        found.sendall(_HEADER.pack(len(body)) + body)
        found.recv(1)
        return found


def environment(task: str | None, environ: Mapping[str, str]) -> Environment:
    """The message that hands an environment over."""
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    return Environment(task, variables)


def connect(folder: Path) -> socket.socket:
    """A connection to the supervisor of that folder. Raises OSError when there is none."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(PATIENCE_S)
        with short_path(folder) as path:
            line.connect(path)
    except OSError:
        line.close()
        raise
    return line


class short_path:  # noqa: N801 # used as a function is
    """The socket's path, short enough for its address (107 bytes), while the block lasts."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)

    def __enter__(self) -> str:
        return f"/proc/self/fd/{self._fd}/{SOCKET}"

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def start(folder: Path, environ: Mapping[str, str]) -> None:
    """Starts a supervisor that outlives this process; returns when it listens, or another does.

    Raises ServiceFailed with the end of what it said when it could not start.
    """
    root = str(Path(__file__).parents[2])
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = os.open(folder / LOG, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _BOOT, root, str(folder)],
            cwd=folder,  # of which `-c` may import: nobody else writes there
            env=_bare(environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            check=False,
        )
    finally:
        os.close(log)
    if done.returncode:
        last = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
        raise ServiceFailed(
            "no-supervisor",
            f"the own machine's supervisor could not start: {''.join(last)}",
            f"cat {folder / LOG}",
        )


def _bare(environ: Mapping[str, str]) -> dict[str, str]:
    """What the supervisor itself needs: no secret stands in its own environment."""
    names = (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "TMPDIR",
        "CUDA_VISIBLE_DEVICES",
        "DOCKER_HOST",
        "DOCKER_CONFIG",
        "XDG_RUNTIME_DIR",
        WHERE,
    )
    return {name: environ[name] for name in names if name in environ}
