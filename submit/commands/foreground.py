"""Stays with an experiment on the own machine: `submit run --queue local --foreground`."""

from __future__ import annotations

import signal
from types import FrameType
from typing import TYPE_CHECKING

from submit import api
from submit.commands.watch import watch

if TYPE_CHECKING:
    from submit.records import Kept

_LEFT = "\nwhat was not over is cancelled\n  next: submit status {0}, submit retry {0} --cancelled"


def attend(session: api.Session, kept: Kept, *, quiet: bool = False) -> int:
    """Shows the progress until all is over; the exit code. Its runs end with this command."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with api.attended(session, kept):
            return watch(session, kept, _LEFT.format(kept.id), quiet=quiet)
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
