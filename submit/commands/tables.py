"""Tables on standard output: coloured and as narrow as the terminal, plain where there is none.

Loads rich, which takes as long as a whole dry run.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from submit.states import RunState

STYLES = {
    RunState.DONE: "green",
    RunState.RUNNING: "cyan",
    RunState.STARTING: "cyan",
    RunState.FAILED: "bold red",
    RunState.LOST: "yellow",
    RunState.CANCELLED: "yellow",
}
WIDE = 1000
"""Columns where no terminal sets a limit: a line a row, for grep and awk."""
NARROW = 20
"""Fewer columns than that show nothing."""

GAP = 2
"""Between two columns."""
LEAST = 24
"""Letters that are left of a text that is cut."""

Cell = str | int | RunState | None


class _Console(Console):
    """Leaves a reader that has gone to the command line, which ends quietly."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Rich's console: it heeds NO_COLOR, and has no colours where no terminal is."""
    stream = sys.stderr if stderr else sys.stdout
    given = os.environ.get("COLUMNS", "")
    told = int(given) if given.isdecimal() and given.isascii() and len(given) < 6 else 0  # noqa: PLR2004 # what a screen may have
    width = (
        max(told, NARROW)
        if told
        else (shutil.get_terminal_size().columns if stream.isatty() else WIDE)
    )
    return _Console(stderr=stderr, highlight=False, width=width, soft_wrap=not stream.isatty())


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], spare: Sequence[str] = (), cut: str = ""
) -> None:
    """One line a row; numbers are set to the right, the first column stays whole: it is typed.

    Where the terminal is too narrow, the column `cut` loses the ends of its texts, and columns that
    can be spared are left out, the first named first.
    """
    rows = list(rows)
    out = console()
    places, room = fitting(columns, rows, spare, out.width, cut)
    columns = [columns[place] for place in places]
    rows = [[row[place] for place in places] for row in rows]
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
        padding=(0, 1, 0, 0),
    )
    for place, column in enumerate(columns):
        cells = [row[place] for row in rows]
        numbers = all(isinstance(cell, int) or cell is None for cell in cells)
        table.add_column(
            column,
            justify="right" if numbers else "left",
            overflow="ellipsis" if column == cut else "fold",
            no_wrap=place == 0 or column == cut,
            max_width=room if column == cut else None,
        )
    for row in rows:
        table.add_row(*map(_text, row))
    out.print(table)


def fitting(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    spare: Sequence[str],
    width: int,
    cut: str = "",
) -> tuple[list[int], int]:
    """Places of the columns that are shown in so many letters, a gap between each two, and the room
    that is left for the texts of `cut`.
    """
    needed = [
        max(cell_len(column), *(cell_len(_text(row[place]).plain) for row in rows), 0)
        for place, column in enumerate(columns)
    ]
    if cut in columns:
        needed[columns.index(cut)] = min(needed[columns.index(cut)], LEAST)
    places = list(range(len(columns)))
    for name in spare:
        if sum(needed[place] + GAP for place in places) <= width + GAP:
            break
        if name in columns:
            places.remove(columns.index(name))
    others = sum(needed[place] + GAP for place in places if columns[place] != cut)
    return places, max(LEAST, width - others)


def _text(cell: Cell) -> Text:
    if isinstance(cell, RunState):
        return Text(cell.value, style=STYLES.get(cell, ""))
    return Text("" if cell is None else f"{cell}")
