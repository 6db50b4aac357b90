"""The names that somebody may have meant. Pure."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 10


def nearest(given: str, names: Sequence[str]) -> str:
    """` (there is: …)`, with the names that are near, or else the first of them."""
    import difflib  # noqa: PLC0415 # only for a slip

    shown = difflib.get_close_matches(given, names, n=3, cutoff=0.3) or list(names[:SHOWN])
    return f" (there is: {', '.join(shown) or 'none'})"


def near_names(given: str, names: Sequence[str], *, most: int) -> list[str]:
    """Those names that one may have slipped from, the nearest first."""
    import difflib  # noqa: PLC0415 # only for a slip

    return difflib.get_close_matches(given, list(dict.fromkeys(names)), n=most, cutoff=0.6)


def did_you_mean(given: str, names: Sequence[str], *, most: int = 1) -> str:
    """`; did you mean …?`, or nothing when no name is near."""
    near = near_names(given, names, most=most)
    return f"; did you mean {' or '.join(near)}?" if near else ""
