"""Whose turn it is in a queue: first come, first served. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from sandbox.batch import limits, states
from sandbox.batch.store import Array, Front, Job, Store

FRONT_MS = 1000
"""A snapshot is no older than that; AWS makes one now and then, too."""


def runnable(job: Job, most: int) -> list[Job]:
    """The job, or the first of its children that could start now, in their order."""
    array = job.array
    if array is None:
        return [job] if job.status == states.RUNNABLE else []
    while array.again and array.again[0].status != states.RUNNABLE:
        array.again.popleft()  # it was ended before its turn
    found = [child for child in islice(array.again, most) if child.status == states.RUNNABLE]
    if array.unstarted_status == states.RUNNABLE:
        while array.unstarted and len(found) < most:
            children = [job.child(i) for i in islice(array.unstarted, most - len(found))]
            ended = [child for child in children if child.status != states.RUNNABLE]
            if not ended:
                return found + children
            for child in ended:
                assert child.index is not None
                array.unstarted.remove(child.index)
    return found


def front(old: Front | None, waiting: Iterable[Job], now_ms: int) -> Front:
    """The jobs at the head of a queue; the old one where it is not old enough."""
    if old and now_ms - old.at_ms < FRONT_MS:
        return old
    arns = list(islice(_arns(waiting), limits.SNAPSHOT_JOBS.at_most))
    if old is None:
        return Front(now_ms, dict.fromkeys(arns, now_ms))
    before = list(old.since_ms)
    since = {
        arn: old.since_ms[arn] if place < len(before) and before[place] == arn else now_ms
        for place, arn in enumerate(arns)
    }
    return Front(now_ms, since)


def snapshot(store: Store, request: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """GetJobQueueSnapshot: the first hundred RUNNABLE jobs of a queue."""
    queue = store.existing_queue(request["jobQueue"])
    found = store.fronts.get(queue.arn) or Front(now_ms, {})
    return {
        "frontOfQueue": {
            "jobs": [
                {"jobArn": arn, "earliestTimeAtPosition": since}
                for arn, since in found.since_ms.items()
            ],
            "lastUpdatedAt": found.at_ms,
        }
    }


def _arns(waiting: Iterable[Job]) -> Iterator[str]:
    for job in waiting:
        if job.array:
            yield from _children(job, job.array)
        elif job.status == states.RUNNABLE:
            yield job.arn


def _children(job: Job, array: Array) -> Iterator[str]:
    yield from (child.arn for child in array.again if child.status == states.RUNNABLE)
    if array.unstarted_status == states.RUNNABLE:
        for index in array.unstarted:
            if array.look(job, index).status == states.RUNNABLE:
                yield f"{job.arn}:{index}"
