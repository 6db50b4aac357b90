"""Starts attempts, as processes or as containers. Speaks to the kernel, and to Docker or Podman."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping

from submit.errors import SubmitError
from submit.local import engine
from submit.local.crew import Crew
from submit.local.environment import job_variables, run_environment
from submit.local.records import Attempt, End, Start, Task, over
from submit.states import RunState


class Starter:
    """Knows what a run is started with."""

    def __init__(self, crew: Crew, *, has_gpus: bool) -> None:
        self._crew = crew
        self._has_gpus = has_gpus
        self._removals: list[subprocess.Popen[bytes]] = []
        self._environment: Mapping[str, str] = {}

    def start(self, task: Task, start: Start, environment: Mapping[str, str]) -> Attempt:
        """Starts it; the attempt as it is then, failed if it could not be."""
        attempt, seat, hold = start.attempt, start.seat, start.hold
        self._environment = environment
        variables = job_variables(task, attempt)
        if not task.image:
            gpus = ",".join(map(str, seat.gpus)) if self._has_gpus else None
            base = run_environment(environment, variables, gpus=gpus)
            return self._crew.start(task, attempt, seat, task.container["command"], base, hold)
        try:
            found = engine.find_engine(environment)
        except SubmitError as err:
            end = End(state=RunState.FAILED, reason=f"could not be started: {err.message}")
            return over(attempt, end, int(time.time() * 1000))
        command = engine.run_command(found, task, attempt, seat, variables)
        return self._crew.start(task, attempt, seat, command, environment, hold)

    def remove_container(self, task: Task, attempt: Attempt) -> None:
        """Removes what may be left of an attempt whose client did not see its end."""
        if not task.image:
            return
        try:
            found = engine.find_engine({**self._environment, **task.environment})
        except SubmitError:
            return  # then there is no container either
        name = engine.container_name(task, attempt)
        self._removals.append(
            subprocess.Popen(
                engine.remove_command(found, name),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def reap(self) -> None:
        """Lets go of removals that are done."""
        self._removals = [removal for removal in self._removals if removal.poll() is None]
