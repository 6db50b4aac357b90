"""The Batch service: HTTP in, HTTP out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sandbox.answers import Answer
from sandbox.batch import definitions, environments, jobs, listing, queues, shares, tags, turns
from sandbox.batch.account import Account
from sandbox.batch.containers import ContainerExecutor, label_of
from sandbox.batch.errors import BatchError, ClientError
from sandbox.batch.executor import Executor
from sandbox.batch.machines import Machines
from sandbox.batch.memory import MemoryWatch
from sandbox.batch.protocol import Protocol
from sandbox.batch.rules import refusal, unsupported
from sandbox.batch.scheduler import Scheduler
from sandbox.batch.store import Job, Store, new_id
from sandbox.conditions import Conditions

RULE_HEADER = "x-sandbox-rule"
"""Of an answer with an error: the row of rules.py or limits.py that the request breaks."""
Operation = Callable[[dict[str, Any]], dict[str, Any]]


class Batch:
    """Batch in one region; time moves once its scheduler is started."""

    def __init__(
        self,
        account: Account,
        conditions: Conditions,
        *,
        slots: int,
        work_dir: Path,
        image_root: Path,
        grace_s: float,
        engine: str | None,
        boot_s: float,
        idle_s: float,
        memory_limits: bool,
        clock: Callable[[], float],
    ) -> None:
        self.store = Store(account)
        self._conditions = conditions
        self._executor = (
            ContainerExecutor(engine, label_of(work_dir), grace_s)
            if engine
            else Executor(image_root, grace_s)
        )
        self.scheduler = Scheduler(
            self.store,
            self._executor,
            Machines(conditions, boot_s=boot_s, idle_s=idle_s),
            conditions,
            slots=slots,
            work_dir=work_dir,
            clock=clock,
        )
        watched = memory_limits and not engine  # which keeps its containers' limits itself
        self._watch = MemoryWatch(self.scheduler.sessions) if watched else None
        self.protocol = Protocol()
        self._operations = self._table()

    def close(self) -> None:
        """Ends all jobs; returns when their processes are gone."""
        if self._watch:
            self._watch.close()
        self._executor.hurry()
        self.scheduler.close()
        self._executor.close()

    def operation_name(self, method: str, path: str) -> str:
        """Which operation that is.

        Raises ClientError where there is none.
        """
        return str(self.protocol.route(method, path)[0].name)

    def handle(self, method: str, path: str, query: Mapping[str, list[str]], body: bytes) -> Answer:
        """Answers one request."""
        try:
            operation, uri = self.protocol.route(method, path)
            perform = self._operations.get(operation.name)
            if perform is None:
                raise unsupported(f"the operation {operation.name}")
            request = self.protocol.parse(operation, uri, query, body)
            with self.store.lock:
                answer = perform(request)
            rendered = self.protocol.render(operation, answer)
        except BatchError as err:
            return error_answer(err)
        self.scheduler.wake()
        return Answer(200, rendered, _headers())

    def _table(self) -> dict[str, Operation]:
        store, now = self.store, self.scheduler.now_ms
        return {
            "CreateComputeEnvironment": lambda r: environments.create(store, r),
            "DescribeComputeEnvironments": lambda r: environments.describe(store, r),
            "UpdateComputeEnvironment": lambda r: environments.update(store, r),
            "DeleteComputeEnvironment": lambda r: environments.delete(store, r),
            "CreateJobQueue": lambda r: queues.create(store, r),
            "DescribeJobQueues": lambda r: queues.describe(store, r),
            "UpdateJobQueue": lambda r: queues.update(store, r),
            "DeleteJobQueue": lambda r: queues.delete(store, r),
            "CreateSchedulingPolicy": lambda r: shares.create(store, r),
            "DescribeSchedulingPolicies": lambda r: shares.describe(store, r),
            "ListSchedulingPolicies": lambda r: shares.list_all(store, r),
            "UpdateSchedulingPolicy": lambda r: shares.update(store, r),
            "DeleteSchedulingPolicy": lambda r: shares.delete(store, r),
            "GetJobQueueSnapshot": lambda r: turns.snapshot(store, r, now()),
            "RegisterJobDefinition": lambda r: definitions.register(store, r),
            "DeregisterJobDefinition": lambda r: definitions.deregister(store, r, now()),
            "DescribeJobDefinitions": lambda r: definitions.describe(store, r),
            "SubmitJob": lambda r: jobs.submit(store, r, now()),
            "DescribeJobs": lambda r: jobs.describe(store, r, self._seen),
            "ListJobs": lambda r: listing.list_jobs(store, r, self._seen),
            "CancelJob": lambda r: jobs.cancel(store, r, now()),
            "TerminateJob": lambda r: jobs.terminate(store, r, now()),
            "CancelJobs": lambda r: jobs.bulk(store, jobs.cancel, r, now()),
            "TerminateJobs": lambda r: jobs.bulk(store, jobs.terminate, r, now()),
            "TagResource": self._tag,
            "UntagResource": self._untag,
            "ListTagsForResource": lambda r: {"tags": dict(self._tags(r["resourceArn"]))},
        }

    def _seen(self, job: Job) -> bool:
        """Whether views know the job: just after SubmitJob they may not."""
        lag_s = self._conditions.now.lag_s
        if not lag_s or job.created_ms + lag_s * 1000 <= self.scheduler.now_ms():
            return True
        self._conditions.note("unseen", job=job.id)
        return False

    def _tags(self, arn: str) -> dict[str, str]:
        if arn not in self.store.tags:
            raise refusal("what is named exists", f"{arn} does not exist")
        return self.store.tags[arn]

    def _tag(self, request: dict[str, Any]) -> dict[str, Any]:
        merged = self._tags(request["resourceArn"]) | request["tags"]
        tags.check(merged)
        self.store.tags[request["resourceArn"]] = merged
        return {}

    def _untag(self, request: dict[str, Any]) -> dict[str, Any]:
        left = self._tags(request["resourceArn"])
        for key in request["tagKeys"]:
            left.pop(key, None)
        return {}


def error_answer(err: BatchError) -> Answer:
    """The error as AWS sends one in rest-json."""
    body = json.dumps({"message": str(err)}).encode()
    rule = err.rule if isinstance(err, ClientError) else None
    told = {RULE_HEADER: rule} if rule else {}
    return Answer(err.status, body, _headers() | {"x-amzn-errortype": err.code} | told)


def _headers() -> dict[str, str]:
    return {"Content-Type": "application/json", "x-amzn-RequestId": new_id()}
