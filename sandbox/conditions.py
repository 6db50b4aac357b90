"""What lasts until it is changed: EC2's capacity, its interruptions, slow views, rates of calls.

Deterministic under a seed: the Nth Spot instance lives as long in every run. What they bring about
is in the log of faults.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The conditions, as they can be set. All calm by default."""

    capacity: dict[str, int] = {}
    """How many instances of a type EC2 has; a type that is not named has no limit."""
    interruptions_per_hour: float = 0.0
    """How often EC2 takes a Spot instance back that is launched from now on."""
    seed: int = 0
    notice_s: float = 120.0
    """From the notice at the metadata endpoint to the end of the instance."""
    lag_s: float = 0.0
    """How long DescribeJobs and ListJobs do not know a job yet."""
    rates: bool = False
    """Whether calls above AWS's rates are throttled."""
    no_image: str = ""
    """Images that can't be pulled: a name, or the beginning of names with `*` after it."""


class Conditions:
    """The conditions now. `note` tells the log what they did."""

    def __init__(self, note: Callable[..., None] = lambda *_, **__: None) -> None:
        self.now = Settings()
        self._note = note
        self._lock = threading.Lock()
        self._spot_launches = 0
        self._told: set[tuple[str, str]] = set()

    def change(self, settings: Settings) -> None:
        """Raises ValueError for what makes no sense."""
        numbers = {
            "interruptions_per_hour": settings.interruptions_per_hour,
            "notice_s": settings.notice_s,
            "lag_s": settings.lag_s,
            **{f"capacity of {name}": count for name, count in settings.capacity.items()},
        }
        for name, number in numbers.items():
            if number < 0 or not math.isfinite(number):
                raise ValueError(f"{name} is {number}: it must be 0 or more")
        with self._lock:
            if settings.seed != self.now.seed:
                self._spot_launches = 0
            self._told.clear()
            self.now = settings

    def grants(self, name: str, launched: int) -> bool:
        """Whether EC2 has one more instance of the type."""
        return launched < self.depth(name)

    def depth(self, name: str) -> float:
        """How many instances of the type EC2 has."""
        return self.now.capacity.get(name, math.inf)

    def lifetime_s(self) -> float | None:
        """How long the next Spot instance lives; None when nobody takes it back."""
        if not self.now.interruptions_per_hour:
            return None
        with self._lock:
            self._spot_launches += 1
            chance = random.Random(f"{self.now.seed}/{self._spot_launches}")  # noqa: S311 # repeatable
        return chance.expovariate(self.now.interruptions_per_hour / 3600)

    def lacks_image(self, image: str) -> bool:
        """Whether the image can't be pulled."""
        pattern = self.now.no_image
        if pattern.endswith("*"):
            return image.startswith(pattern[:-1])
        return bool(pattern) and image == pattern

    def note(self, kind: str, **facts: str) -> None:
        """Into the log of faults; a lack of capacity once until the conditions change."""
        key = (kind, str(sorted(facts.items())))
        if kind == "capacity" and key in self._told:
            return
        self._told.add(key)
        self._note(kind, **facts)
