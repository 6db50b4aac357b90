"""Which numbers a grid has once some of its cells are left out. Pure.

A grid here is its radices, the last turning fastest; what is left out is a pattern: at some
places the digits that it covers, at the others any. The cost goes by the stretches that remain,
not by the cells.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

Span = tuple[int, int]
"""The first and the last of neighbouring numbers."""
Pattern = tuple[tuple[int, frozenset[int]], ...]
"""(place, digits) for each place that the pattern minds, in their order."""


@functools.lru_cache(maxsize=16)
def kept_spans(radices: tuple[int, ...], patterns: tuple[Pattern, ...]) -> tuple[Span, ...]:
    """The numbers of the grid that no pattern covers, ascending, neighbours in one span."""
    return tuple(_kept(radices, 0, patterns))


def _kept(radices: tuple[int, ...], place: int, patterns: Sequence[Pattern]) -> list[Span]:
    """Those of the block whose digits before `place` are settled, counted from its first number;
    `patterns` are those that these digits have not ruled out.
    """
    size = math.prod(radices[place:])
    if not size:
        return []
    if not patterns:
        return [(0, size - 1)]
    if any(not pattern or pattern[-1][0] < place for pattern in patterns):
        return []  # one of them minds no digit that is still to come
    others: list[Pattern] = []
    minding: dict[int, list[Pattern]] = {}
    for pattern in patterns:
        digits = next((digits for at, digits in pattern if at == place), None)
        if digits is None:
            others.append(pattern)
        for digit in digits or ():
            minding.setdefault(digit, []).append(pattern)
    plain = _kept(radices, place + 1, others)  # what most digits leave, looked at once
    step = size // radices[place]
    spans: list[Span] = []
    for digit in range(radices[place]):
        some = minding.get(digit)
        left = _kept(radices, place + 1, others + some) if some else plain
        _append(spans, left, digit * step)
    return spans


def _append(spans: list[Span], more: Sequence[Span], start: int) -> None:
    """Puts further spans behind them, moved by `start`; what touches becomes one."""
    for first, last in more:
        if spans and spans[-1][1] == start + first - 1:
            spans[-1] = spans[-1][0], start + last
        else:
            spans.append((start + first, start + last))
