"""Which runs start now, and with which cores and GPUs. Pure.

Runs start in the order of the experiments. A run that waits for room holds what it can already
have: later experiments use only what it does not want, so that none of them delays it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from submit.local.records import Seat, Wish


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A task that has runs to start: how many wait, and how many more of them may run at once."""

    seq: int
    wish: Wish
    waiting: int


def place(room: Seat, asking: Sequence[Asking]) -> list[tuple[int, Seat]]:
    """(seq, seat) of each run that starts, in order; together they have no more than `room`."""
    starts: list[tuple[int, Seat]] = []
    for task in asking:
        for _ in range(task.waiting):
            seat = _take(room, task.wish)
            room = without(room, seat)
            if not _is_whole(seat, task.wish):
                break
            starts.append((task.seq, seat))
        if not room.cores:
            break
    return starts


def without(room: Seat, seat: Seat) -> Seat:
    """What is left of `room` when `seat` is taken."""
    return Seat(
        cores=tuple(core for core in room.cores if core not in seat.cores),
        gpus=tuple(gpu for gpu in room.gpus if gpu not in seat.gpus),
        memory_mib=max(0, room.memory_mib - seat.memory_mib),
    )


def is_possible(machine: Seat, wish: Wish) -> bool:
    """Whether a run with that wish could run at all."""
    return _is_whole(_take(machine, wish), wish)


def _take(room: Seat, wish: Wish) -> Seat:
    """As much of what is wished as there is."""
    return Seat(
        cores=room.cores[: wish.cores],
        gpus=room.gpus[: wish.gpus],
        memory_mib=min(room.memory_mib, wish.memory_mib),
    )


def _is_whole(seat: Seat, wish: Wish) -> bool:
    return (len(seat.cores), len(seat.gpus), seat.memory_mib) == (
        wish.cores,
        wish.gpus,
        wish.memory_mib,
    )
