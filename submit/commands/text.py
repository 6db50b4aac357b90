"""Amounts, times and progress as people read them; JSON. Imports nothing that a dry run lacks."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from submit.states import BAD, RunState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from submit.experiment import Run
    from submit.progress import Progress


INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""
TIMED_OUT = 124
"""The exit code when a time was over, as timeout(1) has it."""
BAR = 12
"""Columns of a bar."""


def show_json(value: Any) -> None:
    """To standard output, two spaces deep; where that can't take every letter, in ASCII."""
    click.echo(_readable(msgspec.json.format(msgspec.json.encode(value), indent=2), indent=2))


def show_json_line(value: Any) -> None:
    """As show_json, on one line: for what comes bit by bit."""
    click.echo(_readable(msgspec.json.encode(value), indent=None))


def _readable(text: bytes, indent: int | None) -> str:
    if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8":
        return text.decode()
    import json  # noqa: PLC0415 # rarely

    return json.dumps(json.loads(text), indent=indent)


def say(text: str) -> None:
    """To the person at the terminal: standard error, where it is in no program's way.

    That nobody reads it any more is no reason to stop in the middle of something.
    """
    try:
        click.echo(text, err=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def plural(count: int, noun: str, nouns: str = "") -> str:
    """`1 run`, `6 runs`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def seconds(amount: float) -> str:
    """`41 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`: the two largest units."""
    left = max(0, round(amount))
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
        elif parts:
            break
        if len(parts) == 2:  # noqa: PLR2004 # more would be false precision
            break
    return " ".join(parts)


def number(value: float) -> str:
    """Four significant digits, and no exponent where people would not write one."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1e12:  # noqa: PLR2004 # a diverged run's
        return f"{value:.4g}"
    return f"{value:.0f}" if abs(value) >= 1000 or value.is_integer() else f"{value:.4g}"  # noqa: PLR2004 # four digits


def run_text(run: Run) -> str:
    """`7 env-id=CartPole-v1 seed=2`, always on one line."""
    parts = [str(run.index), *(f"{name}={one_line(value)}" for name, value in run.parameters)]
    parts += [] if run.seed is None else [f"seed={run.seed}"]
    return " ".join(parts)


def one_line(text: str) -> str:
    r"""`text` with what moves a terminal's cursor or ends a line written out: `\n`, `\x1b`."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def bar(counts: Mapping[RunState, int], width: int = BAR) -> str:
    """`████xx····`: done, ended badly, not over. In ASCII where the terminal knows no more."""
    full, empty = "█·"
    encoding = (sys.stdout.encoding or "ascii").lower()
    if not encoding.startswith("utf"):
        full, empty = "#."
    every = sum(counts.values()) or 1
    done = counts.get(RunState.DONE, 0)
    ended = done + sum(count for state, count in counts.items() if state in BAD)
    # Rounded down: a bar is full only when all is done.
    filled = done * width // every
    bad = max(-(-ended * width // every) - filled, 0) if ended > done else 0
    return full * filled + "x" * bad + empty * (width - filled - bad)


def counts_text(counts: Mapping[RunState, int]) -> str:
    """`4 done, 2 running`."""
    return ", ".join(f"{count:,} {state.value}" for state, count in counts.items())


def progress_text(progress: Progress) -> str:
    """`6 runs: 4 done, 2 running`."""
    return f"{plural(progress.runs, 'run')}: {counts_text(progress.counts)}"
