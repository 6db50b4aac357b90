"""The file that all of a machine's users share, whose bytes they lock. Speaks to the kernel.

Each home has a ledger and a supervisor of its own, and so has each user: here they meet. A lock is
the open file's (fcntl(2), "Open file description locks"): it lasts as long as the descriptor and
its copies in children, whoever is killed. Where a kernel has no such locks, it is the process's.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Mapping

WHERE = "RUNFLEET_SHARED"
"""A variable that names another file."""
FIRST_CORE = 0
FIRST_GPU = 1 << 20
"""Its byte: no machine has so many cores."""
FIRST_TURN = 1 << 40
"""The byte of the first turn to send (submit.turns)."""
_NAME = "runfleet-shared"
_FOLDERS = ("/run/lock", "/dev/shm", "/tmp")  # noqa: S108 # everybody's on purpose: see open_shared
"""The first of them that all users may write to has the file: a system's users all find the same.
In the second a service may remove it when its owner logs out (logind.conf(5), RemoveIPC)."""
_FOR_ALL = stat.S_ISVTX | stat.S_IWOTH
_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, pid."""
_HAS_FILE_LOCKS = hasattr(fcntl, "F_OFD_SETLK")


def shared_path(environ: Mapping[str, str]) -> str:
    """Where this machine's is."""
    return environ.get(WHERE) or f"{_folder()}/{_NAME}"


def open_shared(path: str) -> int:
    """The file, which all users may open; made if it is not there. Raises OSError."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(path, flags)  # not made: others' files in such a folder may not be (proc(5))
    except FileNotFoundError:
        fd = os.open(path, flags | os.O_CREAT, 0o666)
        if os.fstat(fd).st_uid == os.getuid():
            os.fchmod(fd, 0o666)  # whatever the umask is
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # times are written to it
        os.close(fd)
        raise OSError(errno.EINVAL, "no regular file of one name", path)
    return fd


def lock_byte(fd: int, byte: int, *, wait: bool = False) -> bool:
    """Whether that byte is ours now; it is after waiting. Raises OSError."""
    try:
        if _HAS_FILE_LOCKS:
            command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
            fcntl.fcntl(fd, command, _FLOCK.pack(fcntl.F_WRLCK, 0, byte, 1, 0))
        else:
            fcntl.lockf(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, byte)
    except OSError as err:
        if err.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True


def unlock_byte(fd: int, byte: int) -> None:
    """Others may have it. Raises OSError."""
    if _HAS_FILE_LOCKS:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, 0, byte, 1, 0))
    else:
        fcntl.lockf(fd, fcntl.LOCK_UN, 1, byte)


def is_locked(fd: int, start: int, length: int) -> bool:
    """Whether somebody has one of those bytes. Raises OSError."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, 0, start, length, 0)
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _folder() -> str:
    for folder in _FOLDERS:
        with contextlib.suppress(OSError):
            if os.stat(folder).st_mode & _FOR_ALL == _FOR_ALL:  # noqa: PTH116 # a flag is wanted
                return folder
    return _FOLDERS[-1]
