"""The supervisor's books: which runs wait, are claimed, go on; who gets which environment.

Between the store, which has the last word, and the crew. A run is started only when its claim is
on the disk; a few are claimed ahead of time, so that none waits for the disk when its turn comes.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from submit.local.attempts import Files, begun_ms, end_group, is_alive, judge, key, read_mark
from submit.local.crew import Crew
from submit.local.environment import merge
from submit.local.machine import Machine
from submit.local.placement import Asking, is_possible
from submit.local.records import CANCELLED, CLAIMED, Attempt, Start, Task, over
from submit.local.seating import Seating
from submit.local.seats import Seats
from submit.local.starting import Starter
from submit.local.store import Store
from submit.local.wire import Environment
from submit.states import RunState

GATHER_S = 0.005
"""How long more ends are waited for before some are written down: runs alike end together, and
while the disk is waited for nobody is started. Their attempt files have them all the while.
"""


class Work(msgspec.Struct, kw_only=True):
    """A task that is not over. `claimed` are runs that start next, their claims on the disk;
    those behind them are nobody's yet, from `following` on, but for those that were `stopped`. `note` says why nothing starts.
    """

    task: Task
    following: int
    claimed: deque[Attempt]
    stopped: set[int] = set()
    note: str | None = None

    @property
    def unclaimed(self) -> int:
        """How many runs are nobody's."""
        if self.task.cancelled_ms is not None:
            return 0
        left = range(self.following, self.task.size)
        return len(left) - sum(child in left for child in self.stopped)

    def claim(self, boot: str) -> Attempt:
        """A claim to the next run that is nobody's."""
        while self.following in self.stopped:
            self.following += 1
        self.following += 1
        return _claim(self.task.seq, self.following - 1, 1, boot)

    @property
    def waiting(self) -> int:
        """How many runs have not been started."""
        return len(self.claimed) + self.unclaimed


class Desk:
    """The books of all tasks that are not over."""

    def __init__(
        self,
        store: Store,
        crew: Crew,
        files: Files,
        machine: Machine,
        boot: str,
        seats: Seats,
    ) -> None:
        self._store = store
        self._crew = crew
        self._files = files
        self._machine = machine.room
        self._boot = boot
        self._starter = Starter(crew, has_gpus=bool(machine.gpus))
        self._works: dict[int, Work] = {}
        self._environments: dict[str | None, dict[str, str]] = {}
        self._changed: list[Attempt] = []
        self._claims: list[Attempt] = []
        self._cancel: list[str] = []
        self._stale = True
        self._gathers = False
        self._seating = Seating(seats)

    @property
    def pause_s(self) -> float | None:
        """When the next turn has something to do that happens by itself: seconds, or None."""
        if self._gathers:
            return GATHER_S
        return 0.0 if self.is_busy else None

    @property
    def waits_for_others(self) -> bool:
        """Whether runs wait that could start if others' runs on this machine were over."""
        return self._seating.waits

    @property
    def is_busy(self) -> bool:
        """Whether another turn has something to do at once."""
        return self._stale or bool(self._changed or self._cancel)

    @property
    def is_idle(self) -> bool:
        """Whether every task that is known is over."""
        return not self._works and not self.is_busy

    def look(self) -> None:
        """There may be something new in the store."""
        self._stale = True

    def cancel(self, tasks: Sequence[str]) -> None:
        """Nobody wants these tasks any more."""
        self._cancel += tasks

    def keep(self, environment: Environment) -> None:
        """Keeps an environment in memory, and nowhere else."""
        self._environments[environment.task] = {
            os.fsdecode(name): os.fsdecode(value) for name, value in environment.variables.items()
        }

    def are_over(self, tasks: Sequence[str]) -> bool:
        """Whether these are; not if that has not been looked up yet."""
        going = {work.task.name for work in self._works.values()}
        return not self.is_busy and going.isdisjoint(tasks)

    def recover(self) -> None:
        """Takes over from an earlier supervisor: what goes on, what has ended, what was lost."""
        for task in self._store.going():
            self._files.make(task.name)
            self._works[task.seq] = Work(task=task, following=task.following, claimed=deque())
        for attempt in self._store.unsettled():
            found = self._recover(self._works[attempt.seq].task, attempt)
            if found.state == CLAIMED:
                self._claims.append(found)
            else:
                self._changed.append(found)
        self._write()

    def turn(self) -> None:
        """All that there is to do now: new tasks, limits, ends, starts. One sync of the disk, and
        none before the start of runs whose turn had been seen to come.
        """
        if self._cancel:
            self._store.cancel(self._cancel, _now_ms())
            self._cancel, self._stale = [], True
        if self._stale:
            self._stale = False
            self._load()
        self._crew.press()
        ended = list(self._crew.take_ended())
        for going, attempt in ended:
            self._settle(going.task, attempt)
        known, fresh = self._choose()
        self._changed += [self._start(start) for start in known]
        self._gathers = bool(ended) and not fresh
        if self._gathers:
            return
        self._changed += [start.attempt for start in fresh]
        self._claim_ahead(len(self._crew) + len(fresh))
        self._write()
        self._changed += [self._start(start) for start in fresh]
        self._starter.reap()

    def release(self) -> None:
        """Gives back what was claimed and has not begun, on the way out."""
        for going, attempt in self._crew.take_ended():
            self._settle(going.task, attempt)
        self._write()
        with self._store.writing():
            for work in self._works.values():
                mine = [claim for claim in work.claimed if claim.number == 1]
                self._store.drop(mine)
                first = min((claim.child for claim in mine), default=work.following)
                self._store.update(work.task.seq, following=first)

    def _recover(self, task: Task, attempt: Attempt) -> Attempt:
        mark = read_mark(self._files.mark(task.name, key(attempt)))
        here = attempt.boot == self._boot
        alive = here and mark is not None and is_alive(mark.pid, mark.began)
        if mark is not None and attempt.started_ms is None:  # nobody has lived to write it down
            started_ms = begun_ms(mark) if here else mark.written_ms
            attempt = msgspec.structs.replace(attempt, started_ms=started_ms)
        forced = None if task.cancelled_ms is None else CANCELLED
        end = judge(attempt, mark, alive=alive, boot=self._boot, forced=forced)
        if end is not None:
            if mark and here:
                end_group(mark, signal.SIGKILL)
            ended = over(
                attempt, end, mark.written_ms if mark and end.code is not None else _now_ms()
            )
            self._after_end(task, ended)
            return ended
        if mark is not None:
            return self._crew.adopt(task, attempt, mark)
        return msgspec.structs.replace(attempt, state=CLAIMED, started_ms=None)

    def _load(self) -> None:
        """What is new in the store: tasks, and cancellations of known ones."""
        for task in self._store.going():
            work = self._works.get(task.seq)
            if work is None:
                self._files.make(task.name)
                work = Work(task=task, following=task.following, claimed=deque())
                self._works[task.seq] = work
            if task.cancelled_ms is not None:
                work.task = msgspec.structs.replace(work.task, cancelled_ms=task.cancelled_ms)
                self._changed += [over(claim, CANCELLED, _now_ms()) for claim in work.claimed]
                work.claimed.clear()
                self._crew.stop(task.seq, CANCELLED)
            elif stops := self._store.stops(task.seq) - work.stopped:
                self._stop(work, stops)

    def _stop(self, work: Work, children: set[int]) -> None:
        """Some runs of a task are not wanted any more: those that go on end, others never start."""
        work.stopped = work.stopped | children
        self._crew.stop(work.task.seq, CANCELLED, children)
        for claim in [claim for claim in work.claimed if claim.child in children]:
            work.claimed.remove(claim)
            self._changed.append(over(claim, CANCELLED, _now_ms()))
        self._changed += [
            over(_claim(work.task.seq, child, 1, self._boot), CANCELLED, _now_ms())
            for child in children
            if work.following <= child < work.task.size
        ]

    def _settle(self, task: Task, attempt: Attempt) -> None:
        self._changed.append(attempt)
        self._after_end(task, attempt)

    def _after_end(self, task: Task, attempt: Attempt) -> None:
        """A run whose machine was lost is tried again if that was asked for."""
        if attempt.code is None:
            self._starter.remove_container(task, attempt)
        work = self._works[task.seq]
        wanted = work.task.cancelled_ms is None and attempt.child not in work.stopped
        if attempt.state == RunState.LOST.value and wanted and attempt.number < task.attempts:
            self._claims.append(_claim(task.seq, attempt.child, attempt.number + 1, self._boot))

    def _choose(self) -> tuple[list[Start], list[Start]]:
        """The runs that start now, with their seats: those whose claims are known to the disk,
        and those whose claims must be written first.
        """
        known: list[Start] = []
        fresh: list[Start] = []
        asking = [one for work in self._works.values() if (one := self._asking(work)).waiting]
        for seq, seat, hold in self._seating.sit(self._crew.room(self._machine), asking):
            work = self._works[seq]
            if work.claimed:
                known.append(Start(attempt=work.claimed.popleft(), seat=seat, hold=hold))
            else:
                fresh.append(Start(attempt=work.claim(self._boot), seat=seat, hold=hold))
        begun = {start.attempt.seq for start in (*known, *fresh)}
        for one in asking if self._seating.waits else ():
            if one.seq not in begun and not self._crew.of(one.seq):
                self._works[one.seq].note = "waits for cores or GPUs that others' runs have here"
        return known, fresh

    def _asking(self, work: Work) -> Asking:
        task = work.task
        waiting = work.waiting
        if task.workers is not None:
            waiting = min(waiting, task.workers - self._crew.of(task.seq))
        work.note = self._obstacle(work) if waiting else None
        return Asking(seq=task.seq, wish=task.wish, waiting=0 if work.note else max(0, waiting))

    def _obstacle(self, work: Work) -> str | None:
        """Why none of its runs can start, however much room there is."""
        environment = self._environment(work.task)
        missing = [name for name in work.task.secrets if name not in (environment or {})]
        if missing:
            return f"waits for {' and '.join(missing)}: export it, then submit status"
        if environment is None:
            return "waits for a shell's environment: submit status"
        if not is_possible(self._machine, work.task.wish):
            return "asks for more than this machine has by now: submit queues"
        return None

    def _environment(self, task: Task) -> dict[str, str] | None:
        own = self._environments.get(task.name)
        other = self._environments.get(None)
        if own is not None or other is None:
            return own
        return merge(task.environment, other)

    def _claim_ahead(self, many: int) -> None:
        """Claims the next runs, as many as there are that could end before the next turn."""
        for work in self._works.values():
            if work.note is None:
                ahead = min(many - len(work.claimed), work.unclaimed)
                self._claims += [work.claim(self._boot) for _ in range(ahead)]
            many -= len(work.claimed)
            if many <= 0:
                return

    def _start(self, start: Start) -> Attempt:
        task = self._works[start.attempt.seq].task
        environment = self._environment(task)
        assert environment is not None, "without one nothing is chosen"
        try:
            return self._starter.start(task, start, environment)
        finally:
            if start.hold is not None:
                os.close(start.hold)  # the attempt has its own

    def _write(self) -> None:
        """Writes down what has changed, all at once; what was claimed may start from then on."""
        ended = list(self._over())
        updates = {seq: values for seq, work in self._works.items() if (values := _update(work))}
        if not (self._changed or self._claims or ended or updates):
            return
        with self._store.writing():
            self._store.put([*self._changed, *self._claims])
            for seq, values in updates.items():
                self._store.update(seq, **values)
            for work in ended:
                self._store.update(work.task.seq, over=1)
        for seq, values in updates.items():
            work = self._works[seq]
            work.task = msgspec.structs.replace(work.task, **values)
        for claim in self._claims:
            claimed = self._works[claim.seq].claimed
            # What is tried again goes first; it may find room without anything else happening.
            (claimed.appendleft if claim.number > 1 else claimed.append)(claim)
            self._stale = self._stale or claim.number > 1
        self._changed, self._claims = [], []
        for work in ended:
            self._files.drop_marks(work.task.name)
            self._environments.pop(work.task.name, None)
            del self._works[work.task.seq]

    def _over(self) -> Iterator[Work]:
        claimed = {claim.seq for claim in self._claims}
        fresh = {attempt.seq for attempt in self._changed if attempt.state == CLAIMED}
        for seq, work in self._works.items():
            if not (work.waiting or self._crew.of(seq) or seq in claimed or seq in fresh):
                yield work


def _update(work: Work) -> dict[str, object]:
    """Fields of the task that are no longer as they stand in the store."""
    now = {"following": work.following, "note": work.note}
    return {name: value for name, value in now.items() if value != getattr(work.task, name)}


def _claim(seq: int, child: int, number: int, boot: str) -> Attempt:
    return Attempt(seq=seq, child=child, number=number, state=CLAIMED, boot=boot)


def _now_ms() -> int:
    return int(time.time() * 1000)
