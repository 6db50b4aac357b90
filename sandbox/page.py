"""The status page: HTML of what the sandbox does now. Pure.

Read-only, without a script: the browser asks again every two seconds. What jobs and requests bring
in is escaped, and the page's own policy lets nothing else be loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from sandbox.answers import Answer

REFRESH_SECONDS = 2
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 75rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884;
  vertical-align: top; overflow-wrap: anywhere; }
th, td.word { overflow-wrap: normal; }
section { overflow-x: auto; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #8882; padding: .75rem; overflow-x: auto; white-space: pre-wrap; }
.SUCCEEDED { color: #2a8a3e; } .FAILED, .INVALID { color: #c93c37; } .RUNNING { color: #2f6fd0; }
.none { opacity: .6; }
"""


class Table:
    """A heading, the names of the columns, and the rows; a cell may be a `Cell`."""

    def __init__(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.title = title
        self.columns = columns
        self.rows = list(rows)


class Link:
    """A cell that leads to a job."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id


def overview(heading: str, tables: Iterable[Table]) -> Answer:
    """The page at /."""
    return _page("Sandbox", f"<p>{escape(heading)}</p>" + "".join(map(_table, tables)))


def job(detail: dict[str, Any], lines: Sequence[str]) -> Answer:
    """The page of one job: what DescribeJobs says, and the end of its log."""
    facts = Table("State", ("", ""), [(key, detail[key]) for key in detail])
    log = escape("\n".join(lines)) or '<span class="none">nothing was written</span>'
    return _page(
        f"Job {detail['jobId']}",
        f'<p><a href="/">all</a></p>{_table(facts)}<h2>Log</h2><pre id="log">{log}</pre>',
    )


def refusal(status: int, message: str) -> Answer:
    """A page that tells why there is none."""
    return _page("Sandbox", f"<p>{escape(message)}</p>", status)


def _page(title: str, body: str, status: int = 200) -> Answer:
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>"
    )
    return Answer(status, text.encode(), dict(HEADERS))


def _table(table: Table) -> str:
    numbers = [_is_number(value) for value in table.rows[0]] if table.rows else []
    head = "".join(
        f'<th scope="col"{_NUMBER if number else ""}>{escape(name)}</th>'
        for name, number in zip_longest(table.columns, numbers)
        if name is not None
    )
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    name = escape(table.title.lower().replace(" ", "-"))
    inside = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    if not table.rows:
        inside = '<p class="none">none</p>'
    return f'<section id="{name}"><h2>{escape(table.title)}</h2>{inside}</section>'


def _cell(value: Any) -> str:
    if isinstance(value, Link):
        text = escape(value.job_id)
        return f'<td><a href="/job/{quote(value.job_id, safe="")}">{text}</a></td>'
    if _is_number(value):
        return f"<td{_NUMBER}>{value}</td>"
    text = escape("" if value is None else str(value))
    word = "word" if all(len(part) <= _WORD for part in text.split()) else ""
    css = " ".join(filter(None, (word, text if text in _COLOURED else "")))
    return f'<td class="{css}">{text}</td>' if css else f"<td>{text}</td>"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_WORD = 24
"""Words of so many letters are not broken; longer ones must not push a table out of the window."""
_NUMBER = ' class="number"'
_COLOURED = frozenset({"SUCCEEDED", "FAILED", "INVALID", "RUNNING"})
