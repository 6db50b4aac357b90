"""What people and machines read: tables, amounts, times. Loads rich when a table is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

STYLES = {
    "done": "green",
    "running": "cyan",
    "starting": "cyan",
    "failed": "red",
    "lost": "yellow",
    "cancelled": "yellow",
}
WIDE = 400
"""Columns of a table that no terminal shows."""


def show_json(value: Any) -> None:
    """To standard output, two spaces deep."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def say(text: str) -> None:
    """To the person at the terminal: standard error, where it is in nobody's way."""
    click.echo(text, err=True)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: str = "") -> None:
    """To standard output; the columns named in `right` (by spaces) are set to the right."""
    from rich import box  # noqa: PLC0415 # takes as long as a dry run
    from rich.table import Table  # noqa: PLC0415 # likewise
    from rich.text import Text  # noqa: PLC0415 # likewise

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    to_the_right = right.split()
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in to_the_right else "left",
            no_wrap=not sys.stdout.isatty(),
            overflow="fold",
        )
    for row in rows:
        cells = ["" if cell is None else str(cell) for cell in row]
        table.add_row(*[Text(cell, style=STYLES.get(cell, "")) for cell in cells])
    console().print(table)


def console() -> Any:
    """Rich's console for standard output: plain and wide where no terminal is."""
    from rich.console import Console  # noqa: PLC0415 # takes as long as a dry run

    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=int(os.environ.get("COLUMNS") or WIDE), no_color=True)


def duration(milliseconds: float | None) -> str:
    """`3 s`, `4 min 05 s`, `2 h 10 min`; empty for None."""
    if milliseconds is None:
        return ""
    seconds = max(0, round(milliseconds / 1000))
    if seconds < 60:  # noqa: PLR2004 # a minute
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:  # noqa: PLR2004 # an hour
        return f"{minutes} min {seconds:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


def number(value: float) -> str:
    """Four significant digits, as in 487.2, 0.0031, 60000."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 # four digits


def plural(count: int, noun: str) -> str:
    """`1 run`, `6 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
