"""Moves time on: resources become VALID, jobs get slots, attempts end, arrays are over.

One thread ticks; one thread an attempt, never more attempts than there are slots. All decisions
are taken under the store's lock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from sandbox.batch import attempts, dependencies, states, turns
from sandbox.batch.attempts import Ended, Running
from sandbox.batch.executor import Executor
from sandbox.batch.jobs import end, terminate_all
from sandbox.batch.placement import Placement, place, vcpus
from sandbox.batch.retries import grants_retry
from sandbox.batch.store import Array, Job, Resource, Store

TICK_SECONDS = 0.25
"""Whatever changes wakes the scheduler; a tick is for what time alone brings about."""


class Scheduler:
    """`start` begins to tick; `close` ends all attempts and returns when they are gone."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        *,
        slots: int,
        work_dir: Path,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._executor = executor
        self._slots = slots
        self._work_dir = work_dir
        self._clock = clock
        self._running: dict[str, Running] = {}
        self._threads: set[threading.Thread] = set()
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="batch-scheduler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something has changed: the next tick is now."""
        self._wake.set()

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    def close(self) -> None:
        """Stops all attempts; their processes are gone when it returns."""
        self._closed = True
        self._wake.set()
        self._thread.join()
        with self._store.lock:
            for running in self._running.values():
                running.reasons.append("the sandbox was stopped")
                running.stop.set()
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def interrupt(self, job_id: str) -> str | None:
        """Takes the instance under a running job away; its id, None when the job does not run."""
        with self._store.lock:
            running = self._running.get(job_id)
            if running is None or running.job.status != states.RUNNING:
                return None
            instance = running.placement.instance_id
            running.reasons.append(f"Host EC2 (instance {instance}) terminated.")
            running.stop.set()
            return instance

    def running_jobs(self) -> list[str]:
        """Ids of the jobs that have a slot now."""
        with self._store.lock:
            return list(self._running)

    def _loop(self) -> None:
        while not self._closed:
            with self._store.lock:
                self._tick()
            self._wake.wait(TICK_SECONDS)
            self._wake.clear()

    def _tick(self) -> None:
        now = self.now_ms()
        self._settle_resources()
        for queue in sorted(self._store.queues.values(), key=lambda q: -q.detail["priority"]):
            self._advance(queue)
            self._store.fronts[queue.arn] = turns.front(
                self._store.fronts.get(queue.arn), self._store.waiting.get(queue.arn, ()), now
            )
        for running in self._running.values():
            if running.job.stop and not running.stop.is_set():
                running.reasons.append(running.job.stop)
                running.stop.set()

    def _settle_resources(self) -> None:
        for kind in (self._store.queues, self._store.environments):
            for resource in list(kind.values()):
                status = resource.detail["status"]
                if status in {"CREATING", "UPDATING"}:
                    _settle(resource)
                elif status == "DELETING" and self._may_go(resource):
                    resource.move("DELETED")
                    del kind[resource.name]
                    self._store.tags.pop(resource.arn, None)
                    self._store.fronts.pop(resource.arn, None)

    def _may_go(self, resource: Resource) -> bool:
        """Ends what is left in a queue; an environment whose role is gone stays, INVALID."""
        if resource.faults:
            _settle(resource)
            resource.faults = []
            return False
        for job in self._store.waiting.get(resource.arn, ()):
            terminate_all(job, "The job queue was deleted", self.now_ms())
        self._advance(resource)
        return not self._store.waiting.get(resource.arn)

    def _advance(self, queue: Resource) -> None:
        waiting = self._store.waiting.get(queue.arn, deque())
        for job in waiting:
            self._settle_job(job)
        if any(job.status in states.OVER for job in waiting):
            left = [job for job in waiting if job.status not in states.OVER]
            waiting = self._store.waiting[queue.arn] = deque(left)
        for job in waiting:
            for candidate in turns.runnable(job):
                if len(self._running) >= self._slots:
                    return
                if not self._try_start(queue, candidate):
                    break  # its siblings ask for the same

    def _settle_job(self, job: Job) -> None:
        depends = job.spec["dependsOn"]
        if job.status == states.SUBMITTED:
            job.move(states.PENDING if depends or job.array else states.RUNNABLE)
            if job.array:
                job.array.move_unstarted(states.PENDING if depends else states.RUNNABLE)
        if depends:
            dependencies.settle(self._store, job, self.now_ms())
        if job.array and job.status == states.PENDING:
            self._settle_array(job, job.array)

    def _settle_array(self, job: Job, array: Array) -> None:
        failed = array.counts.get(states.FAILED, 0)
        if failed + array.counts.get(states.SUCCEEDED, 0) == array.size:
            reason = job.status_reason or ("Array Child Job failed" if failed else None)
            job.move(states.FAILED if failed else states.SUCCEEDED, reason)
            job.stopped_ms = self.now_ms()

    def _try_start(self, queue: Resource, job: Job) -> bool:
        """Begins the job where it fits; else it stays RUNNABLE, and says why if that is for good."""
        in_use: dict[str, int] = {}
        for running in self._running.values():
            arn = running.placement.environment.arn
            in_use[arn] = in_use.get(arn, 0) + vcpus(running.job)
        found = place(self._store, queue, job, in_use)
        if isinstance(found, Placement):
            self._begin(queue, job, found)
            return True
        if found != job.status_reason or job.blocked_ms is None:
            job.blocked_ms = self.now_ms() if found else None
        job.status_reason = found
        self._give_up(queue, job)
        return False

    def _give_up(self, queue: Resource, job: Job) -> None:
        """The queue's own limits on waiting (API Reference, JobStateTimeLimitAction)."""
        for action in queue.detail["jobStateTimeLimitActions"]:
            blocked = job.blocked_ms is not None and (job.status_reason or "").startswith(
                action["reason"]
            )
            if blocked and self.now_ms() - job.blocked_ms >= action["maxTimeSeconds"] * 1000:  # type: ignore[operator] # blocked: it is set
                job.cancelled = True
                end(job, f"{action['reason']} for {action['maxTimeSeconds']} s", self.now_ms())
                return

    def _begin(self, queue: Resource, job: Job, placement: Placement) -> None:
        if job.parent and job.parent.array:
            array = job.parent.array
            turn: deque[Job] | deque[int] = array.again if job.attempts else array.unstarted
            turn.popleft()
        job.status_reason = job.blocked_ms = None
        job.move(states.STARTING)
        running = attempts.begin(job, queue.name, placement)
        self._running[job.id] = running
        thread = threading.Thread(target=self._run, args=(running,), daemon=True)
        self._threads.add(thread)
        thread.start()

    def _run(self, running: Running) -> None:
        ended = attempts.run(
            running,
            account=self._store.account,
            executor=self._executor,
            work_dir=self._work_dir,
            started=lambda: self._started(running),
        )
        with self._store.lock:
            self._finish(running, ended)
            del self._running[running.job.id]
            self._threads.discard(threading.current_thread())
        self._wake.set()

    def _started(self, running: Running) -> None:
        job = running.job
        with self._store.lock:
            job.move(states.RUNNING)
            job.started_ms = self.now_ms()
            job.container = attempts.describe_container(running, self._store.account)
            if job.parent is not None and job.parent.started_ms is None:
                job.parent.started_ms = job.started_ms

    def _finish(self, running: Running, ended: Ended) -> None:
        job, now = running.job, self.now_ms()
        job.container = ended.container
        job.attempts.append(
            {
                "container": ended.container,
                "startedAt": job.started_ms or now,
                "stoppedAt": now,
                "statusReason": ended.status_reason,
            }
        )
        if not ended.succeeded and ended.may_retry and _gets_another(job, ended):
            job.started_ms = None
            job.move(states.RUNNABLE)
            if job.parent and job.parent.array:
                job.parent.array.again.append(job)
            return
        job.move(states.SUCCEEDED if ended.succeeded else states.FAILED, ended.status_reason)
        job.stopped_ms = now


def _settle(resource: Resource) -> None:
    if resource.faults:
        resource.move("INVALID", "CLIENT_ERROR - " + "; ".join(resource.faults))
    else:
        kind = "JobQueue" if "jobQueueName" in resource.detail else "ComputeEnvironment"
        resource.move("VALID", f"{kind} Healthy")


def _gets_another(job: Job, ended: Ended) -> bool:
    return not job.terminated and grants_retry(
        job.spec["retryStrategy"],
        len(job.attempts),
        status_reason=ended.status_reason,
        reason=ended.container.get("reason"),
        exit_code=ended.container.get("exitCode"),
    )
