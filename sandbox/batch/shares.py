"""Scheduling policies: how a queue's share identifiers take turns. No I/O of its own.

AWS weighs use over time as well; here what runs now counts, which gives the same turns to jobs
that run at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sandbox.batch import limits, tags
from sandbox.batch.paging import paged
from sandbox.batch.rules import refusal, unsupported
from sandbox.batch.store import Job, Resource, Store

_SHARE = re.compile(r"[A-Za-z0-9]{1,255}\*?|\*")


def create(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """CreateSchedulingPolicy."""
    name = request["name"]
    if not re.fullmatch(limits.NAME, name):
        raise refusal("legal names", f"name {name!r} is not a legal name")
    if name in store.policies:
        raise refusal("one of a name", "Object already exists")
    if request.get("quotaSharePolicy"):
        raise unsupported("quotaSharePolicy of scheduling policies")
    policy = _checked(request.get("fairsharePolicy") or {})
    tags.check(request.get("tags"))
    arn = store.account.arn("scheduling-policy", name)
    store.policies[name] = Resource(
        name, arn, {"name": name, "arn": arn, "fairsharePolicy": policy}
    )
    store.tags[arn] = dict(request.get("tags", {}))
    return {"name": name, "arn": arn}


def describe(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeSchedulingPolicies: those asked for that exist."""
    found = [p for p in map(store.policy, request["arns"]) if p]
    return {"schedulingPolicies": [p.detail | {"tags": dict(store.tags[p.arn])} for p in found]}


def list_all(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """ListSchedulingPolicies."""
    page, token = paged(list(store.policies.values()), request, limits.DESCRIBE_PAGE)
    return {"schedulingPolicies": [{"arn": p.arn} for p in page], "nextToken": token}


def update(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateSchedulingPolicy."""
    policy = existing(store, request["arn"])
    if request.get("fairsharePolicy"):
        policy.detail["fairsharePolicy"] = _checked(request["fairsharePolicy"])
    return {}


def delete(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteSchedulingPolicy: only where no queue uses it."""
    policy = existing(store, request["arn"])
    for queue in store.queues.values():
        if queue.detail.get("schedulingPolicyArn") == policy.arn:
            raise refusal(
                "policy from the start",
                f"Cannot delete, the scheduling policy is used by {queue.arn}",
            )
    del store.policies[policy.name]
    del store.tags[policy.arn]
    return {}


def existing(store: Store, arn: str) -> Resource:
    """Raises ClientError when there is no such policy."""
    found = store.policy(arn)
    if found is None:
        raise refusal("what is named exists", f"Scheduling policy {arn} does not exist")
    return found


def check_job(queue: Resource, request: dict[str, Any], waiting: Iterable[Job]) -> None:
    """A share identifier with each job of a fair-share queue, and with no other.

    `waiting` are the queue's jobs that are not over.
    """
    share = request.get("shareIdentifier")
    if queue.detail.get("schedulingPolicyArn"):
        if not share:
            raise refusal("shares", "shareIdentifier must be specified for a fair-share job queue")
        if not re.fullmatch(r"[A-Za-z0-9]{1,255}\*?", share):
            raise refusal(
                "shares", f"shareIdentifier {share!r} must be 1 to 255 letters and digits"
            )
        _check_active(waiting, share)
    elif share or request.get("schedulingPriorityOverride") is not None:
        raise refusal(
            "shares",
            "Job with shareIdentifier or schedulingPriority can only be submitted to job queue with "
            "fair share scheduling policy.",
        )


def next_turn(
    policy: Mapping[str, Any], waiting: Sequence[Job], use: Mapping[str, int]
) -> Job | None:
    """The job whose share has the least for its weight; in a share the greatest priority first.

    `use` is what each share has now.
    """
    return min(
        waiting,
        key=lambda job: (
            (use.get(share_of(job), 0) + 1) * _weight(policy, share_of(job)),
            -job.spec["schedulingPriority"],
            job.created_ms,
        ),
        default=None,
    )


def share_of(job: Job) -> str:
    return str(job.spec["shareIdentifier"])


def _check_active(waiting: Iterable[Job], share: str) -> None:
    """Another share must not be one too many (API Reference, CreateJobQueue)."""
    active: set[str] = set()
    for job in waiting:
        if share_of(job) == share:
            return
        active.add(share_of(job))
    limits.ACTIVE_SHARES.check(len(active) + 1)


def _refuse_overlaps(names: list[str]) -> None:
    """No entry is, or begins, another (API Reference, ShareAttributes)."""
    for place, name in enumerate(names):
        for other in names[:place]:
            if _covers(name, other) or _covers(other, name):
                raise refusal(
                    "no overlap of shares", f"the share identifiers {other} and {name} overlap"
                )


def _covers(name: str, share: str) -> bool:
    return share.startswith(name[:-1]) if name.endswith("*") else share == name


def _weight(policy: Mapping[str, Any], share: str) -> float:
    """The weight of the entry that matches; 1 without one."""
    for item in policy.get("shareDistribution", []):
        if _covers(item["shareIdentifier"], share):
            return float(item.get("weightFactor", 1.0))
    return 1.0


def _checked(policy: dict[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "shareDecaySeconds": 0,
        "computeReservation": 0,
        "shareDistribution": [],
    }
    policy = defaults | policy
    limits.SHARE_DECAY_S.check(policy["shareDecaySeconds"])
    limits.COMPUTE_RESERVATION.check(policy["computeReservation"])
    limits.SHARES.check(len(policy["shareDistribution"]))
    _refuse_overlaps([item["shareIdentifier"] for item in policy["shareDistribution"]])
    for item in policy["shareDistribution"]:
        if not _SHARE.fullmatch(item["shareIdentifier"]):
            raise refusal(
                "share identifiers", f"shareIdentifier {item['shareIdentifier']!r} is not legal"
            )
        if not 0.0001 <= item.get("weightFactor", 1.0) <= 999.9999:  # noqa: PLR2004 # API Reference, ShareAttributes
            raise refusal("share identifiers", "weightFactor must be between 0.0001 and 999.9999")
    return policy
