"""Which cores and GPUs are in use on this machine, whoever's runs have them. Speaks to the kernel.

The supervisors of all homes and users meet in the shared file (submit.shared_file), of which a byte
stands for each core and each GPU: who runs on one has its byte locked. The shell that runs the
attempt inherits the lock: it lasts as long as the attempt, whichever supervisor is killed, and no
longer.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from submit.local.records import Seat
from submit.shared_file import FIRST_CORE, FIRST_GPU, is_locked, lock_byte, open_shared


class Seats(msgspec.Struct, frozen=True):
    """The machine's seats, as they are shared through that file. Its methods raise OSError where it
    can't be used.
    """

    path: str

    def taken(self, machine: Seat) -> Seat:
        """Which of the machine's cores and GPUs somebody's runs have, ours or others'."""
        fd = open_shared(self.path)  # each time: somebody may have removed the one before
        try:
            return Seat(
                cores=_locked(fd, machine.cores, FIRST_CORE),
                gpus=_locked(fd, machine.gpus, FIRST_GPU),
            )
        finally:
            os.close(fd)

    def take(self, seat: Seat) -> int | None:
        """A descriptor that has the seat as long as it, or a child's copy of it, is open; None
        when somebody was quicker.
        """
        fd = open_shared(self.path)
        cores = (FIRST_CORE + core for core in seat.cores)
        gpus = (FIRST_GPU + gpu for gpu in seat.gpus)
        try:
            free = all(lock_byte(fd, byte) for byte in (*cores, *gpus))
        except OSError:
            os.close(fd)
            raise
        if free:
            return fd
        os.close(fd)
        return None


def _locked(fd: int, numbers: Sequence[int], first: int) -> tuple[int, ...]:
    """One call when none is: of several the kernel names any, so each is asked about then."""
    if not numbers or not is_locked(fd, first, max(numbers) + 1):
        return ()
    return tuple(number for number in numbers if is_locked(fd, first + number, 1))
