"""Whole numbers as text: `0-9999,10003,20000:3:e`. Pure.

How a job is told which runs and seeds are its own: a few characters for a whole grid, and
still one job for thousands of scattered runs. A part is a number, `first-last`, or
`first:count:hex`, a bit for each number from `first` on, the highest bit of a digit first.
submit/runside reads the same form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

WINDOW = 256
"""Numbers that one bitmap covers: the run side walks through one of them, bit by bit."""


def encode_ranges(numbers: Iterable[int]) -> str:
    """`numbers`, in their order, in the shorter form wherever they lie scattered."""
    return encode_spans(_iter_spans(numbers))


def encode_spans(spans: Iterable[tuple[int, int]]) -> str:
    """The same of numbers that are given as (first, last) of neighbours."""
    return ",".join(_iter_texts(_Spans(spans)))


def decode_ranges(text: str) -> Iterator[int]:
    """The numbers that encode_ranges wrote, lazily and in order."""
    for part in text.split(",") if text else ():
        yield from _part_numbers(part)


def count_ranges(text: str) -> int:
    """How many numbers `text` stands for."""
    return sum(map(_part_count, text.split(","))) if text else 0


def plain_ranges(text: str) -> str:
    """The same numbers as people read them: `0-5,8,10-12`, without bitmaps."""
    return ",".join(map(_span_text, _iter_spans(decode_ranges(text))))


def split_ranges(text: str, *, most: int, longest: int) -> Iterator[str]:
    """`text` in pieces of at most `most` numbers and `longest` characters each.

    Costs by the parts of `text`, not by the numbers that they stand for. `longest` must have
    room for one part.
    """
    parts = text.split(",")[::-1] if text else []
    piece: list[str] = []
    room, length = most, -1
    while parts:
        part = parts.pop()
        if _part_count(part) > room:
            part, rest = _cut(part, room)
            parts.append(rest)
        if piece and length + 1 + len(part) > longest:
            parts.append(part)
            room = 0
        else:
            piece.append(part)
            length += 1 + len(part)
            room -= _part_count(part)
        if room == 0:
            yield ",".join(piece)
            piece, room, length = [], most, -1
    if piece:
        yield ",".join(piece)


class _Spans:
    """Neighbouring numbers as (first, last), with a look ahead."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._spans = iter(spans)
        self._ahead: list[tuple[int, int]] = []

    def peek(self, nth: int) -> tuple[int, int] | None:
        while len(self._ahead) <= nth:
            span = next(self._spans, None)
            if span is None:
                return None
            self._ahead.append(span)
        return self._ahead[nth]

    def take(self, count: int) -> list[tuple[int, int]]:
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        return taken


def _iter_spans(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
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


def _iter_texts(spans: _Spans) -> Iterator[str]:
    while (head := spans.peek(0)) is not None:
        count = _window(spans, head[0])
        plain = ",".join(_span_text(span) for span in spans.take(max(1, count)))
        if count > 1:
            bits = _bits_text(list(decode_ranges(plain)))
            plain = min(bits, plain, key=len)
        yield plain


def _window(spans: _Spans, base: int) -> int:
    """How many of the next spans ascend and end within the window from `base` on."""
    count, end = 0, base - 1
    while (span := spans.peek(count)) and end < span[0] and span[1] < base + WINDOW:
        count, end = count + 1, span[1]
    return count


def _span_text(span: tuple[int, int]) -> str:
    return str(span[0]) if span[0] == span[1] else f"{span[0]}-{span[1]}"


def _bits_text(numbers: list[int]) -> str:
    base = numbers[0]
    digits = (numbers[-1] - base) // 4 + 1
    mask = sum(1 << (4 * digits - 1 - (number - base)) for number in numbers)
    return f"{base}:{len(numbers)}:{mask:0{digits}x}"


def _part_numbers(part: str) -> Iterable[int]:
    if ":" not in part:
        first, _, last = part.partition("-")
        return range(int(first), int(last or first) + 1)
    first, _, digits = part.split(":")
    bits = f"{int(digits, 16):0{4 * len(digits)}b}"
    return [int(first) + offset for offset, bit in enumerate(bits) if bit == "1"]


def _part_count(part: str) -> int:
    if ":" in part:
        return int(part.split(":")[1])
    first, _, last = part.partition("-")
    return int(last or first) - int(first) + 1


def _cut(part: str, count: int) -> tuple[str, str]:
    """`part` as one text of its first `count` numbers and one of the others."""
    numbers = _part_numbers(part)
    if isinstance(numbers, range):
        head, tail = numbers[:count], numbers[count:]
        return _span_text((head[0], head[-1])), _span_text((tail[0], tail[-1]))
    several = list(numbers)
    return _bits_text(several[:count]), _bits_text(several[count:])
