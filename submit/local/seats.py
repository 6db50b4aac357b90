"""Which cores and GPUs are in use on this machine, whoever's runs have them. Speaks to the kernel.

Each home has a supervisor of its own, and so has each user. They meet in a file of which a byte
stands for each core and each GPU: who runs on one has its byte locked. The lock is the open
file's (fcntl(2), "Open file description locks"), and the shell that runs the attempt inherits
that: it lasts as long as the attempt, whichever supervisor is killed, and no longer.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Sequence

from submit.local.records import Seat

WHERE = "RUNFLEET_SEATS"
"""A variable that names another file."""
FILE = "/dev/shm/runfleet-seats"  # noqa: S108 # everybody's on purpose: see _open
_FIRST_GPU = 1 << 20
"""Its byte: no machine has so many cores."""
_LOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, pid."""


class Seats:
    """The machine's seats, as they are shared through that file. Raises OSError where it can't be
    used.
    """

    def __init__(self, path: str = FILE) -> None:
        self._path = path
        self._eyes = _open(path)

    def close(self) -> None:
        """Looks no more; what was taken stays so."""
        os.close(self._eyes)

    def taken(self, machine: Seat) -> Seat:
        """Which of the machine's cores and GPUs somebody's runs have, ours or others'."""
        return Seat(
            cores=self._locked(machine.cores, 0), gpus=self._locked(machine.gpus, _FIRST_GPU)
        )

    def take(self, seat: Seat) -> int | None:
        """A descriptor that has the seat as long as it, or a child's copy of it, is open; None
        when somebody was quicker.
        """
        fd = _open(self._path)
        try:
            for byte in (*seat.cores, *(_FIRST_GPU + gpu for gpu in seat.gpus)):
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, 0, byte, 1, 0))
        except OSError as err:
            os.close(fd)
            if err.errno in {errno.EAGAIN, errno.EACCES}:
                return None
            raise
        return fd

    def _locked(self, numbers: Sequence[int], first: int) -> tuple[int, ...]:
        """One call when none is: of several the kernel names any, so each is asked about then."""
        if not numbers or not self._is_locked(first, max(numbers) + 1):
            return ()
        return tuple(number for number in numbers if self._is_locked(first + number, 1))

    def _is_locked(self, start: int, length: int) -> bool:
        asked = _LOCK.pack(fcntl.F_WRLCK, 0, start, length, 0)
        answer = fcntl.fcntl(self._eyes, fcntl.F_OFD_GETLK, asked)
        return bool(_LOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _open(path: str) -> int:
    """The file, which all users may lock and nothing is ever written to; made if it is not there."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(path, flags)  # not made: others' files in such a folder may not be (proc(5))
    except FileNotFoundError:
        fd = os.open(path, flags | os.O_CREAT, 0o666)
        if os.fstat(fd).st_uid == os.getuid():
            os.fchmod(fd, 0o666)  # whatever the umask is
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "no regular file", path)
    return fd
