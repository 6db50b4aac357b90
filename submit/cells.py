"""Which numbers a grid has once some of its cells are left out. Pure.

A grid here is its radices, the last turning fastest; what is left out is a pattern: at some
places the digits that it covers, at the others any. The cost goes by the stretches that remain,
not by the cells.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

Span = tuple[int, int]
"""The first and the last of neighbouring numbers."""
Pattern = tuple[tuple[int, frozenset[int]], ...]
"""(place, digits) for each place that the pattern minds, in their order."""


@functools.lru_cache(maxsize=16)
def kept_spans(radices: tuple[int, ...], patterns: tuple[Pattern, ...]) -> tuple[Span, ...]:
    """The numbers of the grid that no pattern covers, ascending, neighbours in one span."""
    spans: list[Span] = []
    for first, last in _iter_kept(radices, 0, 0, patterns):
        if spans and spans[-1][1] == first - 1:
            spans[-1] = spans[-1][0], last
        else:
            spans.append((first, last))
    return tuple(spans)


def digits_of(number: int, radices: tuple[int, ...]) -> tuple[int, ...]:
    """The digits of a number of the grid, the fastest last."""
    digits: list[int] = []
    for radix in reversed(radices):
        number, digit = divmod(number, radix)
        digits.append(digit)
    return tuple(reversed(digits))


def covers(pattern: Pattern, digits: tuple[int, ...]) -> bool:
    """Whether the pattern covers the cell with these digits."""
    return all(digits[place] in wanted for place, wanted in pattern)


def _iter_kept(
    radices: tuple[int, ...], place: int, first: int, patterns: tuple[Pattern, ...]
) -> Iterator[Span]:
    """The block of numbers from `first` on whose digits before `place` are settled; `patterns`
    are those that these digits have not ruled out.
    """
    size = math.prod(radices[place:])
    if not patterns:
        if size:
            yield first, first + size - 1
        return
    if any(not pattern or pattern[-1][0] < place for pattern in patterns):
        return  # one of them minds no digit that is still to come
    step = size // radices[place] if radices[place] else 0
    for digit in range(radices[place]):
        left = tuple(p for p in patterns if digit in dict(p).get(place, (digit,)))
        yield from _iter_kept(radices, place + 1, first + digit * step, left)
