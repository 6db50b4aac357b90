"""What a job prints becomes log lines: none lost, none invented."""

from __future__ import annotations

import os
import threading
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.batch import executor


def pumped(pieces: list[bytes], *, close: bool = True) -> list[str]:
    """The lines that come of those writes."""
    reading, writing = os.pipe()
    events: list[tuple[int, str]] = []
    ended = threading.Event()
    stream = os.fdopen(reading, "rb")
    pump = threading.Thread(target=executor._pump, args=(stream, events.extend, ended))
    pump.start()
    try:
        for piece in pieces:
            os.write(writing, piece)
        ended.set()
        if close:
            os.close(writing)
        pump.join(20)
        assert not pump.is_alive()
    finally:
        if not close:
            os.close(writing)
    return [text for _, text in events]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.binary(min_size=1, max_size=50), max_size=20))
def test_lines_arrive_however_they_were_written(pieces: list[bytes]) -> None:
    whole = b"".join(pieces).decode("utf-8", "replace")
    expected = whole.split("\n")
    if expected[-1] == "":
        expected.pop()
    assert pumped(pieces) == expected


def test_a_stream_that_is_held_open_ends_with_the_job() -> None:
    assert pumped([b"a\n", b"b"], close=False) == ["a", "b"]


def test_a_line_longer_than_an_event_is_cut() -> None:
    with patch.object(executor, "_MAX_LINE", 4):
        assert pumped([b"abcdefghij\n", b"xy\n"]) == ["abcd", "efgh", "ij", "xy"]
