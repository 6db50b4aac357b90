"""The sandbox's own time: the machine's, made faster, or moved on by hand."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable


class Clock:
    """Seconds since 1970, as jobs' limits, machines and retention see them. Never goes back."""

    def __init__(self, real: Callable[[], float] = time.time, speed: float = 1.0) -> None:
        self._real = real
        self._lock = threading.Lock()
        self._from = real()
        self._at = self._from
        self.speed = speed

    def __call__(self) -> float:
        with self._lock:
            return self._now()

    def change(self, *, advance_s: float = 0.0, speed: float | None = None) -> float:
        """Moves it on, or makes it go faster from now on; the time it has then.

        Raises ValueError for a step back, or a clock that would stand.
        """
        speed = self.speed if speed is None else speed
        if not 0 <= advance_s <= _CENTURY_S:
            raise ValueError(f"advance is {advance_s} seconds: time goes on, not back")
        if not 0 < speed <= _FASTEST or not math.isfinite(speed):
            raise ValueError(f"speed is {speed}: it must be above 0, and {_FASTEST} at most")
        with self._lock:
            self._at, self._from = self._now() + advance_s, self._real()
            self.speed = speed
            return self._at

    def _now(self) -> float:
        return self._at + max(0.0, self._real() - self._from) * self.speed


_FASTEST = 10_000.0
_CENTURY_S = 100 * 365 * 86_400.0
