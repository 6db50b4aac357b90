"""Stays with an experiment on the own machine: `submit run --queue local --foreground`."""

from __future__ import annotations

import signal
from types import FrameType
from typing import TYPE_CHECKING

from submit import api
from submit.commands.text import INTERRUPTED, say
from submit.commands.watch import watch

if TYPE_CHECKING:
    from submit.records import Kept


def attend(session: api.Session, kept: Kept) -> int:
    """Shows the progress until all is over; the exit code. Its runs end with this command."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with api.attended(session, kept):
            code = watch(session, kept)
    finally:
        signal.signal(signal.SIGTERM, before)
    if code == INTERRUPTED:
        say("they were in the foreground: what was not over is cancelled")
    return code


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
