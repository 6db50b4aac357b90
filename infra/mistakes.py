"""What a person wrote wrongly in the stack configuration, and how it is told. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence

import msgspec

_SHOWN = 60


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to change: where, what is wrong with which value, and what to type."""

    path: str
    """Key with namespace, index and member: `runfleet:instanceTypes[1].maxVcpus`."""
    problem: str
    command: str = ""


class Refused(Exception):
    """The settings do not make a fleet. Carries every mistake that could be told at once."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: _natural(mistake.path)))
        super().__init__("; ".join(f"{m.path}: {m.problem}" for m in self.mistakes))

    def told(self, stack: str) -> str:
        """The message for people: a line for each mistake, with the command to type if one does."""
        count = len(self.mistakes)
        lines = [f"{count} mistake{'s'[: count - 1]} in the settings of stack {stack}:"]
        for mistake in self.mistakes:
            lines.append(f"  {mistake.path}: {mistake.problem}")
            if mistake.command:
                lines.append(f"      {mistake.command}")
        lines.append(f"Nothing was changed. Edit Pulumi.{stack}.yaml, then type: pulumi up")
        return "\n".join(lines)


def shown(value: object) -> str:
    """`value` as it stood in the configuration, in one short line."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def nearest(word: str, words: Iterable[str]) -> str:
    """`; nearest: …` with the words that `word` may have meant, or nothing."""
    by_lower = {known.lower(): known for known in words}
    close = difflib.get_close_matches(word.lower(), by_lower, n=2, cutoff=0.6)
    return f"; nearest: {', '.join(by_lower[low] for low in close)}" if close else ""


def _natural(path: str) -> list[tuple[int, str]]:
    """A sort key that puts [2] before [10]."""
    return [(int(digits or 0), text) for digits, text in re.findall(r"(\d+)|(\D+)", path)]
