"""Points in time as people type them: `10m` (ago), `2026-12-01T10:00`. Pure, but for the zone of
the machine.
"""

from __future__ import annotations

from datetime import datetime

from submit.errors import WrongUse
from submit.units import parse_duration


def parse_moment(text: str, now: float) -> float:
    """Seconds since 1970: so long before `now`, or that date and time, which is local unless it
    names its zone.

    Raises WrongUse for anything else.
    """
    try:
        return max(0.0, now - parse_duration(text))  # CloudWatch Logs knows nothing before 1970
    except WrongUse:
        pass
    try:
        # Python 3.10 reads no Z.
        return max(0.0, datetime.fromisoformat(text.strip().replace("Z", "+00:00")).timestamp())
    except (ValueError, OverflowError) as err:
        raise WrongUse(
            "moment",
            f"{text!r} is no point in time",
            "--since 10m, --since 2h or --since 2026-12-01T10:00",
        ) from err
