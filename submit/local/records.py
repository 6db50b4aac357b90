"""What the own machine's store keeps: tasks, and the attempts at their runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from submit.states import OVER, RunState


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has of the machine while it runs: cores and GPUs by number, memory in MiB."""

    cores: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    memory_mib: int = 0


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A job on the own machine, by the very requests that AWS Batch would get.

    `following` is the first of its runs that nobody has claimed yet: they go in order.
    `environment` is the part of the submitting shell's that may lie in a file. `image` is the
    image's id, empty for runs that are processes. `note` says why it waits.
    """

    seq: int
    name: str
    definition: dict[str, Any]
    request: dict[str, Any]
    size: int
    created_ms: int
    image: str = ""
    environment: dict[str, str] = {}
    following: int = 0
    cancelled_ms: int | None = None
    over: bool = False
    note: str | None = None

    @property
    def container(self) -> dict[str, Any]:
        """The definition's container properties."""
        container: dict[str, Any] = self.definition["containerProperties"]
        return container

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of variables that its runs need and that lie in no file."""
        return tuple(secret["name"] for secret in self.container.get("secrets", ()))

    @property
    def wish(self) -> Wish:
        """What each of its runs asks for."""
        asked = {one["type"]: int(one["value"]) for one in self.container["resourceRequirements"]}
        return Wish(cores=asked["VCPU"], gpus=asked.get("GPU", 0), memory_mib=asked["MEMORY"])

    @property
    def timeout_s(self) -> int | None:
        """Seconds that an attempt may take."""
        timeout: Mapping[str, int] = self.definition.get("timeout", {})
        return timeout.get("attemptDurationSeconds")

    @property
    def attempts(self) -> int:
        """How often a run may be tried, when it is the machine that was lost."""
        return int(self.definition["retryStrategy"]["attempts"])

    @property
    def workers(self) -> int | None:
        """How many of its runs may run at once; None: as many as there is room for."""
        workers: int | None = self.request.get("workers")
        return workers


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What one run asks for."""

    cores: int
    gpus: int
    memory_mib: int


CLAIMED = "claimed"
"""A run is about to be started: it may have been already, its attempt file tells."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at a run. `state` is CLAIMED or a RunState's; `boot` the machine's start
    in which it was claimed.
    """

    seq: int
    child: int
    number: int
    state: str
    boot: str = ""
    started_ms: int | None = None
    stopped_ms: int | None = None
    code: int | None = None
    reason: str | None = None

    @property
    def run_state(self) -> RunState:
        """What it means for the run."""
        return RunState.WAITING if self.state == CLAIMED else RunState(self.state)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.run_state in OVER


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that starts now. `hold` has its seat on this machine (submit.local.seats); None
    where it is not shared.
    """

    attempt: Attempt
    seat: Seat
    hold: int | None


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended."""

    state: RunState
    code: int | None = None
    reason: str | None = None


def over(attempt: Attempt, end: End, now_ms: int) -> Attempt:
    """The attempt as it is when it has ended so."""
    return msgspec.structs.replace(
        attempt, state=end.state.value, stopped_ms=now_ms, code=end.code, reason=end.reason
    )


CANCELLED = End(state=RunState.CANCELLED, reason="cancelled by runfleet")
TIMED_OUT = End(state=RunState.FAILED, reason="Job attempt duration exceeded timeout")
OUT_OF_MEMORY = End(
    state=RunState.FAILED, code=137, reason="OutOfMemoryError: the run took more memory than it has"
)


_MEANINGS = {
    126: ": the program can't be executed",
    127: ": the program was not found",
    137: ": it was killed, perhaps because it took more memory than it has",
}
"""Of exit statuses that no program of the user's gave."""


def ended_with(code: int, forced: End | None) -> End:
    """How an attempt ended whose command ended with that status, after `forced` was done to it."""
    if forced is not None:
        return msgspec.structs.replace(forced, code=code)
    if code == 0:
        return End(state=RunState.DONE, code=0)
    reason = f"the command ended with {code}{_MEANINGS.get(code, '')}"
    return End(state=RunState.FAILED, code=code, reason=reason)
