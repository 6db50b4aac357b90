"""What a person wrote wrongly in the stack configuration, and how it is told. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence

import msgspec

SECRET = "[secret]"  # noqa: S105 # stands in the place of a value, is none
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
        super().__init__(f"{len(mistakes)} mistakes")
        self.mistakes = tuple(mistakes)


def told(mistakes: Sequence[Mistake], *, stack: str) -> str:
    """The message for people: one line a mistake, with the command to type where there is one."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    lines = [f"{count} in the settings of stack {stack}:"]
    for mistake in mistakes:
        lines.append(f"  {mistake.path}: {mistake.problem}")
        if mistake.command:
            lines.append(f"      {mistake.command}")
    lines.append(f"Change Pulumi.{stack}.yaml, then type: pulumi up")
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
