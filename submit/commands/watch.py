"""submit watch; also at the end of `submit run --watch` and before `submit status --watch`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from submit import api
from submit.commands.options import complete_experiment
from submit.commands.status import exit_code, tell_end, took
from submit.commands.text import INTERRUPTED, counts_text, progress_text, say
from submit.errors import ServiceFailed
from submit.states import OVER

if TYPE_CHECKING:
    from submit.progress import Progress
    from submit.records import Kept


@click.command("watch")
@click.argument(
    "experiment", metavar="[EXPERIMENT]", default="latest", shell_complete=complete_experiment
)
def command(experiment: str) -> int:
    """Follow an experiment to its end: the latest, or the one of that id or name.

    Runs that lose their spot machines too often go on to the experiment's fallback meanwhile. Exits
    with 1 when runs have failed.
    """
    with api.Session() as session:
        return watch(session, api.find(session, experiment))


def watch(session: api.Session, kept: Kept, left: str = "", *, quiet: bool = False) -> int:
    """Shows the progress until all is over; the exit code. `left` is said to who leaves before.
    `quiet` leaves standard output to what else is printed there.
    """
    shown = _bar(kept) if sys.stderr.isatty() else _lines()
    try:
        with shown as see:
            end = api.wait(session, kept, see=see, trouble=_tell_trouble, note=say)
    except KeyboardInterrupt:
        say(left or f"\nthe runs go on without you\n  next: submit status {kept.id} --watch")
        return INTERRUPTED
    click.echo(f"{kept.id}: {progress_text(end)}, {took(end)}".removesuffix(", "), err=quiet)
    tell_end(session, end)
    return exit_code(end)


def _tell_trouble(err: ServiceFailed) -> None:
    say(f"{err.message}; trying again")


@contextmanager
def _lines() -> Iterator[Callable[[Progress], None]]:
    """A line whenever something has changed, for files and for pipes."""
    said: list[str] = []

    def see(progress: Progress) -> None:
        text = counts_text(progress.counts)
        if said[-1:] != [text]:
            said.append(text)
            say(f"{time.strftime('%H:%M:%S')}  {text}")

    yield see


@contextmanager
def _bar(kept: Kept) -> Iterator[Callable[[Progress], None]]:
    """A line that is written over, with a bar."""
    from rich.progress import BarColumn, TextColumn  # noqa: PLC0415 # slow
    from rich.progress import Progress as Bar  # noqa: PLC0415 # likewise

    from submit.commands.tables import console  # noqa: PLC0415 # likewise

    columns = (
        TextColumn(kept.name or kept.id, markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
    )
    screen = console(stderr=True)
    with Bar(*columns, console=screen, transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("…", total=None)

        def see(progress: Progress) -> None:
            over = sum(count for state, count in progress.counts.items() if state in OVER)
            text = f"{progress_text(progress)}, {took(progress)}"
            bar.update(task, total=progress.runs, completed=over, description=text)

        yield see
