"""The addresses under /_sandbox/: status, calls, faults, conditions, the clock. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from sandbox.answers import Answer, as_json
from sandbox.client import CONTROL
from sandbox.clock import Clock
from sandbox.conditions import Conditions, Settings
from sandbox.faults import Fault, Faults


class Control:
    """`status` tells what runs; `interrupt` takes the instance under a job away,
    after a notice of so many seconds.
    """

    def __init__(
        self,
        faults: Faults,
        *,
        conditions: Conditions,
        clock: Clock,
        status: Callable[[], dict[str, Any]],
        interrupt: Callable[[str, float], str | None],
    ) -> None:
        self._faults = faults
        self._conditions = conditions
        self._clock = clock
        self._status = status
        self._interrupt = interrupt

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """Answers one request; 404 names an address that is not there."""
        verbs: dict[tuple[str, str], Callable[[bytes], Answer]] = {
            ("GET", "status"): lambda _: as_json(self._status()),
            ("GET", "calls"): lambda _: as_json(self._faults.calls()),
            ("GET", "faults"): lambda _: as_json(self._faults.log()),
            ("POST", "faults"): self._add_fault,
            ("DELETE", "faults"): self._clear_faults,
            ("POST", "interrupt"): self._interrupt_job,
            ("GET", "conditions"): lambda _: as_json(msgspec.to_builtins(self._conditions.now)),
            ("POST", "conditions"): self._change_conditions,
            ("DELETE", "conditions"): self._calm,
            ("POST", "clock"): self._change_clock,
        }
        verb = verbs.get((method, path.removeprefix(CONTROL)))
        if verb is None:
            return as_json({"message": f"the sandbox has no {method} {path}"}, 404)
        return verb(body)

    def _add_fault(self, body: bytes) -> Answer:
        try:
            self._faults.add(msgspec.json.decode(body, type=Fault))
        except ValueError as err:
            return as_json({"message": str(err)}, 400)
        return as_json({})

    def _clear_faults(self, _body: bytes) -> Answer:
        self._faults.clear()
        return as_json({})

    def _change_conditions(self, body: bytes) -> Answer:
        """Those that are named; the others stay."""
        try:
            named = msgspec.json.decode(body, type=dict[str, Any])
            whole = msgspec.to_builtins(self._conditions.now) | named
            self._conditions.change(msgspec.convert(whole, Settings))
        except ValueError as err:
            return as_json({"message": str(err)}, 400)
        return as_json(msgspec.to_builtins(self._conditions.now))

    def _calm(self, _body: bytes) -> Answer:
        self._conditions.change(Settings())
        return as_json({})

    def _change_clock(self, body: bytes) -> Answer:
        try:
            change = msgspec.json.decode(body, type=_ClockChange)
            now = self._clock.change(advance_s=change.advance, speed=change.speed)
        except ValueError as err:
            return as_json({"message": str(err)}, 400)
        if change.advance or change.speed is not None:
            facts = {"advance": f"{change.advance:g}", "speed": f"{self._clock.speed:g}"}
            self._faults.note("clock", **facts)
        return as_json({"now": now, "speed": self._clock.speed})

    def _interrupt_job(self, body: bytes) -> Answer:
        try:
            wanted = msgspec.json.decode(body, type=_Interruption)
        except ValueError as err:
            return as_json({"message": str(err)}, 400)
        instance = self._interrupt(wanted.jobId, wanted.notice)
        if instance is None:
            return as_json({"message": f"the job {wanted.jobId} is not running"}, 404)
        self._faults.note("interrupt", job=wanted.jobId, instance=instance)
        return as_json({"instance": instance})


class _ClockChange(msgspec.Struct, forbid_unknown_fields=True):
    advance: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    speed: float | None = None


class _Interruption(msgspec.Struct, forbid_unknown_fields=True):
    jobId: str  # noqa: N815 # as the API names it
    notice: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
