"""How jobs, queues and environments get on where time alone decides. No I/O.

Whoever calls holds the store's lock.
"""

from __future__ import annotations

from sandbox.batch import dependencies, states
from sandbox.batch.attempts import TIMED_OUT, Ended, Running
from sandbox.batch.jobs import end
from sandbox.batch.retries import grants_retry
from sandbox.batch.store import Array, Job, Resource, Store


def settle(resource: Resource) -> None:
    """A change of a queue or an environment is through."""
    if resource.faults:
        resource.move("INVALID", "CLIENT_ERROR - " + "; ".join(resource.faults))
    else:
        kind = "JobQueue" if "jobQueueName" in resource.detail else "ComputeEnvironment"
        resource.move("VALID", f"{kind} Healthy")


def settle_job(store: Store, job: Job, now_ms: int) -> None:
    """A job's next state, where nothing has to run for it."""
    depends = job.spec["dependsOn"]
    if job.status == states.SUBMITTED:
        job.move(states.PENDING if depends or job.array else states.RUNNABLE)
        if job.array:
            job.array.move_unstarted(states.PENDING if depends else states.RUNNABLE)
    if depends:
        dependencies.settle(store, job, now_ms)
    if job.array and job.status == states.PENDING:
        _settle_array(job, job.array, now_ms)


def _settle_array(job: Job, array: Array, now_ms: int) -> None:
    failed = array.counts.get(states.FAILED, 0)
    if failed + array.counts.get(states.SUCCEEDED, 0) == array.size:
        reason = job.status_reason or ("Array Child Job failed" if failed else None)
        job.move(states.FAILED if failed else states.SUCCEEDED, reason)
        job.stopped_ms = now_ms


def give_up(queue: Resource, job: Job, now_ms: int) -> None:
    """The queue's own limits on waiting (API Reference, JobStateTimeLimitAction)."""
    for action in queue.detail["jobStateTimeLimitActions"]:
        blocked = job.blocked_ms is not None and (job.status_reason or "").startswith(
            action["reason"]
        )
        if blocked and now_ms - job.blocked_ms >= action["maxTimeSeconds"] * 1000:  # type: ignore[operator] # blocked: it is set
            job.cancelled = True
            reason = f"Canceled by JobStateTimeLimit action due to reason: {action['reason']}"
            end(job, reason, now_ms)
            return


def stop_in_time(running: Running, now_ms: int) -> None:
    """Ends an attempt that is to be stopped, or whose time is up."""
    whole = running.job.parent if running.job.parent and running.job.parent.nodes else None
    job = whole or running.job
    timeout = job.spec.get("timeout", {}).get("attemptDurationSeconds")
    if running.job.stop or job.stop:
        running.end(running.job.stop or job.stop or "")
    elif timeout and job.started_ms and now_ms - job.started_ms >= timeout * 1000:
        running.end(TIMED_OUT)


def note_attempt(job: Job, ended: Ended, now_ms: int) -> None:
    """The attempt is over, and the job's last one."""
    if not job.nodes:
        job.ran = ended.ran
    job.attempts.append(
        {
            **ended.ran,
            "startedAt": job.started_ms or now_ms,
            "stoppedAt": now_ms,
            "statusReason": ended.status_reason,
        }
    )


def gets_another(job: Job, ended: Ended) -> bool:
    """Whether the job's retry strategy grants another attempt after that one."""
    return not job.terminated and grants_retry(
        job.spec["retryStrategy"],
        len(job.attempts),
        status_reason=ended.status_reason,
        reason=ended.reason,
        exit_code=ended.exit_code,
    )
