"""One attempt of a job: its variables, its log stream, its process, and the words for its end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.batch import limits
from sandbox.batch.account import DEFAULT_LOG_GROUP, Account
from sandbox.batch.containers import ContainerExecutor
from sandbox.batch.executor import Attempt, Executor, Outcome
from sandbox.batch.machines import Machine, Need
from sandbox.batch.placement import need_of
from sandbox.batch.sequence import Ending, Part, run_all
from sandbox.batch.store import Job, Resource, new_id
from sandbox.batch.tasks import containers
from sandbox.conditions import Conditions

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
    parts: list[Part]
    """Its containers."""
    reasons: list[str]
    """Why it is being stopped, if it is."""
    changed: threading.Condition
    """Notified when a container has begun or ended, or is to end."""
    pids: list[int]
    """The processes of its containers."""
    task_id: str
    main_address: str | None = None
    """Where a node finds the main node; None on the main node itself."""

    def end(self, reason: str) -> None:
        """Asks it to stop; of several reasons the first counts."""
        self.reasons.append(reason)
        with self.changed:
            for part in self.parts:
                part.stop.set()
            self.changed.notify_all()


class Ended(NamedTuple):
    """What AWS says of an attempt that is over."""

    status_reason: str
    ran: dict[str, Any]
    """Where it ran and how its containers ended, as DescribeJobs says it of an attempt."""
    reason: str | None
    exit_code: int | None
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
    task_id = new_id().replace("-", "")
    return Running(
        job=job,
        queue_name=queue_name,
        environment=environment,
        machine=machine,
        need=need,
        parts=[
            Part(
                container=container,
                memory_mib=need_of(container).memory_mib,
                folder=f"{task_id}.{number}" if number else task_id,
                stop=threading.Event(),
                reasons=[],
            )
            for number, container in enumerate(containers(job.spec))
        ],
        reasons=[],
        changed=threading.Condition(),
        pids=[],
        task_id=task_id,
        main_address=main_address,
    )


def run(
    running: Running,
    *,
    account: Account,
    executor: Executor | ContainerExecutor,
    conditions: Conditions,
    work_dir: Path,
    started: Callable[[Part, int], None],
) -> Ended:
    """Runs the attempt to its end; `started` is called with each container's process id."""
    ending = _fault(running, account, conditions)
    if ending is None:

        def run_one(part: Part, note_start: Callable[[], None]) -> Outcome:
            def tell(pid: int) -> None:
                started(part, pid)
                note_start()

            return _run(running, part, account, executor, work_dir, tell)

        ending = run_all(running.parts, running.changed, run_one)
    status_reason, reason, exit_code = _words(running, ending)
    return Ended(
        status_reason=status_reason,
        ran=describe(running, account, ending),
        reason=reason,
        exit_code=exit_code,
        succeeded=exit_code == 0 and not running.reasons,
        may_retry=TIMED_OUT not in running.reasons[:1],  # User Guide, Job timeouts
    )


def describe(running: Running, account: Account, ending: Ending | None = None) -> dict[str, Any]:
    """Where the attempt runs and writes to, and how it ended if it has."""
    environment, instance_id = running.environment, running.machine.id
    ecs = f"arn:aws:ecs:{account.region}:{account.account_id}"
    host = {
        "containerInstanceArn": f"{ecs}:container-instance/{environment.name}/{instance_id}",
        "taskArn": f"{ecs}:task/{environment.name}/{running.task_id}",
    }
    node = running.job.parent and running.job.parent.nodes
    addresses = [{"privateIpv4Address": running.machine.address}]
    found: list[dict[str, Any]] = []
    for number, part in enumerate(running.parts):
        own: dict[str, Any] = {"logStreamName": _log_names(running, part)[1]}
        if node:
            own["networkInterfaces"] = addresses
        if ending:
            own |= _end_of(running, part, ending.outcomes[number])
        found.append(own)
    if "container" in running.job.spec:
        return {"container": found[0] | host}
    named = [{"name": part.name} | own for part, own in zip(running.parts, found, strict=True)]
    return {"taskProperties": [host | {"containers": named}]}


def instance_of(ran: dict[str, Any]) -> str:
    """The instance that an attempt ran on, empty when it did not."""
    host = ran.get("container") or ran.get("taskProperties", [{}])[0]
    return str(host.get("containerInstanceArn", "")).rpartition("/")[2]


def _end_of(running: Running, part: Part, outcome: Outcome) -> dict[str, Any]:
    """A container's exit code and reason, as far as it has them."""
    out_of_memory = OUT_OF_MEMORY if part.reasons or outcome.out_of_memory else None
    lost = running.reasons[:1] and running.reasons[0].startswith("Host EC2")
    own = {
        "reason": outcome.fault or out_of_memory,
        "exitCode": None if lost else outcome.exit_code,
    }
    return {key: value for key, value in own.items() if value is not None}


def _fault(running: Running, account: Account, conditions: Conditions) -> Ending | None:
    """What AWS finds only once it has taken the job: why it can't start, None if it can."""
    found = [_job_fault(running.job)]
    for part in running.parts:
        found.append(found[0] or _container_fault(running, part, account, conditions))
    faults = found[1:]
    if not any(faults):
        return None
    decisive = next(number for number, fault in enumerate(faults) if fault)
    return Ending([Outcome(None, fault) for fault in faults], decisive)


def _job_fault(job: Job) -> str | None:
    if _overrides_length(job) > limits.OVERRIDES.at_most:
        return f"Container Overrides length must be at most {limits.OVERRIDES.at_most}"
    if job.spec["propagateTags"] and len(job.spec["tags"]) > limits.TAGS.at_most:
        return f"The job and its definition have more than {limits.TAGS.at_most} tags to propagate"
    return None


def _container_fault(
    running: Running, part: Part, account: Account, conditions: Conditions
) -> str | None:
    image = part.container["image"]
    if conditions.lacks_image(image):
        conditions.note("image", job=running.job.id, image=image)
        return (
            "CannotPullContainerError: pull image manifest has been retried 1 time(s): "
            f"failed to resolve ref {image}: not found"
        )
    if not account.open_log_stream(*_log_names(running, part)):
        return "CannotStartContainerError: The specified log group does not exist."
    return _role_fault(part.container, account)


def _role_fault(container: dict[str, Any], account: Account) -> str | None:
    """Why ECS can't use the job's roles for what they are there, None if it can."""
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
    part: Part,
    account: Account,
    executor: Executor | ContainerExecutor,
    work_dir: Path,
    started: Callable[[int], None],
) -> Outcome:
    group, stream = _log_names(running, part)
    return executor.run(
        Attempt(
            container=part.container,
            environment=_environment(running, part, account) | _secrets(part, account),
            folder=work_dir / part.folder,
        ),
        started=started,
        stop=part.stop,
        log=lambda lines: account.put_log_events(group, stream, lines),
    )


def _overrides_length(job: Job) -> int:
    """As ECS counts: with the JSON around the values."""
    overrides = {"containerOverrides": job.spec["overrides"]}
    return len(json.dumps(overrides, separators=(",", ":"), ensure_ascii=False))


def _environment(running: Running, part: Part, account: Account) -> dict[str, str]:
    """The job's variables and AWS's."""
    job = running.job
    environment = {pair["name"]: pair["value"] for pair in part.container["environment"]}
    environment |= {
        "AWS_BATCH_JOB_ID": job.id,
        "AWS_BATCH_JOB_ATTEMPT": str(len(job.attempts) + 1),
        "AWS_BATCH_CE_NAME": running.environment.name,
        "AWS_BATCH_JQ_NAME": running.queue_name,
    }
    environment |= _way_to_aws(running, part, account)
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


def _way_to_aws(running: Running, part: Part, account: Account) -> dict[str, str]:
    """Where a job finds its instance's metadata and, with a job role, AWS and credentials for it."""
    endpoint = account.endpoint()
    if endpoint is None:
        return {}
    metadata = f"{endpoint}/_metadata/{running.machine.secret}"
    found = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
    if part.container.get("jobRoleArn"):
        found |= {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata}/credentials/{running.job.id}",
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": account.region,
            "AWS_DEFAULT_REGION": account.region,
        }
    return found


def _secrets(part: Part, account: Account) -> dict[str, str]:
    found = {
        secret["name"]: account.secret_value(secret["valueFrom"])
        for secret in part.container.get("secrets", [])
    }
    return {name: value for name, value in found.items() if value is not None}


def _log_names(running: Running, part: Part) -> tuple[str, str]:
    options = part.container.get("logConfiguration", {}).get("options", {})
    prefix = options.get("awslogs-stream-prefix", running.job.spec["definitionName"])
    group = options.get("awslogs-group", DEFAULT_LOG_GROUP)
    return group, f"{prefix}/{part.name}/{running.task_id}"


def _words(running: Running, ending: Ending) -> tuple[str, str | None, int | None]:
    """The status reason, the deciding container's reason and its exit code, as AWS words them."""
    part, outcome = running.parts[ending.decisive], ending.outcomes[ending.decisive]
    fault = _job_fault(running.job)
    if fault:
        return fault, None, None
    end = _end_of(running, part, outcome)
    reason, exit_code = end.get("reason"), end.get("exitCode")
    if outcome.fault:
        return "Task failed to start", reason, None
    if running.reasons and reason != OUT_OF_MEMORY:
        return running.reasons[0], reason, exit_code
    return "Essential container in task exited", reason, exit_code
