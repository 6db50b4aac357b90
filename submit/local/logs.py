"""What runs have printed, from their files. A page is a piece of a file; a token says how far."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from submit.backends import LogLine

PAGE = 1 << 20
"""Bytes that are read at once; a line that is longer comes in pieces."""


def read_page(path: Path, start: int, *, ended: bool) -> tuple[list[LogLine], int]:
    """The lines from `start` on, and where the next page starts: there again when there is nothing
    new. A line without an end comes when no more of it can (`ended`).
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            piece = file.read(PAGE)
            at_ms = int(os.fstat(file.fileno()).st_mtime * 1000)
    except FileNotFoundError:
        return [], start
    if not (ended and len(piece) < PAGE) and b"\n" in piece:
        piece = piece[: piece.rindex(b"\n") + 1]
    elif not ended and len(piece) < PAGE:
        piece = b""
    lines = [LogLine(at_ms=at_ms, text=_text(line)) for line in _lines(piece)]
    return lines, start + len(piece)


def read_tail(path: Path, lines: int) -> list[LogLine]:
    """The last lines; none when the file does not exist."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            at_ms = int(os.fstat(file.fileno()).st_mtime * 1000)
            piece = b""
            while end and piece.count(b"\n") <= lines:
                start = max(0, end - PAGE)
                file.seek(start)
                piece = file.read(end - start) + piece
                end = start
    except FileNotFoundError:
        return []
    return [LogLine(at_ms=at_ms, text=_text(line)) for line in _lines(piece)[-lines:]]


def written_ms(path: Path) -> int:
    """When it was last written to; 0 when it does not exist."""
    try:
        return int(path.stat().st_mtime * 1000)
    except FileNotFoundError:
        return 0


def search(path: Path, text: str) -> Iterator[str]:
    """All lines that hold `text`."""
    wanted = text.encode()
    try:
        with path.open("rb") as file:
            for line in file:
                if wanted in line:
                    yield _text(line.rstrip(b"\n"))
    except FileNotFoundError:
        return


def _lines(piece: bytes) -> list[bytes]:
    return piece.removesuffix(b"\n").split(b"\n") if piece else []


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode(errors="replace")
