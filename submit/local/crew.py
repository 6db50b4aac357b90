"""The attempts that run now: started or taken over, watched, and ended when they must be.

Speaks to the kernel; what it learns, the supervisor writes down.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from submit.local import attempts
from submit.local.attempts import Files, Mark
from submit.local.memory import exceeds
from submit.local.placement import without
from submit.local.records import OUT_OF_MEMORY, TIMED_OUT, Attempt, End, Seat, Task, over
from submit.states import RunState

GRACE_S = 30.0
"""From SIGTERM to SIGKILL, as on AWS (Batch User Guide, "Job timeouts")."""
WATCH_S = 2.0
"""How often the memory of runs is looked at."""
LOOK_S = 0.5
"""How often is looked for what the kernel does not tell: others' ends, and before Linux 5.3 all."""


class Going(msgspec.Struct, kw_only=True):
    """An attempt that runs. `process` is None for one that another supervisor has started."""

    task: Task
    attempt: Attempt
    mark: Mark
    process: subprocess.Popen[bytes] | None = None
    fd: int | None = None
    ends_at: float | None = None
    kill_at: float | None = None
    forced: End | None = None


class Crew:
    """All attempts that run on this machine."""

    def __init__(self, files: Files, selector: selectors.BaseSelector, boot: str) -> None:
        self._files = files
        self._selector = selector
        self._boot = boot
        self._going: dict[tuple[int, int], Going] = {}
        self._stirred: list[Going] = []
        self._watch_at = 0.0

    def __len__(self) -> int:
        return len(self._going)

    def of(self, seq: int) -> int:
        """How many runs of that task run."""
        return sum(1 for owner, _ in self._going if owner == seq)

    def room(self, machine: Seat) -> Seat:
        """What is left of the machine."""
        for going in self._going.values():
            machine = without(machine, going.mark.seat)
        return machine

    def start(
        self,
        task: Task,
        attempt: Attempt,
        seat: Seat,
        command: Sequence[str],
        environment: Mapping[str, str],
        hold: int | None,
    ) -> Attempt:
        """Starts an attempt that was claimed; the attempt as it is now, failed perhaps."""
        key = attempts.key(attempt)
        mark, log = self._files.mark(task.name, key), self._files.log(task.name, key)
        now = int(time.time() * 1000)
        # Podman leaves a file where it was started when a container takes too much memory.
        folder = task.container.get("workingDirectory") or str(mark.parent)
        try:
            process = attempts.start(command, environment, folder, mark, log, seat, hold)
        except (OSError, ValueError) as err:
            why = f"could not be started: {err}"
            failed = End(state=RunState.FAILED, reason=why)
            return over(attempt, failed, now)
        attempt = msgspec.structs.replace(attempt, state=RunState.RUNNING.value, started_ms=now)
        begun = Mark(pid=process.pid, began="", seat=seat)
        self._add(Going(task=task, attempt=attempt, mark=begun, process=process), 0.0)
        return attempt

    def adopt(self, task: Task, attempt: Attempt, mark: Mark) -> Attempt:
        """Takes over an attempt that goes on."""
        attempt = msgspec.structs.replace(attempt, state=RunState.RUNNING.value)
        age_s = time.time() - (attempt.started_ms or 0) / 1000
        self._add(Going(task=task, attempt=attempt, mark=mark), age_s)
        return attempt

    def stop(self, seq: int, why: End, children: Collection[int] | None = None) -> None:
        """Ends a task's runs, or those: they are asked to, and after a while made to."""
        for (owner, child), going in self._going.items():
            if owner == seq and (children is None or child in children):
                self._ask(going, why)

    def press(self) -> None:
        """Ends what has had its time or takes too much memory."""
        now = time.monotonic()
        if self._going and now >= self._watch_at:
            self._watch_at = now + WATCH_S
            for going in self._going.values():
                if not going.task.image and exceeds(going.mark.pid, going.mark.seat.memory_mib):
                    self._ask(going, OUT_OF_MEMORY)
                    going.kill_at = now
        for going in self._going.values():
            if going.ends_at is not None and now >= going.ends_at:
                self._ask(going, TIMED_OUT)
            if going.kill_at is not None and now >= going.kill_at:
                self._signal(going, signal.SIGKILL)
                going.kill_at = now + LOOK_S

    def pause(self) -> float | None:
        """Seconds until `press` has something to do; None when only an end can be next."""
        if not self._going:
            return None
        times = [self._watch_at]
        for going in self._going.values():
            times += [at for at in (going.ends_at, going.kill_at) if at is not None]
            if going.fd is None:
                times.append(time.monotonic() + LOOK_S)
        return max(0.0, min(times) - time.monotonic())

    def take_ended(self) -> Iterator[tuple[Going, Attempt]]:
        """Those that have ended, and the attempt as it ended; they are no longer of the crew."""
        stirred, self._stirred = self._stirred, []
        stirred += [going for going in self._going.values() if going.fd is None]
        now = int(time.time() * 1000)
        for going in stirred:
            end = self._end(going)
            if end is not None:
                self._drop(going)
                yield going, over(going.attempt, end, now)

    def _add(self, going: Going, age_s: float) -> None:
        timeout_s = going.task.timeout_s
        if timeout_s is not None:
            going.ends_at = time.monotonic() + timeout_s - age_s
        with contextlib.suppress(OSError, AttributeError):
            # A child that has ended already, and not been waited for, can be opened, too.
            going.fd = os.pidfd_open(going.mark.pid)
            self._selector.register(going.fd, selectors.EVENT_READ, self._stirs(going))
        if going.fd is None and going.process is None:
            self._stirred.append(going)
        self._going[going.attempt.seq, going.attempt.child] = going

    def _stirs(self, going: Going) -> Callable[[], None]:
        return lambda: self._stirred.append(going)

    def _drop(self, going: Going) -> None:
        del self._going[going.attempt.seq, going.attempt.child]
        self._release(going)

    def _release(self, going: Going) -> None:
        if going.fd is not None:
            self._selector.unregister(going.fd)
            os.close(going.fd)
            going.fd = None

    def _end(self, going: Going) -> End | None:
        """How it ended, if it has. What is left of its processes is ended with it."""
        mark = self._mark(going)
        code = going.process.poll() if going.process else None
        if going.process and code is None:
            return None
        if going.process and mark and mark.pid != going.process.pid:
            # Another process was quicker to begin this very attempt: that one counts.
            return self._take_over(going, mark)
        alive = going.process is None and attempts.is_alive(going.mark.pid, going.mark.began)
        if mark is None and not alive:
            return going.forced or self._unbegun(going)
        if mark is not None and mark.code is None and code is not None and code >= 0:
            mark = msgspec.structs.replace(mark, code=code)  # the disk was full
        end = attempts.judge(going.attempt, mark, alive=alive, boot=self._boot, forced=going.forced)
        if end is not None:
            attempts.end_group(mark or going.mark, signal.SIGKILL)
        return end

    def _unbegun(self, going: Going) -> End:
        if self._files.mark(going.task.name, attempts.key(going.attempt)).exists():
            # Its writer died in the middle of the first line.
            return End(state=RunState.LOST, reason="its processes were killed from outside")
        return End(state=RunState.FAILED, reason="could not be started: see its log, and df -h")

    def _take_over(self, going: Going, mark: Mark) -> End | None:
        self._release(going)
        self._going.pop((going.attempt.seq, going.attempt.child))
        going.process, going.mark = None, mark
        self._add(going, time.time() - (going.attempt.started_ms or 0) / 1000)
        return self._end(going)

    def _mark(self, going: Going) -> Mark | None:
        return attempts.read_mark(self._files.mark(going.task.name, attempts.key(going.attempt)))

    def _ask(self, going: Going, why: End) -> None:
        if going.forced is None:
            going.forced, going.ends_at = why, None
            going.kill_at = time.monotonic() + GRACE_S
            self._signal(going, signal.SIGTERM)

    def _signal(self, going: Going, number: int) -> None:
        if going.process:  # our child: its id is its own until it is waited for
            with contextlib.suppress(ProcessLookupError):
                os.killpg(going.process.pid, number)
        else:
            attempts.end_group(going.mark, number)
