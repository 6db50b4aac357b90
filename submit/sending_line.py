"""The line that tells how far sending is. Pure."""

from __future__ import annotations

BAR = 20
MIN_ETA_S = 2.0
"""Before that nothing is foretold."""


def sending_line(done: int, of: int, elapsed_s: float, columns: int) -> str:
    """`sending [######--------------] 3 of 10 jobs, 12 s left`, no wider than the terminal: what does not fit
    is left out, the bar first.
    """
    count = f"{done:,} of {of:,} jobs"
    full = BAR * done // of if of else BAR
    bar = "#" * full + "-" * (BAR - full)
    left = (
        f", {elapsed_s / done * (of - done):.0f} s left" if done and elapsed_s > MIN_ETA_S else ""
    )
    for text in (f"sending [{bar}] {count}{left}", f"sending {count}{left}", count):
        if len(text) < columns:
            return text
    return ""
