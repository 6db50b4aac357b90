"""What a job waits for: whole jobs, its own earlier child, or a child of another array. No I/O.

User Guide, Job dependencies: SEQUENTIAL (without a job id) lets the children of an array run one
after the other; N_TO_N lets each child wait for the child of the same index. Every end of a child
is looked at once by each array that waits for it, so that ten thousand pairs cost ten thousand
steps.
"""

from __future__ import annotations

from typing import Any

from sandbox.batch import limits, states
from sandbox.batch.rules import refusal
from sandbox.batch.store import Array, Job, Store

FAILED = "Dependent Job failed"
SEQUENTIAL, N_TO_N = "SEQUENTIAL", "N_TO_N"


def check(store: Store, request: dict[str, Any]) -> None:
    """Raises ClientError for dependsOn that AWS refuses."""
    depends = request.get("dependsOn", [])
    limits.DEPENDENCIES.check(len(depends))
    size = request.get("arrayProperties", {}).get("size")
    for item in depends:
        kind, job_id = item.get("type"), item.get("jobId")
        if kind and size is None:
            raise refusal("dependencies", f"a {kind} dependency is for array jobs")
        if not job_id and kind != SEQUENTIAL:
            raise refusal(
                "dependencies", "dependsOn.jobId is required, but for a SEQUENTIAL dependency"
            )
        if not job_id:
            continue
        if kind == SEQUENTIAL:
            raise refusal(
                "dependencies",
                "a SEQUENTIAL dependency has no jobId: it is on the job's own children",
            )
        other = store.look_at(job_id)
        if other is None:
            raise refusal("what is named exists", f"the job {job_id} in dependsOn does not exist")
        if kind == N_TO_N and (other.array is None or other.array.size != size):
            raise refusal(
                "dependencies",
                f"an N_TO_N dependency needs an array job of the same size, {size}: {job_id}",
            )


def settle(store: Store, job: Job, now_ms: int) -> None:
    """Lets a PENDING job, or those of its children whose turn it is, become RUNNABLE or fail."""
    status = job.array.unstarted_status if job.array else job.status
    if status == states.PENDING:
        _settle_whole(store, job, now_ms)
    if job.array and job.array.held:
        _settle_children(store, job, job.array, now_ms)


def _settle_whole(store: Store, job: Job, now_ms: int) -> None:
    whole = [d["jobId"] for d in job.spec["dependsOn"] if not d.get("type")]
    found = [store.look_at(job_id) for job_id in whole]
    if any(other is None or other.status == states.FAILED for other in found):
        fail(job, now_ms)
    elif all(other and other.status == states.SUCCEEDED for other in found):
        if job.array is None:
            job.move(states.RUNNABLE)
            return
        pairs = [d["jobId"] for d in job.spec["dependsOn"] if d.get("type") == N_TO_N]
        sequential = any(d.get("type") == SEQUENTIAL for d in job.spec["dependsOn"])
        if pairs or sequential:
            job.array.hold(pairs, first=len(pairs), others=len(pairs) + sequential)
        else:
            job.array.move_unstarted(states.RUNNABLE)


def _settle_children(store: Store, job: Job, array: Array, now_ms: int) -> None:
    if any(d.get("type") == SEQUENTIAL for d in job.spec["dependsOn"]):
        while new := array.ended_since(job.id, array):  # a failed child fails the next
            for index in new:
                _let_go(job, array, index + 1, array.look(job, index), now_ms)
    for job_id in list(array.pairs):
        other = store.look_at(job_id)
        if other is None or other.array is None:
            fail(job, now_ms)  # it was forgotten before its time
            return
        for index in array.ended_since(job_id, other.array):
            _let_go(job, array, index, other.array.look(other, index), now_ms)


def _let_go(job: Job, array: Array, index: int, other: Job, now_ms: int) -> None:
    if other.status == states.SUCCEEDED:
        array.release(index)
    elif index in array.held:
        child = job.child(index)
        del array.held[index]
        if child.status not in states.OVER:
            child.move(states.FAILED, FAILED)
            child.stopped_ms = now_ms


def fail(job: Job, now_ms: int) -> None:
    """Ends a job that waits for one that failed, with all its children."""
    if job.array:
        for child in job.array.take_unstarted(job):
            if child.status not in states.OVER:
                child.move(states.FAILED, FAILED)
                child.stopped_ms = now_ms
    else:
        job.move(states.FAILED, FAILED)
        job.stopped_ms = now_ms
