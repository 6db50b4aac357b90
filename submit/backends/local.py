"""Jobs on the own machine. Speaks to its store, and to its supervisor (submit.local).

A job's id is its name: sent twice, it stands there once.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from submit.backends import Found, JobStatus, LogLine, RunStatus, Standing
from submit.definitions import Definition
from submit.errors import ServiceFailed
from submit.fleet import LOCAL
from submit.local import engine, logs
from submit.local.attempts import Files, key
from submit.local.environment import kept_part
from submit.local.machine import machine_name
from submit.local.planning import with_key
from submit.local.records import CANCELLED, CLAIMED, Attempt, Task
from submit.local.store import Store
from submit.local.wire import Attend, Line, Look, environment
from submit.plan import Job
from submit.runside import PLAN_PREFIX
from submit.states import RunState
from submit.waiting import QueueFacts


class LocalBackend:
    """The own machine's queue, in `folder`; `environ` is the environment of the runs that are sent."""

    prompt = True

    def __init__(self, home: Path, machine: str, environ: Mapping[str, str]) -> None:
        if machine != machine_name():
            raise ServiceFailed(
                "other-machine",
                f"this was sent to the machine {machine}, and this one is {machine_name()}",
                "the same line there",
            )
        self._folder = home / "local" / machine
        self._environ = environ
        self._files = Files(self._folder)
        self._store = Store(self._folder)
        self._line = Line(self._folder, environ)
        self._images: dict[str, str] = {}
        self._secrets: dict[str, list[str]] = {}

    def close(self) -> None:
        """Hangs up, and lets go of the store."""
        self._line.close()
        self._store.close()

    def definitions(self, name: str) -> list[Standing]:
        del name
        return []

    def register(self, definition: Definition) -> tuple[str, bool]:
        container = definition.request["containerProperties"]
        if container["image"]:
            found = engine.choose_engine(self._environ)
            self._environ = {**self._environ, engine.ENGINE: found.name}
            self._images[definition.name] = engine.bring_image(
                found, container["image"], self._environ
            )
        self._secrets[definition.name] = [one["name"] for one in container.get("secrets", ())]
        return definition.name, self._store.define(definition.name, definition.request)

    def send(self, job: Job, definition_arn: str) -> str:
        task = Task(
            seq=0,
            name=job.name,
            definition={},
            request=job.request,
            size=job.size,
            created_ms=int(time.time() * 1000),
            image=self._images.get(definition_arn, ""),
            environment=kept_part(self._environ),
        )
        # The environment first: when it stands in the store, its first run may start at once.
        environ = with_key(self._environ, self._secrets.get(definition_arn, ()))
        self._line.say(environment(job.name, environ))
        self._store.add(task, definition_arn)
        self._line.say(Look())
        return job.name

    def find(self, queue_arn: str, prefix: str) -> list[Found]:
        del queue_arn  # there is one queue
        return [
            Found(name=name, job_id=name, created_ms=created_ms)
            for name, created_ms in self._store.named(prefix)
        ]

    def poll(self, job_ids: Sequence[str]) -> dict[str, JobStatus]:
        tasks = self._store.tasks(job_ids)
        if not all(task.over for task in tasks):
            # Starts a supervisor where the last one was killed, and hands it what it needs.
            self._line.say(environment(None, self._environ))
            tasks = self._store.tasks(job_ids)
        return {task.name: self._status(task) for task in tasks}

    def runs(self, job_id: str, size: int, children: Sequence[int]) -> list[RunStatus]:
        del size
        found: list[RunStatus] = []
        for task in self._store.tasks([job_id]):
            tried: dict[int, list[Attempt]] = {child: [] for child in children}
            wanted = None if len(children) > task.size // 2 else children
            for attempt in self._store.attempts(task.seq, wanted):
                if attempt.child in tried:
                    tried[attempt.child].append(attempt)
            found += [_run(task, child, tries) for child, tries in tried.items()]
        return found

    def node(self, job_id: str, node: int) -> RunStatus | None:
        del job_id, node  # one machine
        return None

    def children(self, job_id: str, states: Collection[RunState]) -> list[RunStatus]:
        (task,) = self._store.tasks([job_id]) or (None,)
        found = self.runs(job_id, task.size, range(task.size)) if task else []
        return [status for status in found if status.state in states]

    def facts(self, queue_arn: str) -> QueueFacts | None:
        del queue_arn
        return QueueFacts(name=LOCAL)  # why one waits stands in its task's note

    def tail(self, group: str, stream: str, lines: int) -> list[LogLine]:
        del group
        return logs.read_tail(self._log(stream), lines)

    def follow(
        self, group: str, stream: str, token: str | None, since_ms: int | None = None
    ) -> tuple[list[LogLine], str | None]:
        # Lines have no time of their own: a log counts as written when its last one was.
        del group
        if since_ms is not None and logs.written_ms(self._log(stream)) < since_ms:
            return [], token
        start = int(token or 0)
        ended = self._has_ended(stream)  # looked up first: what was printed before is there then
        lines, following = logs.read_page(self._log(stream), start, ended=ended)
        return lines, token if following == start else str(following)

    def search(self, group: str, streams: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
        del group
        for stream in streams:
            yield from ((stream, line) for line in logs.search(self._log(stream), text))

    def cancel(self, job_ids: Sequence[str]) -> None:
        self._store.cancel(job_ids, int(time.time() * 1000))
        self._line.say(environment(None, self._environ))

    @contextlib.contextmanager
    def attend(self, job_ids: Sequence[str]) -> Iterator[Line]:
        """A line that hears when these jobs are over. If it breaks before (this process killed, the
        block left), they are cancelled.
        """
        with Line(self._folder, self._environ) as line:
            line.say(environment(None, self._environ))
            line.say(Attend(tuple(job_ids)))
            yield line

    def _status(self, task: Task) -> JobStatus:
        counts: Counter[RunState] = Counter()
        for state, runs in self._store.counts(task.seq).items():
            counts[RunState.WAITING if state == CLAIMED else RunState(state)] += runs
        rest = RunState.WAITING if task.cancelled_ms is None else RunState.CANCELLED
        counts[rest] += task.size - counts.total()
        began, ended = self._store.times(task.seq)
        cancelled = CANCELLED.reason if task.cancelled_ms is not None else None
        return JobStatus(
            job_id=task.name,
            runs=_runs_of(task),
            definition=task.definition["jobDefinitionName"],
            over=task.over,
            counts={state: runs for state, runs in counts.items() if runs},
            reason=cancelled or task.note,
            started_ms=began,
            stopped_ms=(ended or task.cancelled_ms) if task.over else None,
        )

    def _log(self, stream: str) -> Path:
        task, _, attempt = stream.partition("/")
        return self._files.log(task, attempt)

    def _has_ended(self, stream: str) -> bool:
        name, _, attempt = stream.partition("/")
        child, number = map(int, attempt.split("."))
        return any(
            one.is_over
            for task in self._store.tasks([name])
            for one in self._store.attempts(task.seq, [child])
            if one.number == number
        )


def _runs_of(task: Task) -> str:
    """Which runs of the experiment it has (submit.ranges)."""
    pairs = task.request["containerOverrides"]["environment"]
    return next((one["value"] for one in pairs if one["name"] == PLAN_PREFIX + "RUNS"), "")


def _run(task: Task, child: int, tries: Sequence[Attempt]) -> RunStatus:
    """A run of which nothing stands in the store waits, or was cancelled before it could start."""
    begun = [one for one in tries if one.started_ms is not None]
    waits = RunState.WAITING if task.cancelled_ms is None else RunState.CANCELLED
    last = tries[-1] if tries else None
    return RunStatus(
        child=child,
        state=last.run_state if last else waits,
        reason=last.reason if last else (CANCELLED.reason if task.cancelled_ms else task.note),
        exit_code=last.code if last else None,
        attempts=len(begun),
        started_ms=begun[0].started_ms if begun else None,
        stopped_ms=last.stopped_ms if last else None,
        streams=tuple(f"{task.name}/{key(one)}" for one in begun),
        losses=sum(one.run_state is RunState.LOST for one in tries),
    )
