"""ListJobs: which jobs, in what order, page by page. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.batch import limits, states
from sandbox.batch.paging import paged
from sandbox.batch.rules import refusal
from sandbox.batch.store import Job, Store


def list_jobs(
    store: Store, request: dict[str, Any], seen: Callable[[Job], bool] = lambda _: True
) -> dict[str, Any]:
    """ListJobs: a queue's jobs or an array's children, newest first.

    RUNNING only unless a status is given; a filter ignores the status, but for that of shares
    (API Reference).
    """
    filters = request.get("filters", [])
    places = ("jobQueue", "arrayJobId", "multiNodeJobId")
    if sum(bool(request.get(place)) for place in places) != 1:
        raise refusal("listing", "one of jobQueue, arrayJobId and multiNodeJobId must be given")
    if len(filters) > 1:
        raise refusal("listing", "only one filter is supported")
    jobs = _candidates(store, request)
    if filters and request.get("jobQueue"):
        jobs = _filtered(jobs, filters[0])
        limit = limits.LIST_PAGE_FILTERED
        status = request.get("jobStatus")
        if status and filters[0]["name"] == "SHARE_IDENTIFIER":
            jobs = (job for job in jobs if job.status == status)
    else:
        status = request.get("jobStatus", states.RUNNING)
        jobs = (job for job in jobs if job.status == status)
        limit = limits.LIST_PAGE
    size = min(request.get("maxResults", limit.at_most), limit.at_most)  # more is not refused
    page, token = paged([job for job in jobs if seen(job)], request | {"maxResults": size}, limit)
    return {"jobSummaryList": [_summary(job) for job in page], "nextToken": token}


def _candidates(store: Store, request: dict[str, Any]) -> Iterator[Job]:
    parent_id = request.get("arrayJobId") or request.get("multiNodeJobId")
    if parent_id:
        parent = store.look_at(parent_id)
        if parent is None:
            raise refusal("what is named exists", f"Job {parent_id} does not exist")
        if parent.array and request.get("arrayJobId"):
            yield from (parent.look_at_child(index) for index in range(parent.array.size))
        elif parent.nodes and request.get("multiNodeJobId"):
            yield from parent.nodes.children
    else:
        queue = store.existing_queue(request["jobQueue"])
        for job in reversed(store.jobs.values()):
            if job.spec["jobQueue"] == queue.arn:
                yield job


def _filtered(jobs: Iterator[Job], wanted: dict[str, Any]) -> Iterator[Job]:
    """The jobs that one of the filter's values matches.

    Raises ClientError for a filter that AWS does not have, or a time that is none.
    """
    name, values = str(wanted.get("name")), wanted.get("values", [])
    if name not in _FILTERS:
        raise refusal("listing", f"filters.name is {name!r}: the filters are {', '.join(_FILTERS)}")
    if name in {"BEFORE_CREATED_AT", "AFTER_CREATED_AT"}:
        for value in values:
            if not re.fullmatch("[0-9]{1,18}", value):
                raise refusal("listing", f"{name} is {value!r}: it takes milliseconds since 1970")
    matches = _FILTERS[name]
    return (job for job in jobs if any(matches(job, value) for value in values))


def _of_definition(job: Job, value: str) -> bool:
    """A name (any revision), its beginning with `*`, or one ARN; in the case given."""
    if value.startswith("arn:"):
        return bool(job.spec["jobDefinition"] == value)
    name = str(job.spec["definitionName"])
    return name.startswith(value[:-1]) if value.endswith("*") else name == value


def _like(text: str, pattern: str) -> bool:
    """Case-insensitive; `*` at the end matches the rest (API Reference, ListJobs)."""
    text, pattern = text.lower(), pattern.lower()
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


_FILTERS: Mapping[str, Callable[[Job, str], bool]] = {
    "JOB_NAME": lambda job, value: _like(job.name, value),
    "JOB_DEFINITION": _of_definition,
    "BEFORE_CREATED_AT": lambda job, value: job.created_ms < int(value),
    "AFTER_CREATED_AT": lambda job, value: job.created_ms > int(value),
    "SHARE_IDENTIFIER": lambda job, value: job.spec.get("shareIdentifier") == value,
}
"""By name, whether a value of the filter matches (API Reference, ListJobs)."""


def _summary(job: Job) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "jobArn": job.arn,
        "jobId": job.id,
        "jobName": job.name,
        "createdAt": job.created_ms,
        "status": job.status,
        "statusReason": job.status_reason,
        "startedAt": job.started_ms,
        "stoppedAt": job.stopped_ms,
        "jobDefinition": job.spec["jobDefinition"],
        "shareIdentifier": job.spec["shareIdentifier"] or None,
    }
    if job.array:
        summary["arrayProperties"] = {"size": job.array.size}
    elif job.nodes:
        summary["nodeProperties"] = {"numNodes": len(job.nodes.children)}
    elif job.parent and job.parent.nodes:
        main = job is job.parent.nodes.main_node
        summary["nodeProperties"] = {"isMainNode": main, "nodeIndex": job.index}
    elif job.index is not None:
        summary["arrayProperties"] = {"index": job.index}
    ran = job.ran.get("container")
    if ran:
        summary["container"] = {key: ran[key] for key in ("exitCode", "reason") if key in ran}
    return summary
