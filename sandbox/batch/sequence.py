"""Lets the containers of a task begin in their order, and ends them together. Threads, no I/O.

API Reference, TaskContainerProperties and TaskContainerDependency: a container begins once those it
depends on have started, or are over; once an essential one is over, all others are stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sandbox.batch.executor import Outcome
from sandbox.batch.tasks import START, SUCCESS


class Part(NamedTuple):
    """A container of an attempt."""

    container: dict[str, Any]
    memory_mib: int
    folder: str
    stop: threading.Event
    """Set once it is to end, or has."""
    reasons: list[str]
    """Why it alone is being stopped, if it is."""

    @property
    def name(self) -> str:
        return str(self.container["name"])


class Ending(NamedTuple):
    """How the containers ended, in their order, and which of them decides for the task."""

    outcomes: list[Outcome]
    decisive: int


RunOne = Callable[[Part, Callable[[], None]], Outcome]
"""Runs one to its end; calls the function once it has started."""


def run_all(parts: Sequence[Part], changed: threading.Condition, run_one: RunOne) -> Ending:
    """Runs the containers to their end. Whoever sets a part's `stop` notifies `changed`."""
    if len(parts) == 1:
        return Ending([run_one(parts[0], lambda: None)], 0)
    return _Sequence(parts, changed, run_one).run()


class _Sequence:
    def __init__(
        self, parts: Sequence[Part], changed: threading.Condition, run_one: RunOne
    ) -> None:
        self._parts = parts
        self._changed = changed
        self._run_one = run_one
        self._started: set[str] = set()
        self._outcomes: dict[str, Outcome] = {}
        self._decisive: str | None = None
        """The essential container that was over first."""

    def run(self) -> Ending:
        threads = [
            threading.Thread(target=self._run, args=(part,), daemon=True) for part in self._parts
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        names = [part.name for part in self._parts]
        assert self._decisive is not None  # a definition has an essential container
        return Ending([self._outcomes[name] for name in names], names.index(self._decisive))

    def _run(self, part: Part) -> None:
        try:
            outcome = self._wait(part) or self._run_one(part, lambda: self._note_start(part))
        except Exception as err:  # noqa: BLE001 # the others must not wait for it for ever
            outcome = Outcome(None, f"the sandbox failed: {err!r}")
        with self._changed:
            self._outcomes[part.name] = outcome
            if part.container["essential"]:
                self._decisive = self._decisive or part.name
                for other in self._parts:
                    other.stop.set()
            self._changed.notify_all()

    def _note_start(self, part: Part) -> None:
        with self._changed:
            self._started.add(part.name)
            self._changed.notify_all()

    def _wait(self, part: Part) -> Outcome | None:
        """Until it may begin: None then, else how it ended without having begun."""
        with self._changed:
            for item in part.container.get("dependsOn", []):
                name, condition = item["containerName"], item["condition"]
                timeout = self._timeout(name)
                met = self._changed.wait_for(
                    lambda: part.stop.is_set() or self._is_met(name, condition),  # noqa: B023 # called at once
                    timeout,
                )
                if part.stop.is_set():
                    return Outcome(None, None)
                if not met or not self._has_gone_well(name, condition):
                    return Outcome(
                        None, f"CannotStartContainerError: {name} did not reach {condition}"
                    )
        return None

    def _timeout(self, name: str) -> float | None:
        part = next(part for part in self._parts if part.name == name)
        timeout: float | None = part.container.get("startTimeout")
        return timeout

    def _is_met(self, name: str, condition: str) -> bool:
        return name in self._outcomes or (condition == START and name in self._started)

    def _has_gone_well(self, name: str, condition: str) -> bool:
        if condition == START:
            return name in self._started
        outcome = self._outcomes[name]
        return outcome.exit_code == 0 if condition == SUCCESS else outcome.exit_code is not None
