"""Token buckets at the rates that AWS documents, for whoever wants to be throttled. No I/O."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Rate(NamedTuple):
    """Calls a second, per account and Region; as many may come at once."""

    per_second: float
    source: str


RATES: Mapping[tuple[str, str], Rate] = {
    ("batch", "SubmitJob"): Rate(50, "Batch User Guide, Service quotas"),
    ("logs", "GetLogEvents"): Rate(25, "CloudWatch Logs User Guide, Quotas"),
    ("logs", "FilterLogEvents"): Rate(5, "CloudWatch Logs User Guide, Quotas"),
    ("logs", "DescribeLogStreams"): Rate(25, "CloudWatch Logs User Guide, Quotas"),
    ("logs", "DescribeLogGroups"): Rate(10, "CloudWatch Logs User Guide, Quotas"),
    ("logs", "CreateLogGroup"): Rate(10, "CloudWatch Logs User Guide, Quotas"),
    ("ssm", "GetParameter"): Rate(40, "Systems Manager, Service quotas"),
    ("ssm", "GetParameters"): Rate(40, "Systems Manager, Service quotas"),
    ("ssm", "PutParameter"): Rate(3, "Systems Manager, Service quotas"),
}


class Buckets:
    """`take` a call's token."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: dict[tuple[str, str, str], tuple[float, float]] = {}

    def take(self, region: str, service: str, operation: str) -> bool:
        """Whether the call may be made; True where no rate is documented."""
        rate = RATES.get((service, operation))
        if rate is None:
            return True
        key, now = (region, service, operation), self._clock()
        with self._lock:
            level, at = self._levels.get(key, (rate.per_second, now))
            level = min(rate.per_second, level + (now - at) * rate.per_second)
            allowed = level >= 1
            self._levels[key] = (level - allowed, now)
        return allowed
