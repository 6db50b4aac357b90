"""Faults on demand: what the next calls of an operation meet. No I/O.

Each fault that struck is in a log, so that a test can tell a handled fault from one that
never came.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import msgspec

KINDS = {
    "throttle": "the call is refused with a throttling error; nothing is done",
    "expired": "the credentials have expired; nothing is done",
    "error": "the call is answered with status 500; nothing is done",
    "reset": "the connection is closed before anything is done",
    "lost": "the call is done, and the connection closed without an answer",
    "latency": "the call is answered after `seconds`",
}


class Fault(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Strikes `count` calls that match, after letting `after` of them through.

    `service` and `operation` match by name, `*` matches all.
    """

    kind: str
    service: str = "*"
    operation: str = "*"
    count: int = 1
    after: int = 0
    seconds: float = 0.0


class Faults:
    """The faults that wait, those that struck, and how often each operation was called."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []
        self._struck: list[dict[str, Any]] = []
        self._calls: Counter[str] = Counter()

    def add(self, fault: Fault) -> None:
        """Raises ValueError for a kind that is not known or a count that makes no sense."""
        if fault.kind not in KINDS:
            raise ValueError(f"no fault {fault.kind!r}: {', '.join(KINDS)}")
        if fault.count < 1 or fault.after < 0 or fault.seconds < 0:
            raise ValueError("count must be 1 or more, after and seconds 0 or more")
        with self._lock:
            self._waiting.append(fault)

    def clear(self) -> None:
        """Forgets the faults that wait, not those that struck."""
        with self._lock:
            self._waiting.clear()

    def meet(self, service: str, operation: str) -> Fault | None:
        """Counts a call; the fault that strikes it, if one does."""
        with self._lock:
            self._calls[f"{service}.{operation}"] += 1
            for fault in self._waiting:
                if fault.service not in {"*", service} or fault.operation not in {"*", operation}:
                    continue
                if fault.after:
                    fault.after -= 1
                    continue
                fault.count -= 1
                if not fault.count:
                    self._waiting.remove(fault)
                self._struck.append(
                    {"kind": fault.kind, "service": service, "operation": operation}
                )
                return fault
            return None

    def calls(self) -> dict[str, int]:
        """Calls so far, by `service.Operation`."""
        with self._lock:
            return dict(self._calls)

    def log(self) -> dict[str, list[dict[str, Any]]]:
        """The faults that struck, in order, and those that wait."""
        with self._lock:
            waiting = [msgspec.to_builtins(fault) for fault in self._waiting]
            return {"struck": list(self._struck), "waiting": waiting}

    def note(self, kind: str, **facts: str) -> None:
        """Puts a fault into the log that did not strike a call (a lost instance)."""
        with self._lock:
            self._struck.append({"kind": kind, **facts})
