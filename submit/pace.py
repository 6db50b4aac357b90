"""How fast calls may follow one another: slower whenever the service asks for it, then faster
again. Knows the time from the clock that it is given.
"""

from __future__ import annotations

from submit.session import Clock

FASTEST = 40.0
"""Calls a second: SubmitJob takes 50 from an account, and others in it may be sending too."""
SLOWEST = 0.5
BURST = 5.0
"""Calls that may come at once after a rest."""
FASTER = 1.1
"""By how much the rate grows with each call that was taken."""


class Pace:
    """A bucket of tokens, one a call, that fills at `rate` a second. A throttled call halves the
    rate and empties the bucket, as TCP does with its window; each call that is taken adds a
    little.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens = BURST
        self._filled = clock.time()
        self.rate = FASTEST

    def wait(self) -> None:
        """Waits until a call may be made."""
        self._fill()
        if self._tokens < 1:
            self._clock.sleep((1 - self._tokens) / self.rate)
            self._fill()
        self._tokens = max(0.0, self._tokens - 1)

    def throttled(self) -> None:
        """The service wants fewer calls."""
        self.rate = max(SLOWEST, self.rate / 2)
        self._fill()
        self._tokens = 0.0

    def taken(self) -> None:
        """The service has taken a call."""
        self.rate = min(FASTEST, self.rate * FASTER)

    def _fill(self) -> None:
        now = self._clock.time()
        # A clock that was set back fills nothing.
        self._tokens = min(BURST, self._tokens + max(0.0, now - self._filled) * self.rate)
        self._filled = now
