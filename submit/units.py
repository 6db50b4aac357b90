"""What people type for amounts and variables: seeds, memory, durations, NAME=VALUE. Pure.

One parser per kind of value, used by the command line and by experiment files.
"""

from __future__ import annotations

import math
import re

from submit.errors import WrongUse

MAX_SEEDS = 1_000_000
MAX_AMOUNT = 2**31 - 1
"""Of seconds and of MiB: AWS has 32 bits for them (attemptDurationSeconds, memory)."""
_MEMORY_UNITS = {"": 1, "m": 1, "mi": 1, "mib": 1, "mb": 1, "g": 1024, "gi": 1024, "gib": 1024}
_MEMORY_UNITS |= {"gb": 1024, "t": 1024**2, "ti": 1024**2, "tib": 1024**2, "tb": 1024**2}
_DURATION_UNITS = {"": 3600, "h": 3600, "s": 1, "m": 60, "min": 60, "d": 86_400}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_seeds(text: str) -> tuple[int, ...]:
    """`3` → 1, 2, 3; `1,5,7` as given; `1..10` both ends included; parts may be mixed.

    Raises WrongUse for anything else, for none, and for more than a million.
    """
    hint = "--seeds 3 (the seeds 1, 2, 3), --seeds 1,5,7 or --seeds 1..10"
    text = text.strip()
    if re.fullmatch(r"[0-9]+", text):
        return _counted(1, int(text), text, hint)
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]+)(?:\s*\.\.\s*([0-9]+))?\s*", part)
        if not match:
            raise WrongUse("seeds", f"{text!r} are no seeds", hint)
        first = int(match[1])
        seeds += _counted(first, int(match[2] or first), text, hint)
    return tuple(seeds)


def parse_memory(text: str) -> int:
    """Memory in MiB: `3000` and `3000M` are MiB, `3G` and `3GiB` are 3,072 MiB.

    Raises WrongUse for anything else and for less than 4 MiB, the least that Docker takes.
    """
    value = _amount("amount of memory", text, _MEMORY_UNITS, "--memory 3000 (MiB) or --memory 3GiB")
    mib = math.ceil(value)
    if mib < 4:  # noqa: PLR2004 # RegisterJobDefinition: at least 4 MiB for a container
        raise WrongUse(
            "memory",
            f"{text!r} is less than the 4 MiB a container needs",
            "--memory 3000 (MiB) or 3GiB",
        )
    return mib


def parse_duration(text: str) -> int:
    """Seconds: a bare number is hours, `90m`, `45s`, `1.5h`, `2d` carry their unit.

    Raises WrongUse for anything else.
    """
    return math.ceil(_amount("duration", text, _DURATION_UNITS, "12 (hours), 90m or 45s"))


def parse_variable(text: str) -> tuple[str, str]:
    """(name, value) of `NAME=VALUE`.

    Raises WrongUse.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise WrongUse("env", f"{text!r} is no NAME=VALUE", "--env OMP_NUM_THREADS=1")
    return name, value


def _counted(first: int, last: int, text: str, hint: str) -> tuple[int, ...]:
    if last < first:
        raise WrongUse("seeds", f"{text!r} asks for no seed at all", hint)
    if last - first >= MAX_SEEDS:
        raise WrongUse("seeds", f"{text!r} asks for more than {MAX_SEEDS:,} seeds", hint)
    return tuple(range(first, last + 1))


def _amount(what: str, text: str, units: dict[str, int], hint: str) -> float:
    """The amount in the smallest of the units."""
    match = _AMOUNT.fullmatch(text)
    if not match or match[2].lower() not in units:
        raise WrongUse(what.rpartition(" ")[2], f"{text!r} is no {what}", hint)
    value = float(match[1]) * units[match[2].lower()]
    if value > MAX_AMOUNT:
        raise WrongUse(
            what.rpartition(" ")[2], f"{text[:20]!r} is more than any {what} can be", hint
        )
    return value
