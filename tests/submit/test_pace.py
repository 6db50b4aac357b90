"""submit.pace: calls follow one another as fast as the service bears."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from submit.pace import BURST, FASTEST, SLOWEST, Pace

from .fake import Clock


@given(st.lists(st.sampled_from(["taken", "throttled", "rest"]), max_size=60))
def test_never_faster_than_the_account_may(events: list[str]) -> None:
    """In no second more calls than the rate and a burst."""
    clock = Clock()
    pace = Pace(clock)
    calls: list[float] = []
    for event in events:
        if event == "rest":
            clock.sleep(10)
            continue
        pace.wait()
        calls.append(clock.now)
        getattr(pace, event)()
        assert SLOWEST <= pace.rate <= FASTEST
    for begin in calls:
        within = sum(begin <= call < begin + 1 for call in calls)
        assert within <= FASTEST + BURST + 1


def test_it_slows_down_when_asked_to_and_recovers() -> None:
    """A service that bears ten calls a second is soon called not much faster than that."""
    clock = Clock()
    pace = Pace(clock)
    taken: list[float] = []
    for _ in range(400):
        pace.wait()
        if sum(clock.now - 1 < call for call in taken) < 10:
            taken.append(clock.now)
            pace.taken()
        else:
            pace.throttled()
    assert 5 < len(taken) / (clock.now - taken[0]) <= 10.5
    for _ in range(60):
        pace.wait()
        pace.taken()
    assert pace.rate == FASTEST
