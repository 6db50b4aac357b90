"""Moves time on: resources become VALID, jobs get slots, attempts end, arrays are over.

One thread ticks; one thread an attempt, never more than there are slots. All decisions are
taken under the store's lock.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.batch import limits, states
from sandbox.batch.account import DEFAULT_LOG_GROUP
from sandbox.batch.environments import instance_types
from sandbox.batch.executor import Attempt, Executor, Outcome
from sandbox.batch.instances import InstanceType
from sandbox.batch.jobs import end, terminate_all
from sandbox.batch.store import Job, Resource, Store, new_id

TICK_SECONDS = 0.05
_MISFIT = (
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) "
    "is higher than that can be met by the CE(s) attached to the job queue."
)
_DISABLED = "The compute environments of the job queue are not ENABLED and VALID."


class Placement(NamedTuple):
    """Where an attempt runs: an environment, a type, a made-up instance."""

    environment: Resource
    instance_id: str


class Running(NamedTuple):
    """An attempt that has a slot."""

    job: Job
    placement: Placement
    stop: threading.Event
    reasons: list[str]
    """Why it is being stopped, if it is."""


class Scheduler:
    """`start` begins to tick; `close` ends all attempts and returns when they are gone."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        *,
        slots: int,
        work_dir: Path,
        clock: Callable[[], float] = time.time,
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
            if running is None:
                return None
            lost = f"Host EC2 (instance {running.placement.instance_id}) terminated."
            running.reasons.append(lost)
            running.stop.set()
            return running.placement.instance_id

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
        self._settle_resources()
        for queue in self._queues_in_order():
            self._advance(queue)
        for running in self._running.values():
            if running.job.stop and not running.stop.is_set():
                running.reasons.append(running.job.stop)
                running.stop.set()

    def _settle_resources(self) -> None:
        for kind in (self._store.queues, self._store.environments):
            for resource in list(kind.values()):
                status = resource.detail["status"]
                if status in {"CREATING", "UPDATING"}:
                    if resource.faults:
                        resource.move("INVALID", "CLIENT_ERROR - " + "; ".join(resource.faults))
                    else:
                        resource.move("VALID", f"{_kind(resource)} Healthy")
                elif status == "DELETING" and self._may_go(resource):
                    resource.move("DELETED")
                    del kind[resource.name]
                    self._store.tags.pop(resource.arn, None)

    def _may_go(self, resource: Resource) -> bool:
        """Ends what is left in a queue; an environment whose role is gone stays, INVALID."""
        if resource.faults:
            resource.move("INVALID", "CLIENT_ERROR - " + "; ".join(resource.faults))
            resource.faults = []
            return False
        reason = "The job queue was deleted"
        for job in self._store.waiting.get(resource.arn, ()):
            terminate_all(job, reason, self.now_ms())
        self._advance(resource)
        return not self._store.waiting.get(resource.arn)

    def _queues_in_order(self) -> list[Resource]:
        return sorted(self._store.queues.values(), key=lambda q: -q.detail["priority"])

    def _advance(self, queue: Resource) -> None:
        waiting = self._store.waiting.get(queue.arn, deque())
        for job in waiting:
            self._settle_job(job)
        if any(job.status in states.OVER for job in waiting):
            left = [job for job in waiting if job.status not in states.OVER]
            waiting = self._store.waiting[queue.arn] = deque(left)
        for job in waiting:
            for candidate in _candidates(job):
                if len(self._running) >= self._slots:
                    return
                if not self._try_start(queue, candidate):
                    break  # its siblings ask for the same

    def _settle_job(self, job: Job) -> None:
        depends = job.spec["dependsOn"]
        if job.status == states.SUBMITTED:
            job.move(states.PENDING if depends or job.size else states.RUNNABLE)
            job.move_unstarted(states.PENDING if depends else states.RUNNABLE)
        if depends and states.PENDING in {job.status, job.unstarted_status}:
            self._settle_dependencies(job)
        if job.size and job.status == states.PENDING:
            self._settle_array(job)

    def _settle_dependencies(self, job: Job) -> None:
        found = [
            self._store.find_job(dependency["jobId"], self.now_ms())
            for dependency in job.spec["dependsOn"]
        ]
        if any(other is None or other.status == states.FAILED for other in found):
            self._end_all(job, "Dependent Job failed")
        elif all(other and other.status == states.SUCCEEDED for other in found):
            if job.size:
                job.move_unstarted(states.RUNNABLE)
            elif job.status == states.PENDING:
                job.move(states.RUNNABLE)

    def _end_all(self, job: Job, reason: str) -> None:
        now = self.now_ms()
        while job.unstarted:
            child = job.child(job.unstarted.popleft(), now)
            if child.status not in states.OVER:
                end(child, reason, now)
        if not job.size and job.status not in states.OVER:
            end(job, reason, now)

    def _settle_array(self, job: Job) -> None:
        over = {state: job.counts.get(state, 0) for state in states.OVER}
        if sum(over.values()) == job.size:
            failed = over[states.FAILED] > 0
            reason = job.status_reason or ("Array Child Job failed" if failed else None)
            job.move(states.FAILED if failed else states.SUCCEEDED, reason)
            job.stopped_ms = self.now_ms()

    def _try_start(self, queue: Resource, job: Job) -> bool:
        """Begins the job where it fits; else it stays RUNNABLE and says why."""
        usable = False
        for item in queue.detail["computeEnvironmentOrder"]:
            environment = self._store.environment(item["computeEnvironment"])
            if (
                environment is None
                or environment.detail["state"] != "ENABLED"
                or environment.detail["status"] not in {"VALID", "UPDATING"}
            ):
                continue
            usable = True
            if any(fits(job, found) for found in instance_types(environment)):
                self._begin(queue, job, Placement(environment, _instance_id()))
                return True
        job.status_reason = _MISFIT if usable else _DISABLED
        return False

    def _begin(self, queue: Resource, job: Job, placement: Placement) -> None:
        if job.parent is not None:
            turn = job.parent.again if job.attempts else job.parent.unstarted
            turn.popleft()
        job.status_reason = None
        job.move(states.STARTING)
        running = Running(job, placement, threading.Event(), [])
        self._running[job.id] = running
        thread = threading.Thread(target=self._run, args=(queue, running), daemon=True)
        self._threads.add(thread)
        thread.start()

    def _run(self, queue: Resource, running: Running) -> None:
        job = running.job
        task_id = new_id().replace("-", "")
        group, stream = self._log_names(job, task_id)
        outcome = self._attempt(queue, running, task_id, group, stream)
        with self._store.lock:
            self._finish(running, outcome, stream)
            del self._running[job.id]
            self._threads.discard(threading.current_thread())
        self._wake.set()

    def _attempt(
        self, queue: Resource, running: Running, task_id: str, group: str, stream: str
    ) -> Outcome:
        job, account = running.job, self._store.account
        overrides = job.spec["overrides"]
        characters = sum(
            len(pair.get("name", "")) + len(pair.get("value", ""))
            for pair in overrides.get("environment", [])
        ) + sum(map(len, overrides.get("command", [])))
        if characters > limits.OVERRIDES.at_most:
            fault = "Container Overrides length must be at most 8192"
            return Outcome(None, fault, timed_out=False)
        if not account.open_log_stream(group, stream):
            fault = "CannotStartContainerError: The specified log group does not exist."
            return Outcome(None, fault, timed_out=False)
        environment = self._environment(queue, running)
        if isinstance(environment, str):
            return Outcome(None, environment, timed_out=False)
        folder = self._work_dir / task_id
        timeout = job.spec.get("timeout", {}).get("attemptDurationSeconds")
        return self._executor.run(
            Attempt(
                command=job.spec["container"]["command"] or ["true"],
                environment=environment | {"HOME": str(folder), "PWD": str(folder)},
                folder=folder,
                timeout_s=timeout,
            ),
            started=lambda: self._started(job, stream, running),
            stop=running.stop,
            log=lambda lines: (account.put_log_events(group, stream, lines) and None) or None,
        )

    def _environment(self, queue: Resource, running: Running) -> dict[str, str] | str:
        """The job's variables, or why a secret can't be had."""
        job = running.job
        container = job.spec["container"]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        environment |= {p["name"]: p.get("value", "") for p in container["environment"]}
        for secret in container.get("secrets", []):
            value = self._store.account.secret_value(secret["valueFrom"])
            if value is None:
                return (
                    "ResourceInitializationError: unable to pull secrets or registry auth: "
                    f"{secret['valueFrom']} can't be found"
                )
            environment[secret["name"]] = value
        environment |= {
            "AWS_BATCH_JOB_ID": job.id,
            "AWS_BATCH_JOB_ATTEMPT": str(len(job.attempts) + 1),
            "AWS_BATCH_CE_NAME": running.placement.environment.name,
            "AWS_BATCH_JQ_NAME": queue.name,
        }
        if job.parent is not None:
            environment["AWS_BATCH_JOB_ARRAY_INDEX"] = str(job.index)
            environment["AWS_BATCH_JOB_ARRAY_SIZE"] = str(job.parent.size)
        return environment

    def _log_names(self, job: Job, task_id: str) -> tuple[str, str]:
        options = job.spec["container"].get("logConfiguration", {}).get("options", {})
        prefix = options.get("awslogs-stream-prefix", job.spec["definitionName"])
        return options.get("awslogs-group", DEFAULT_LOG_GROUP), f"{prefix}/default/{task_id}"

    def _started(self, job: Job, stream: str, running: Running) -> None:
        with self._store.lock:
            job.move(states.RUNNING)
            job.started_ms = self.now_ms()
            job.container = {
                "logStreamName": stream,
                "containerInstanceArn": self._instance_arn(running.placement),
            }
            if job.parent is not None and job.parent.started_ms is None:
                job.parent.started_ms = job.started_ms

    def _instance_arn(self, placement: Placement) -> str:
        account = self._store.account
        return (
            f"arn:aws:ecs:{account.region}:{account.account_id}:container-instance/"
            f"{placement.environment.name}/{placement.instance_id}"
        )

    def _finish(self, running: Running, outcome: Outcome, stream: str) -> None:
        job = running.job
        if job.status == states.STARTING:  # it never ran
            job.started_ms = None
        reason, status_reason, exit_code = _words(running, outcome)
        started = job.started_ms or self.now_ms()
        container: dict[str, Any] = {"logStreamName": stream, "reason": reason}
        container["containerInstanceArn"] = self._instance_arn(running.placement)
        if exit_code is not None:
            container["exitCode"] = exit_code
        job.attempts.append(
            {
                "container": {k: v for k, v in container.items() if v is not None},
                "startedAt": started,
                "stoppedAt": self.now_ms(),
                "statusReason": status_reason,
            }
        )
        job.container = container
        if job.status == states.STARTING and outcome.exit_code is not None:
            job.move(states.RUNNING)
        if exit_code == 0 and not running.reasons and not outcome.timed_out:
            job.move(states.SUCCEEDED, status_reason)
            job.stopped_ms = self.now_ms()
        elif not job.terminated and not outcome.timed_out and _retries(job, status_reason, reason):
            job.started_ms = None
            job.move(states.RUNNABLE)
            if job.parent is not None:
                job.parent.again.append(job)
        else:
            job.move(states.FAILED, status_reason)
            job.stopped_ms = self.now_ms()


def _candidates(job: Job) -> Iterator[Job]:
    """The job or its children that could start now, in their order."""
    if not job.size:
        if job.status == states.RUNNABLE:
            yield job
        return
    for turn in (job.again, job.unstarted):
        while turn and job.unstarted_status == states.RUNNABLE:
            first = turn[0]
            child = job.child(first, job.created_ms) if isinstance(first, int) else first
            if child.status == states.RUNNABLE:
                yield child
            else:  # it was ended before its turn
                turn.popleft()


def fits(job: Job, found: InstanceType) -> bool:
    """Whether one instance of the type could ever hold the job."""
    container = job.spec["container"]
    wanted = {r["type"]: int(r["value"]) for r in container["resourceRequirements"]}
    return (
        wanted.get("VCPU", container.get("vcpus", 0)) <= found.vcpus
        and wanted.get("MEMORY", container.get("memory", 0)) <= found.memory_mib
        and wanted.get("GPU", 0) <= found.gpus
    )


def _words(running: Running, outcome: Outcome) -> tuple[str | None, str, int | None]:
    """The container's reason, the status reason and the exit code, as AWS words them."""
    if outcome.fault:
        return outcome.fault, "Task failed to start", None
    if running.reasons:
        lost = running.reasons[0].startswith("Host EC2")
        return None, running.reasons[0], None if lost else outcome.exit_code
    if outcome.timed_out:
        return None, "Job attempt duration exceeded timeout", outcome.exit_code
    return None, "Essential container in task exited", outcome.exit_code


def _retries(job: Job, status_reason: str, reason: str | None) -> bool:
    """Whether the retry strategy grants another attempt: no rule that matches means yes."""
    strategy = job.spec["retryStrategy"]
    if len(job.attempts) >= strategy.get("attempts", 1):
        return False
    exit_code = job.attempts[-1]["container"].get("exitCode")
    facts = {
        "onStatusReason": status_reason,
        "onReason": reason or "",
        "onExitCode": "" if exit_code is None else str(exit_code),
    }
    for rule in strategy.get("evaluateOnExit", []):
        if all(_glob(facts[key], rule[key]) for key in facts if key in rule):
            return bool(rule["action"].upper() == "RETRY")
    return True


def _glob(text: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return text.lower().startswith(pattern[:-1].lower())
    return text.lower() == pattern.lower()


def _instance_id() -> str:
    return "i-" + new_id().replace("-", "")[:17]


def _kind(resource: Resource) -> str:
    return "JobQueue" if "jobQueueName" in resource.detail else "ComputeEnvironment"
