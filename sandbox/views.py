"""What the status page shows of a Batch: tables of its queues, instances and jobs. Reads only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from sandbox.batch import states
from sandbox.batch.jobs import job_detail
from sandbox.batch.service import Batch
from sandbox.batch.store import Job, Resource
from sandbox.page import Link, Table

NEWEST_JOBS = 50
LINES = 200
_SHOWN = ("status", "statusReason", "jobName", "jobQueue", "jobDefinition", "createdAt", "startedAt",
          "stoppedAt", "attempts", "arrayProperties", "nodeProperties", "container",
          "ecsProperties")  # fmt: skip


def tables(batch: Batch) -> list[Table]:
    """Queues, instances, and the newest jobs."""
    with batch.store.lock:
        counts = _counts(batch.store.jobs.values())
        return [
            Table(
                "Queues",
                ("name", "state", "status", "priority", *states.JOB_MOVES),
                [_queue(queue, counts) for _, queue in sorted(batch.store.queues.items())],
            ),
            Table(
                "Compute environments",
                ("name", "state", "status", "vCPUs", "most", "why"),
                [
                    (
                        environment.name,
                        environment.detail["state"],
                        environment.detail["status"],
                        environment.detail.get("computeResources", {}).get("desiredvCpus"),
                        environment.detail.get("computeResources", {}).get("maxvCpus"),
                        environment.detail.get("statusReason"),
                    )
                    for _, environment in sorted(batch.store.environments.items())
                ],
            ),
            Table(
                "Instances",
                ("id", "type", "environment", "spot", "jobs"),
                [
                    (m.id, m.type.name, m.environment.name, "yes" if m.spot else "no", len(m.jobs))
                    for m in batch.scheduler.machines.everyone()
                ],
            ),
            Table(
                "Jobs",
                ("id", "name", "queue", "status", "children", "why"),
                map(_job, islice(reversed(batch.store.jobs.values()), NEWEST_JOBS)),
            ),
        ]


def job(batch: Batch, job_id: str) -> tuple[dict[str, Any], list[str]] | None:
    """What is shown of a job, and the end of its log; None when there is no such job."""
    with batch.store.lock:
        found = batch.store.look_at(job_id)
        if found is None:
            return None
        detail = job_detail(batch.store, found)
    lines = [line for container in _containers(detail) for line in _tail(batch, container)]
    return {"jobId": job_id} | {key: detail[key] for key in _SHOWN if detail.get(key)}, lines


def _containers(detail: dict[str, Any]) -> list[dict[str, Any]]:
    if "container" in detail:
        return [detail["container"]]
    tasks = detail.get("ecsProperties", {}).get("taskProperties", [])
    return [container for task in tasks for container in task["containers"]]


def _tail(batch: Batch, container: dict[str, Any]) -> list[str]:
    options = container.get("logConfiguration", {}).get("options", {})
    return batch.store.account.log_tail(
        options.get("awslogs-group"), container.get("logStreamName", ""), LINES
    )


def _queue(queue: Resource, counts: Mapping[str, Mapping[str, int]]) -> tuple[Any, ...]:
    detail, own = queue.detail, counts.get(queue.arn, {})
    shown = [own.get(status, 0) for status in states.JOB_MOVES]
    return (queue.name, detail["state"], detail["status"], detail["priority"], *shown)


def _counts(jobs: Iterable[Job]) -> dict[str, Counter[str]]:
    """By queue, jobs by state; of an array, its children."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for job in jobs:
        counts[job.spec["jobQueue"]].update(job.array.counts if job.array else {job.status: 1})
    return counts


def _job(job: Job) -> tuple[Any, ...]:
    queue = job.spec["jobQueue"].rpartition("/")[2]
    children = ""
    if job.array:
        children = ", ".join(
            f"{count} {status}" for status, count in job.array.counts.items() if count
        )
    elif job.nodes:
        children = f"{len(job.nodes.children)} nodes"
    return (Link(job.id), job.name, queue, job.status, children, job.status_reason)
