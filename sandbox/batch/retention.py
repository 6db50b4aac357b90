"""How long jobs that are over, and definitions out of use, are remembered. No I/O."""

from __future__ import annotations

from sandbox.batch import states
from sandbox.batch.store import Store

KEPT_MS = 7 * 86_400_000
"""User Guide, Job states: SUCCEEDED and FAILED jobs are there for at least seven days."""


INACTIVE_MS = 180 * 86_400_000
"""API Reference, DeregisterJobDefinition: what is INACTIVE is deleted after 180 days."""


def forget_definitions(store: Store, now_ms: int) -> None:
    """Forgets the definitions that have been INACTIVE for so long; their numbers stay used."""
    for arn, since in list(store.inactive.items()):
        if since + INACTIVE_MS <= now_ms:
            name, _, revision = arn.rpartition("/")[2].partition(":")
            store.definitions[name][int(revision) - 1] = None
            del store.inactive[arn]
            store.tags.pop(arn, None)


def forget(store: Store, now_ms: int) -> int:
    """Forgets the jobs that have been over for so long, but those that others still wait for."""
    waited_for = {
        item.get("jobId", "").rpartition("/")[2].partition(":")[0]
        for waiting in store.waiting.values()
        for job in waiting
        for item in job.spec["dependsOn"]
    }
    old = [
        job
        for job in store.jobs.values()
        if job.status in states.OVER
        and (job.stopped_ms or job.created_ms) + KEPT_MS <= now_ms
        and job.id not in waited_for
    ]
    for job in old:
        del store.jobs[job.id]
        store.tags.pop(job.arn, None)
    return len(old)
