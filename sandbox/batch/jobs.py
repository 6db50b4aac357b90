"""Jobs as clients see them: submit, describe, cancel, terminate. No I/O.

Reading changes nothing; states move in the scheduler.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from typing import Any

from sandbox.batch import dependencies, limits, nodes, states, tags, tasks
from sandbox.batch.definitions import (
    check_command,
    check_environment,
    check_requirements,
    check_retry,
    check_timeout,
)
from sandbox.batch.rules import refusal, unsupported
from sandbox.batch.shares import check_job
from sandbox.batch.store import Array, Job, Store, new_id

_UNSUPPORTED = (
    "eksPropertiesOverride",
    "consumableResourcePropertiesOverride",
)


def submit(store: Store, request: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """SubmitJob."""
    _check_request(request)
    queue = store.existing_queue(request["jobQueue"])
    if queue.detail["state"] != "ENABLED" or queue.detail["status"] == "DELETING":
        raise refusal("disabled queue", f"JobQueue {queue.arn} is not ENABLED")
    check_job(queue, request, store.waiting.get(queue.arn, ()))
    definition = store.definition(request["jobDefinition"])
    if definition["status"] != "ACTIVE":
        raise refusal("latest active", f"JobDefinition {request['jobDefinition']} is not ACTIVE")
    dependencies.check(store, request)
    _check_kind(definition, request)
    spec = _merge(definition, request) | {"jobQueue": queue.arn}
    tags.check(request.get("tags"))
    job_id = new_id()
    job = Job(job_id, store.account.arn("job", job_id), spec, now_ms)
    if "size" in request.get("arrayProperties", {}):
        job.array = Array(request["arrayProperties"]["size"])
    if definition["type"] == "multinode":
        properties, overrides = definition["nodeProperties"], request.get("nodeOverrides", {})
        job.nodes = nodes.make(
            job, properties, overrides, lambda c, o: _merge_container(c, o, spec["parameters"])
        )
    store.jobs[job_id] = job
    few = len(spec["tags"]) <= limits.TAGS.at_most  # else it is taken, and will fail
    store.tags[job.arn] = dict(spec["tags"] if few else request.get("tags", {}))
    store.waiting.setdefault(queue.arn, deque()).append(job)
    return {"jobArn": job.arn, "jobName": job.name, "jobId": job_id}


def describe(
    store: Store, request: dict[str, Any], seen: Callable[[Job], bool] = lambda _: True
) -> dict[str, Any]:
    """DescribeJobs: those that exist and are `seen` by now."""
    limits.DESCRIBE_JOBS.check(len(request["jobs"]))
    found = [store.look_at(job_id) for job_id in request["jobs"]]
    return {"jobs": [job_detail(store, job) for job in found if job and seen(job)]}


def cancel(store: Store, request: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """CancelJob: ends what has not started; what runs is left alone (API Reference)."""
    limits.REASON.check(len(request["reason"]))
    job = _existing(store, request["jobId"])
    if job.parent and job.parent.nodes:
        return {}  # a node does not wait by itself
    if job.array:
        job.cancelled = job.status not in states.OVER
        end_unstarted(job, request["reason"], now_ms, cancelled=True)
        for child in job.array.children.values():
            _cancel_one(child, request["reason"], now_ms)
    else:
        _cancel_one(job, request["reason"], now_ms)
    return {}


def terminate(store: Store, request: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """TerminateJob: ends what has not started, stops what runs."""
    limits.REASON.check(len(request["reason"]))
    terminate_all(_existing(store, request["jobId"]), request["reason"], now_ms)
    return {}


def bulk(store: Store, operation: Any, request: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """CancelJobs and TerminateJobs: each id by itself; a fault of one does not stop the others."""
    limits.BULK_JOBS.check(len(request["jobs"]))
    limits.REASON.check(len(request["reason"]))
    successful: list[str] = []
    errors: list[dict[str, Any]] = []
    for job_id in request["jobs"]:
        if store.look_at(job_id) is None:
            message = f"Job {job_id} does not exist"
            errors.append({"job": job_id, "code": "ClientException", "message": message})
        else:
            operation(store, {"jobId": job_id, "reason": request["reason"]}, now_ms)
            successful.append(job_id)
    return {"successful": successful, "errors": errors}


def terminate_all(job: Job, reason: str, now_ms: int) -> None:
    """Ends a job, or an array's children: what has begun is asked to stop."""
    if not job.array:
        _terminate_one(job, reason, now_ms)
    elif job.status not in states.OVER:
        job.terminated = True
        job.status_reason = reason
        end_unstarted(job, reason, now_ms, terminated=True)
        for child in job.array.children.values():
            _terminate_one(child, reason, now_ms)


def end_unstarted(
    job: Job, reason: str, now_ms: int, *, cancelled: bool = False, terminated: bool = False
) -> None:
    """Ends the children of an array whose turn has not come."""
    assert job.array is not None
    for child in job.array.take_unstarted(job):
        if child.status not in states.OVER:
            child.cancelled, child.terminated = cancelled, terminated
            end(child, reason, now_ms)


def end(job: Job, reason: str, now_ms: int) -> None:
    """A job that never started has FAILED."""
    job.move(states.FAILED, reason)
    job.stopped_ms = now_ms


def job_detail(store: Store, job: Job) -> dict[str, Any]:
    """What DescribeJobs says of a job."""
    spec = job.spec
    detail: dict[str, Any] = {
        "jobArn": job.arn,
        "jobName": job.name,
        "jobId": job.id,
        "jobQueue": spec["jobQueue"],
        "status": job.status,
        "statusReason": job.status_reason,
        "attempts": list(job.attempts),
        "createdAt": job.created_ms,
        "startedAt": job.started_ms or 0,
        "stoppedAt": job.stopped_ms,
        "retryStrategy": spec["retryStrategy"],
        "dependsOn": spec.get("dependsOn", []),
        "jobDefinition": spec["jobDefinition"],
        "parameters": spec["parameters"],
        "shareIdentifier": spec["shareIdentifier"] or None,
        "schedulingPriority": spec["schedulingPriority"] if spec["shareIdentifier"] else None,
        "timeout": spec.get("timeout"),
        "tags": dict(store.tags.get((job.parent or job).arn, {})),
        "propagateTags": spec["propagateTags"],
        "platformCapabilities": ["EC2"],
        "isCancelled": job.cancelled,
        "isTerminated": job.terminated,
    }
    if job.nodes:
        detail["nodeProperties"] = spec["nodeProperties"]
    elif "container" in spec:
        detail["container"] = spec["container"] | job.ran.get("container", {})
    else:
        detail["ecsProperties"] = _task_detail(spec["ecsProperties"], job.ran)
    if job.parent and job.parent.nodes:
        detail["nodeDetails"] = {
            "nodeIndex": job.index,
            "isMainNode": job is job.parent.nodes.main_node,
        }
    if job.array:
        detail["arrayProperties"] = {
            "statusSummary": dict.fromkeys(states.JOB_MOVES, 0) | job.array.counts,
            "size": job.array.size,
            "statusSummaryLastUpdatedAt": job.stopped_ms or job.created_ms,
        }
    elif job.parent and job.parent.array:
        detail["arrayProperties"] = {"index": job.index, "statusSummary": {}}
    return detail


def _merge(definition: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """The job: what the definition says with the request's overrides."""
    parameters = {**definition.get("parameters", {}), **request.get("parameters", {})}
    own: dict[str, Any] = {}
    if definition["type"] == "multinode":
        properties, overrides = definition["nodeProperties"], request.get("nodeOverrides", {})
        own["nodeProperties"] = properties | {
            "numNodes": overrides.get("numNodes", properties["numNodes"])
        }
        own["instanceType"] = nodes.instance_type(properties, overrides)
        own["overrides"] = []
    else:
        own |= _merge_task(definition, request, parameters)
    timeout = request.get("timeout") or definition.get("timeout")
    inherited = dict(definition.get("tags", {})) if definition.get("propagateTags") else {}
    return {
        "jobName": request["jobName"],
        "jobDefinition": definition["jobDefinitionArn"],
        "definitionName": definition["jobDefinitionName"],
        "arrayProperties": request.get("arrayProperties", {}),
        "dependsOn": request.get("dependsOn", []),
        "retryStrategy": {"attempts": 1, "evaluateOnExit": []}
        | (request.get("retryStrategy") or definition.get("retryStrategy") or {}),
        "parameters": parameters,
        "propagateTags": request.get("propagateTags", definition.get("propagateTags", False)),
        **own,
        "tags": inherited | request.get("tags", {}),
        "shareIdentifier": request.get("shareIdentifier", ""),
        "schedulingPriority": request.get(
            "schedulingPriorityOverride", definition.get("schedulingPriority", 0)
        ),
        **({"timeout": timeout} if timeout else {}),
    }


def _merge_task(
    definition: dict[str, Any], request: dict[str, Any], parameters: dict[str, str]
) -> dict[str, Any]:
    """The containers of a job that has no nodes, and the overrides as ECS gets them."""
    if "ecsProperties" in definition:
        overrides = request.get("ecsPropertiesOverride", {})
        return {
            "ecsProperties": tasks.merge(
                definition["ecsProperties"],
                overrides,
                lambda container, own: _merge_container(container, own, parameters),
            ),
            "overrides": tasks.override_of(overrides),
        }
    overrides = request.get("containerOverrides", {})
    container = definition["containerProperties"]
    return {
        "container": _merge_container(container, overrides, parameters),
        "overrides": [{"name": tasks.DEFAULT_NAME, **overrides}],
    }


def _task_detail(properties: dict[str, Any], ran: dict[str, Any]) -> dict[str, Any]:
    """The job's ecsProperties with where its containers run, and how they ended."""
    task = properties["taskProperties"][0]
    if "taskProperties" not in ran:
        return properties
    host = ran["taskProperties"][0]
    pairs = zip(task["containers"], host["containers"], strict=True)
    return {"taskProperties": [task | host | {"containers": [own | end for own, end in pairs]}]}


def _merge_container(
    container: dict[str, Any], overrides: dict[str, Any], parameters: dict[str, str]
) -> dict[str, Any]:
    container = dict(container)
    if overrides.get("command"):
        container["command"] = overrides["command"]
    pairs = {p["name"]: p.get("value", "") for p in container.get("environment", [])}
    pairs |= {p["name"]: p.get("value", "") for p in overrides.get("environment", [])}
    container["environment"] = [{"name": k, "value": v} for k, v in pairs.items()]
    requirements = {r["type"]: r["value"] for r in container.get("resourceRequirements", [])}
    requirements |= {r["type"]: r["value"] for r in overrides.get("resourceRequirements", [])}
    container["resourceRequirements"] = [
        {"type": kind, "value": value} for kind, value in requirements.items()
    ]
    for kind, old in (("VCPU", "vcpus"), ("MEMORY", "memory")):
        if overrides.get(old) and container.get(old) and kind not in requirements:
            container[old] = overrides[
                old
            ]  # else it is ignored (API Reference, ContainerOverrides)
    container["command"] = [_refer(a, parameters) for a in container.get("command", [])]
    return container


def _refer(argument: str, parameters: dict[str, str]) -> str:
    """`Ref::name` is the parameter of that name (User Guide, Job definition parameters).

    Raises ClientError where there is none.
    """
    if not argument.startswith("Ref::"):
        return argument
    name = argument.removeprefix("Ref::")
    if name not in parameters:
        raise refusal(
            "parameters", f"Unable to substitute value. No parameter found for reference {name}"
        )
    return parameters[name]


def _check_request(request: dict[str, Any]) -> None:
    limits.PAYLOAD_BYTES.check(len(json.dumps(request, separators=(",", ":")).encode()))
    if not re.fullmatch(limits.NAME, request["jobName"]):
        raise refusal(
            "legal names",
            "Error executing request, Exception : Job name should match valid pattern",
        )
    for member in _UNSUPPORTED:
        if request.get(member) is not None:
            raise unsupported(f"{member} of jobs")
    _check_overrides(request.get("containerOverrides", {}))
    for container in tasks.override_of(request.get("ecsPropertiesOverride", {})):
        _check_overrides(container)
    check_retry(request.get("retryStrategy"))
    check_timeout(request.get("timeout"))
    limits.SCHEDULING_PRIORITY.check(request.get("schedulingPriorityOverride", 0))
    if "size" in request.get("arrayProperties", {}):
        limits.ARRAY_SIZE.check(request["arrayProperties"]["size"])


def _check_kind(definition: dict[str, Any], request: dict[str, Any]) -> None:
    """Each kind of job has its own members (API Reference, SubmitJob)."""
    multinode = definition["type"] == "multinode"
    overrides = request.get("nodeOverrides")
    if overrides and not multinode:
        raise refusal("kinds of overrides", "nodeOverrides is for multi-node jobs")
    if not multinode:
        _check_task_overrides(definition, request)
        return
    for member in ("arrayProperties", "containerOverrides", "ecsPropertiesOverride"):
        if request.get(member):
            raise refusal("kinds of overrides", f"{member} is not for multi-node jobs")
    nodes.check_overrides(definition["nodeProperties"], overrides or {})
    for item in (overrides or {}).get("nodePropertyOverrides", []):
        _check_overrides(item.get("containerOverrides", {}) | {"instanceType": None})
        for container in tasks.override_of(item.get("ecsPropertiesOverride", {})):
            _check_overrides(container)


def _check_task_overrides(definition: dict[str, Any], request: dict[str, Any]) -> None:
    """Overrides are of the definition's own kind."""
    properties = definition.get("ecsProperties")
    if not properties:
        if request.get("ecsPropertiesOverride"):
            raise refusal(
                "kinds of overrides",
                "ecsPropertiesOverride is for job definitions with ecsProperties",
            )
        return
    if request.get("containerOverrides"):
        raise refusal(
            "kinds of overrides",
            "containerOverrides is for job definitions with containerProperties",
        )
    if request.get("ecsPropertiesOverride"):
        tasks.check_overrides(properties, request["ecsPropertiesOverride"])


def _check_overrides(overrides: dict[str, Any]) -> None:
    if overrides.get("instanceType"):
        raise refusal("kinds of overrides", "instanceType is for multi-node jobs")
    check_environment(overrides.get("environment", []))
    check_command(overrides.get("command", []))
    check_requirements(overrides.get("resourceRequirements", []))
    limits.VCPUS.check(overrides.get("vcpus", 1))
    limits.MEMORY_MIB.check(overrides.get("memory", limits.MEMORY_MIB.at_least))


def _existing(store: Store, job_id: str) -> Job:
    job = store.find_job(job_id)
    if job is None:
        raise refusal("what is named exists", f"Job {job_id} does not exist")
    return job


def _terminate_one(job: Job, reason: str, now_ms: int) -> None:
    if job.status in states.OVER:
        return
    if job.parent and job.parent.nodes and job.status not in {states.STARTING, states.RUNNING}:
        return  # a node does not wait by itself
    job.terminated = True
    if job.status in {states.STARTING, states.RUNNING}:
        job.stop = reason
    else:
        end(job, reason, now_ms)


def _cancel_one(job: Job, reason: str, now_ms: int) -> None:
    if job.status in {states.SUBMITTED, states.PENDING, states.RUNNABLE}:
        job.cancelled = True
        end(job, reason, now_ms)
