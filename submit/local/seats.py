"""Which cores and GPUs are in use on this machine, whoever's runs have them. Speaks to the kernel.

Each home has a supervisor of its own, and so has each user. They meet in a file of which a byte
stands for each core and each GPU: who runs on one has its byte locked. The lock is the open
file's (fcntl(2), "Open file description locks"), and the shell that runs the attempt inherits
that: it lasts as long as the attempt, whichever supervisor is killed, and no longer.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Mapping, Sequence

import msgspec

from submit.local.records import Seat

WHERE = "RUNFLEET_SEATS"
"""A variable that names another file."""
_NAME = "runfleet-seats"
_FOLDERS = ("/run/lock", "/dev/shm")  # noqa: S108 # everybody's on purpose: see _open
"""The first of them that all users may write to has the file: a system's users all find the same.
In the second a service may remove it when its owner logs out (logind.conf(5), RemoveIPC)."""
_FOR_ALL = stat.S_ISVTX | stat.S_IWOTH
_FIRST_GPU = 1 << 20
"""Its byte: no machine has so many cores."""
_LOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, pid."""


class Seats(msgspec.Struct, frozen=True):
    """The machine's seats, as they are shared through that file. Its methods raise OSError where it
    can't be used.
    """

    path: str

    def taken(self, machine: Seat) -> Seat:
        """Which of the machine's cores and GPUs somebody's runs have, ours or others'."""
        fd = _open(self.path)  # each time: somebody may have removed the one before
        try:
            return Seat(
                cores=_locked(fd, machine.cores, 0), gpus=_locked(fd, machine.gpus, _FIRST_GPU)
            )
        finally:
            os.close(fd)

    def take(self, seat: Seat) -> int | None:
        """A descriptor that has the seat as long as it, or a child's copy of it, is open; None
        when somebody was quicker.
        """
        fd = _open(self.path)
        try:
            for byte in (*seat.cores, *(_FIRST_GPU + gpu for gpu in seat.gpus)):
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, 0, byte, 1, 0))
        except OSError as err:
            os.close(fd)
            if err.errno in {errno.EAGAIN, errno.EACCES}:
                return None
            raise
        return fd


def find_seats(environ: Mapping[str, str]) -> Seats:
    """Where this machine's are told."""
    return Seats(environ.get(WHERE) or f"{_folder()}/{_NAME}")


def _folder() -> str:
    for folder in _FOLDERS:
        with contextlib.suppress(OSError):
            if os.stat(folder).st_mode & _FOR_ALL == _FOR_ALL:  # noqa: PTH116 # a flag is wanted
                return folder
    return _FOLDERS[-1]


def _locked(fd: int, numbers: Sequence[int], first: int) -> tuple[int, ...]:
    """One call when none is: of several the kernel names any, so each is asked about then."""
    if not numbers or not _is_locked(fd, first, max(numbers) + 1):
        return ()
    return tuple(number for number in numbers if _is_locked(fd, first + number, 1))


def _is_locked(fd: int, start: int, length: int) -> bool:
    asked = _LOCK.pack(fcntl.F_WRLCK, 0, start, length, 0)
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked)
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
