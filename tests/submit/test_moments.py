"""submit.moments: points in time as people type them."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from submit.errors import WrongUse
from submit.moments import parse_moment

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("10m", NOW - 600),
        ("2h", NOW - 7200),
        ("30 s", NOW - 30),
        ("2026-12-01T10:00Z", datetime(2026, 12, 1, 10, tzinfo=timezone.utc).timestamp()),
        ("2026-12-01T10:00+02:00", datetime(2026, 12, 1, 8, tzinfo=timezone.utc).timestamp()),
        ("2026-12-01 10:00", datetime(2026, 12, 1, 10).astimezone().timestamp()),
    ],
)
def test_a_moment(text: str, moment: float) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "10x", "2026-13-01", "-5m"])
def test_no_moment(text: str) -> None:
    with pytest.raises(WrongUse, match="is no point in time"):
        parse_moment(text, NOW)
