"""Who on this machine may send an experiment, and when somebody last has. Speaks to the kernel.

Each home has a ledger of its own and knows nothing of what another's is about to send, and a job
may take seconds until the service lists it. So a turn is a lock on a byte of the shared file
(submit.shared_file), and leaves in it the time of the last request.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Callable, Iterator

from submit.shared_file import FIRST_TURN, lock_byte, open_shared, unlock_byte

_PLACES = 1 << 16
"""Times that are kept: experiments which share one look for each other's jobs, without harm."""
_TIME = struct.Struct("d")

WAITING = "the same experiment is being sent from this machine already; waiting for that to end"
Note = Callable[[str], None]


class Turn:
    """The turn to send an experiment. `last` is when a job of it, or of one with the same place,
    was last about to be sent from this machine, in seconds since 1970; 0 where that is not known.
    """

    def __init__(self, fd: int, place: int, note: Note) -> None:
        self._fd = fd
        self._at = place * _TIME.size
        self._note = note
        found = os.pread(fd, _TIME.size, self._at) if fd >= 0 else b""
        self.last: float = _TIME.unpack(found)[0] if len(found) == _TIME.size else 0.0

    def mark(self, at: float) -> None:
        """A job is about to be sent; with what `last` was before, it was not."""
        self.last = at
        if self._fd < 0:
            return
        try:
            os.pwrite(self._fd, _TIME.pack(at), self._at)
        except OSError as err:  # no room: whoever comes within seconds may not see it
            self._note(f"others on this machine are not told of what is sent: {err}")


class Turns:
    """The machine's turns, in that file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._open = 0

    @contextlib.contextmanager
    def take(self, experiment: str, note: Note) -> Iterator[Turn]:
        """Waits until nobody else on this machine sends the experiment, and has its turn then.
        `note` is told of waiting, and where the file can't be used, when only the home counts.
        """
        number = int.from_bytes(hashlib.sha256(experiment.encode()).digest()[:7], "big") >> 2
        with self._file(note) as fd:
            locked = fd >= 0 and _lock(fd, FIRST_TURN + number, note)
            try:
                yield Turn(fd if locked else -1, number % _PLACES, note)
            finally:
                if locked:
                    unlock_byte(fd, FIRST_TURN + number)

    @contextlib.contextmanager
    def _file(self, note: Note) -> Iterator[int]:
        """One descriptor for all turns that are held; -1 where there is none."""
        if self._fd < 0:
            try:
                self._fd = open_shared(self._path)
            except OSError as err:
                note(_unseen(err))
                yield -1
                return
        self._open += 1
        try:
            yield self._fd
        finally:
            self._open -= 1
            if not self._open:
                os.close(self._fd)
                self._fd = -1


def _unseen(err: OSError) -> str:
    where = f"{err.filename}: " if err.filename else ""
    return f"who else on this machine sends the same can't be seen ({where}{err.strerror})"


def _lock(fd: int, byte: int, note: Note) -> bool:
    """Whether the byte is ours, which is so but where the file system has no locks."""
    try:
        if not lock_byte(fd, byte):
            note(WAITING)
            lock_byte(fd, byte, wait=True)
    except OSError as err:
        note(_unseen(err))
        return False
    return True
