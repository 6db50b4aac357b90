"""Whole numbers as text: `0-9999,10003`. Pure.

How a job is told which runs and seeds are its own: short for a whole grid, and still one
job for scattered runs. submit/runside reads the same form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def encode_ranges(numbers: Iterable[int]) -> str:
    """`numbers`, in their order, as `first-last` parts; a part that is one number is that number."""
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in _iter_parts(numbers))


def decode_ranges(text: str) -> Iterator[int]:
    """The numbers that encode_ranges wrote, lazily and in order."""
    for part in text.split(",") if text else ():
        first, last = _ends(part)
        yield from range(first, last + 1)


def count_ranges(text: str) -> int:
    """How many numbers `text` stands for."""
    return sum(last - first + 1 for first, last in map(_ends, text.split(","))) if text else 0


def split_ranges(text: str, *, most: int, longest: int) -> Iterator[str]:
    """`text` in pieces of at most `most` numbers and `longest` characters each.

    Costs by the parts of `text`, not by the numbers that they stand for. `longest` must have
    room for one part.
    """
    piece: list[str] = []
    room, length = most, 0
    for part in text.split(",") if text else ():
        first, last = _ends(part)
        while first <= last:
            until = min(last, first + room - 1)
            text_part = str(first) if until == first else f"{first}-{until}"
            if piece and length + len(text_part) + 1 > longest:
                yield ",".join(piece)
                piece, room, length = [], most, 0
                continue
            piece.append(text_part)
            length += len(text_part) + (len(piece) > 1)
            room -= until - first + 1
            first = until + 1
            if room == 0:
                yield ",".join(piece)
                piece, room, length = [], most, 0
    if piece:
        yield ",".join(piece)


def _ends(part: str) -> tuple[int, int]:
    first, _, last = part.partition("-")
    return int(first), int(last or first)


def _iter_parts(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = last = number
        elif number == last + 1:
            last = number
        else:
            yield first, last
            first = last = number
    if first is not None and last is not None:
        yield first, last
