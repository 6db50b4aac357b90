"""Gives seats to runs: by placement, among others' runs on this machine. Speaks to the kernel."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from submit.local.placement import Asking, place, without
from submit.local.records import Seat
from submit.local.seats import Seats

Seated = tuple[int, Seat, int | None]
"""A task, the seat of one of its runs, and what has it (submit.local.seats); None where seats are
not shared."""


class Seating:
    """`waits` says whether runs wait that could start if others' runs were over."""

    def __init__(self, seats: Seats) -> None:
        self._seats: Seats | None = seats
        self.waits = False

    def sit(self, room: Seat, asking: Sequence[Asking]) -> list[Seated]:
        """The runs that start now, each with its seat in that room, which is taken."""
        self.waits = False
        if not asking:
            return []
        if self._seats:
            try:
                return self._sit_among(self._seats, room, asking)
            except OSError as err:
                # Into the supervisor's log. They run all the same.
                sys.stderr.write(f"cores and GPUs are not shared with others' runs: {err}\n")
                self._seats = None
        return [(seq, seat, None) for seq, seat in place(room, asking)]

    def _sit_among(self, seats: Seats, room: Seat, asking: Sequence[Asking]) -> list[Seated]:
        free = without(room, seats.taken(room))
        self.waits = free != room
        found: list[Seated] = []
        holds: list[int] = []
        try:
            for seq, seat in place(free, asking):
                hold = seats.take(seat)
                if hold is None:  # somebody was quicker
                    self.waits = True
                    break
                holds.append(hold)
                found.append((seq, seat, hold))
        except OSError:
            for hold in holds:
                os.close(hold)
            raise
        return found
