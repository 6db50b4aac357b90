"""Job queues: what AWS takes, refuses, and does with them. No I/O."""

from __future__ import annotations

import re
from typing import Any

from sandbox.batch import limits, tags
from sandbox.batch.environments import instance_types
from sandbox.batch.instances import is_arm
from sandbox.batch.paging import paged, refuse_both
from sandbox.batch.rules import refusal, unsupported
from sandbox.batch.shares import existing as existing_policy
from sandbox.batch.store import Resource, Store

TIME_LIMIT_REASONS = frozenset(
    {
        "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
        "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
        "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
    }
)


def create(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """CreateJobQueue."""
    name = request["jobQueueName"]
    if not re.fullmatch(limits.NAME, name):
        raise refusal("legal names", f"jobQueueName {name!r} is not a legal name")
    if name in store.queues:
        raise refusal("one of a name", "Object already exists")
    limits.JOB_QUEUES.check(len(store.queues) + 1)
    _refuse_unknown(request)
    detail = {
        "jobQueueName": name,
        "jobQueueArn": store.account.arn("job-queue", name),
        "state": request.get("state", "ENABLED"),
        "status": "CREATING",
        "priority": request["priority"],
        "computeEnvironmentOrder": _order(store, request.get("computeEnvironmentOrder", [])),
        "jobStateTimeLimitActions": _actions(request.get("jobStateTimeLimitActions", [])),
        "jobQueueType": "ECS",
    }
    if request.get("schedulingPolicyArn"):
        policy = existing_policy(store, request["schedulingPolicyArn"])
        detail["schedulingPolicyArn"] = policy.arn
    limits.PRIORITY.check(request["priority"])
    tags.check(request.get("tags"))
    queue = Resource(name, detail["jobQueueArn"], detail)
    store.queues[name] = queue
    store.tags[queue.arn] = dict(request.get("tags", {}))
    return {"jobQueueName": name, "jobQueueArn": queue.arn}


def describe(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeJobQueues: those asked for that exist, or all."""
    refuse_both(request, "jobQueues")
    wanted = request.get("jobQueues")
    found = [q for q in map(store.queue, wanted) if q] if wanted else list(store.queues.values())
    page, token = paged(found, request, limits.DESCRIBE_PAGE)
    return {
        "jobQueues": [q.detail | {"tags": dict(store.tags[q.arn])} for q in page],
        "nextToken": token,
    }


def update(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateJobQueue."""
    queue = store.existing_queue(request["jobQueue"])
    _refuse_while_changing(queue)
    _refuse_unknown(request)
    changes: dict[str, Any] = {}
    if "priority" in request:
        limits.PRIORITY.check(request["priority"])
        changes["priority"] = request["priority"]
    if "computeEnvironmentOrder" in request:
        changes["computeEnvironmentOrder"] = _order(store, request["computeEnvironmentOrder"])
    if "jobStateTimeLimitActions" in request:
        changes["jobStateTimeLimitActions"] = _actions(request["jobStateTimeLimitActions"])
    if request.get("schedulingPolicyArn"):
        if "schedulingPolicyArn" not in queue.detail:
            raise refusal(
                "policy from the start",
                "a queue that was made without a scheduling policy can't get one",
            )
        policy = existing_policy(store, request["schedulingPolicyArn"])
        changes["schedulingPolicyArn"] = policy.arn
    if "state" in request:
        changes["state"] = request["state"]
    queue.detail |= changes
    queue.move("UPDATING")
    return {"jobQueueName": queue.name, "jobQueueArn": queue.arn}


def delete(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteJobQueue: only when DISABLED. Its jobs are terminated."""
    queue = store.existing_queue(request["jobQueue"])
    _refuse_while_changing(queue)
    if queue.detail["state"] != "DISABLED":
        raise refusal("queue delete order", "Cannot delete, job queue state must be DISABLED")
    queue.move("DELETING")
    return {}


def _refuse_unknown(request: dict[str, Any]) -> None:
    if request.get("serviceEnvironmentOrder"):
        raise unsupported("serviceEnvironmentOrder of job queues")
    if request.get("jobQueueType", "ECS") != "ECS":
        raise unsupported("job queues of another type than ECS")


def _refuse_while_changing(queue: Resource) -> None:
    if queue.detail["status"] in {"CREATING", "UPDATING", "DELETING"}:
        raise refusal("one change at a time", "Cannot update, resource is being modified")


def _order(store: Store, order: list[dict[str, Any]]) -> list[dict[str, Any]]:
    limits.ENVIRONMENTS_PER_QUEUE.check(len(order))
    if len({item["order"] for item in order}) < len(order):
        raise refusal("environments of a queue", "computeEnvironmentOrder has an order twice")
    environments = [store.existing_environment(item["computeEnvironment"]) for item in order]
    if len({environment.arn for environment in environments}) < len(order):
        raise refusal(
            "environments of a queue", "computeEnvironmentOrder has a compute environment twice"
        )
    for environment in environments:
        if environment.detail["status"] not in {"VALID", "UPDATING"}:
            raise refusal("environments of a queue", f"{environment.name} is not VALID")
    types = [found for environment in environments for found in instance_types(environment)]
    if len({is_arm(found.name) for found in types}) > 1:
        raise refusal(
            "one architecture",
            "all compute environments of a job queue must be of one architecture",
        )
    resolved = [
        {"order": item["order"], "computeEnvironment": environment.arn}
        for item, environment in zip(order, environments, strict=True)
    ]
    return sorted(resolved, key=lambda item: item["order"])


def _actions(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for action in actions:
        limits.STATE_TIME_LIMIT_S.check(action["maxTimeSeconds"])
        if action["action"] != "CANCEL":
            raise refusal(
                "cancel only",
                f"jobStateTimeLimitActions.action is {action['action']}: queues with compute "
                "environments have CANCEL only",
            )
        if action["reason"] not in TIME_LIMIT_REASONS:
            raise refusal(
                "time limits",
                f"jobStateTimeLimitActions.reason {action['reason']!r}: the reasons are "
                f"{', '.join(sorted(TIME_LIMIT_REASONS))}",
            )
    if len({action["reason"] for action in actions}) < len(actions):
        raise refusal("time limits", "jobStateTimeLimitActions has a reason twice")
    return actions
