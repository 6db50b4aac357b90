"""One attempt of a job: its variables, its log stream, its process, and the words for its end."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.batch import limits
from sandbox.batch.account import DEFAULT_LOG_GROUP, Account
from sandbox.batch.executor import Attempt, Executor, Outcome
from sandbox.batch.machines import Machine, Need
from sandbox.batch.store import Job, Resource, new_id
from sandbox.conditions import Conditions

NO_COMMAND = ("true",)
"""An image's own command, which nobody can know here."""


TIMED_OUT = "Job attempt duration exceeded timeout"
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"
MAIN_ENDED = "Main node exited"


class Running(NamedTuple):
    """An attempt that has a slot, of a job or of one node of a job."""

    job: Job
    queue_name: str
    environment: Resource
    machine: Machine
    need: Need
    stop: threading.Event
    reasons: list[str]
    """Why it is being stopped, if it is."""
    task_id: str
    main_address: str | None = None
    """Where a node finds the main node; None on the main node itself."""

    def end(self, reason: str) -> None:
        """Asks it to stop; of several reasons the first counts."""
        self.reasons.append(reason)
        self.stop.set()


class Ended(NamedTuple):
    """What AWS says of an attempt that is over."""

    status_reason: str
    container: dict[str, Any]
    succeeded: bool
    may_retry: bool


def begin(
    job: Job,
    queue_name: str,
    environment: Resource,
    machine: Machine,
    need: Need,
    main_address: str | None = None,
) -> Running:
    """An attempt that is about to run."""
    return Running(
        job=job,
        queue_name=queue_name,
        environment=environment,
        machine=machine,
        need=need,
        stop=threading.Event(),
        reasons=[],
        task_id=new_id().replace("-", ""),
        main_address=main_address,
    )


def run(
    running: Running,
    *,
    account: Account,
    executor: Executor,
    conditions: Conditions,
    work_dir: Path,
    started: Callable[[int], None],
) -> Ended:
    """Runs the attempt to its end; `started` is called with its process's id."""
    fault = _fault(running, account, conditions)
    outcome = Outcome(None, fault) if fault else _run(running, account, executor, work_dir, started)
    container = describe_container(running, account)
    status_reason, reason, exit_code = _words(running, outcome)
    if reason is not None:
        container["reason"] = reason
    if exit_code is not None:
        container["exitCode"] = exit_code
    return Ended(
        status_reason=status_reason,
        container=container,
        succeeded=exit_code == 0 and not running.reasons,
        may_retry=TIMED_OUT not in running.reasons[:1],  # User Guide, Job timeouts
    )


def describe_container(running: Running, account: Account) -> dict[str, Any]:
    """Where the attempt runs and writes to."""
    environment, instance_id = running.environment, running.machine.id
    node = running.job.parent and running.job.parent.nodes
    address = {"privateIpv4Address": running.machine.address}
    return {
        "logStreamName": _log_names(running)[1],
        **({"networkInterfaces": [address]} if node else {}),
        "containerInstanceArn": f"arn:aws:ecs:{account.region}:{account.account_id}:"
        f"container-instance/{environment.name}/{instance_id}",
        "taskArn": f"arn:aws:ecs:{account.region}:{account.account_id}:"
        f"task/{environment.name}/{running.task_id}",
    }


def _fault(running: Running, account: Account, conditions: Conditions) -> str | None:
    """What AWS finds only once it has taken the job: why it can't start, None if it can."""
    job = running.job
    if _overrides_length(job) > limits.OVERRIDES.at_most:
        return f"Container Overrides length must be at most {limits.OVERRIDES.at_most}"
    if job.spec["propagateTags"] and len(job.spec["tags"]) > limits.TAGS.at_most:
        return f"The job and its definition have more than {limits.TAGS.at_most} tags to propagate"
    image = job.spec["container"]["image"]
    if conditions.lacks_image(image):
        conditions.note("image", job=job.id, image=image)
        return (
            "CannotPullContainerError: pull image manifest has been retried 1 time(s): "
            f"failed to resolve ref {image}: not found"
        )
    if not account.open_log_stream(*_log_names(running)):
        return "CannotStartContainerError: The specified log group does not exist."
    return _role_fault(job, account)


def _role_fault(job: Job, account: Account) -> str | None:
    """Why ECS can't use the job's roles for what they are there, None if it can."""
    container = job.spec["container"]
    for key in ("executionRoleArn", "jobRoleArn"):
        role = container.get(key)
        if role and account.role_fault(role, "ecs-tasks.amazonaws.com"):
            return (
                f"ECS was unable to assume the role '{role}' that was provided for this task. "
                "Please verify that the role being passed has the proper trust relationship"
            )
    for secret in container.get("secrets", []):
        fault = account.secret_fault(container.get("executionRoleArn", ""), secret["valueFrom"])
        if fault:
            return (
                "ResourceInitializationError: unable to pull secrets or registry auth: "
                f"execution resource retrieval failed: {fault}"
            )
    return None


def _run(
    running: Running,
    account: Account,
    executor: Executor,
    work_dir: Path,
    started: Callable[[int], None],
) -> Outcome:
    job = running.job
    group, stream = _log_names(running)
    folder = work_dir / running.task_id
    own = {"HOME": str(folder), "PWD": str(folder)}
    return executor.run(
        Attempt(
            command=list(job.spec["container"]["command"] or NO_COMMAND),
            environment=_environment(running, account) | _secrets(job, account) | own,
            folder=folder,
        ),
        started=started,
        stop=running.stop,
        log=lambda lines: account.put_log_events(group, stream, lines),
    )


def _overrides_length(job: Job) -> int:
    """As ECS counts: with the JSON around the values."""
    overrides = {"containerOverrides": [{"name": "default", **job.spec["overrides"]}]}
    return len(json.dumps(overrides, separators=(",", ":"), ensure_ascii=False))


def _environment(running: Running, account: Account) -> dict[str, str]:
    """The job's variables and AWS's; of the sandbox's own only where programs lie."""
    job = running.job
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    pairs = job.spec["container"]["environment"]
    environment |= {pair["name"]: pair["value"] for pair in pairs}
    environment |= {
        "AWS_BATCH_JOB_ID": job.id,
        "AWS_BATCH_JOB_ATTEMPT": str(len(job.attempts) + 1),
        "AWS_BATCH_CE_NAME": running.environment.name,
        "AWS_BATCH_JQ_NAME": running.queue_name,
    }
    environment |= _way_to_aws(running, account)
    if job.parent and job.parent.array:
        environment["AWS_BATCH_JOB_ARRAY_INDEX"] = str(job.index)
        environment["AWS_BATCH_JOB_ARRAY_SIZE"] = str(job.parent.array.size)
    if job.parent and job.parent.nodes:
        environment |= {
            "AWS_BATCH_JOB_NODE_INDEX": str(job.index),
            "AWS_BATCH_JOB_MAIN_NODE_INDEX": str(job.parent.nodes.main),
            "AWS_BATCH_JOB_NUM_NODES": str(len(job.parent.nodes.children)),
        }
        if running.main_address:  # not on the main node (User Guide, Environment variables)
            environment["AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"] = running.main_address
    return environment


def _way_to_aws(running: Running, account: Account) -> dict[str, str]:
    """Where a job finds its instance's metadata and, with a job role, AWS and credentials for it."""
    endpoint = account.endpoint()
    if endpoint is None:
        return {}
    metadata = f"{endpoint}/_metadata/{running.machine.secret}"
    found = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
    if running.job.spec["container"].get("jobRoleArn"):
        found |= {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata}/credentials/{running.job.id}",
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": account.region,
            "AWS_DEFAULT_REGION": account.region,
        }
    return found


def _secrets(job: Job, account: Account) -> dict[str, str]:
    found = {
        secret["name"]: account.secret_value(secret["valueFrom"])
        for secret in job.spec["container"].get("secrets", [])
    }
    return {name: value for name, value in found.items() if value is not None}


def _log_names(running: Running) -> tuple[str, str]:
    spec = running.job.spec
    options = spec["container"].get("logConfiguration", {}).get("options", {})
    prefix = options.get("awslogs-stream-prefix", spec["definitionName"])
    group = options.get("awslogs-group", DEFAULT_LOG_GROUP)
    return group, f"{prefix}/default/{running.task_id}"


def _words(running: Running, outcome: Outcome) -> tuple[str, str | None, int | None]:
    """The status reason, the container's reason and the exit code, as AWS words them."""
    if outcome.fault:
        return "Task failed to start", outcome.fault, None
    if running.reasons[:1] == [OUT_OF_MEMORY]:
        return "Essential container in task exited", OUT_OF_MEMORY, outcome.exit_code
    if running.reasons:
        lost = running.reasons[0].startswith("Host EC2")
        return running.reasons[0], None, None if lost else outcome.exit_code
    return "Essential container in task exited", None, outcome.exit_code
