"""The addresses under /_sandbox/: status, calls, faults. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from sandbox.answers import Answer, as_json
from sandbox.client import CONTROL
from sandbox.faults import Fault, Faults


class Control:
    """`status` tells what runs; `interrupt` takes the instance under a job away."""

    def __init__(
        self,
        faults: Faults,
        *,
        status: Callable[[], dict[str, Any]],
        interrupt: Callable[[str], str | None],
    ) -> None:
        self._faults = faults
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

    def _interrupt_job(self, body: bytes) -> Answer:
        try:
            job_id = str(json.loads(body)["jobId"])
        except (ValueError, KeyError, TypeError):
            return as_json({"message": 'send {"jobId": "…"}'}, 400)
        instance = self._interrupt(job_id)
        if instance is None:
            return as_json({"message": f"the job {job_id} is not running"}, 404)
        self._faults.note("interrupt", job=job_id, instance=instance)
        return as_json({"instance": instance})
