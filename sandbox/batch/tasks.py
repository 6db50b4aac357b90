"""Jobs of several containers (ecsProperties): what they may say, and one view of all kinds. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sandbox.batch import limits
from sandbox.batch.rules import refusal, unsupported

DEFAULT_NAME = "default"
"""The name that Batch gives to the only container of a job (User Guide, CloudWatch Logs)."""
START, COMPLETE, SUCCESS = "START", "COMPLETE", "SUCCESS"
CONDITIONS = (START, COMPLETE, SUCCESS)
_NOT_ON_EC2 = (
    "ephemeralStorage",
    "networkConfiguration",
    "networkMode",
    "platformVersion",
    "runtimePlatform",
)
"""Members for Fargate and Managed Instances (API Reference, EcsTaskProperties)."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")  # ECS API Reference, ContainerDefinition
_IPC = frozenset({"host", "task", "none"})
_PID = frozenset({"host", "task"})

CheckContainer = Callable[[dict[str, Any]], None]
MergeContainer = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers of a job or node that is no parent of others, each with name and roles."""
    defaults = {"name": DEFAULT_NAME, "essential": True}
    if "container" in spec:
        return [defaults | spec["container"]]
    task = spec["ecsProperties"]["taskProperties"][0]
    return [defaults | container | _shared(task) for container in task["containers"]]


def check_definition(properties: dict[str, Any], check_container: CheckContainer) -> None:
    """Raises ClientError for ecsProperties that AWS refuses (API Reference, EcsProperties)."""
    limits.TASKS.check(len(properties["taskProperties"]))
    task = properties["taskProperties"][0]
    for member in _NOT_ON_EC2:
        if task.get(member) is not None:
            raise refusal("not on EC2", f"taskProperties.{member} is not for EC2")
    if task.get("enableExecuteCommand"):
        raise unsupported("taskProperties.enableExecuteCommand")
    _check_mode("ipcMode", task.get("ipcMode"), _IPC)
    _check_mode("pidMode", task.get("pidMode"), _PID)
    _check_containers(task["containers"])
    for container in task["containers"]:
        check_container(container | _shared(task))


def check_overrides(properties: dict[str, Any], overrides: dict[str, Any]) -> None:
    """Raises ClientError for an ecsPropertiesOverride that names what is not there."""
    tasks = overrides.get("taskProperties", [])
    limits.TASKS.check(len(tasks))
    known = {c.get("name", DEFAULT_NAME) for c in properties["taskProperties"][0]["containers"]}
    for container in tasks[0].get("containers", []):
        name = container.get("name")
        if name not in known:
            raise refusal(
                "kinds of overrides",
                f"ecsPropertiesOverride names the container {name!r}: the job definition has "
                f"{', '.join(sorted(known))}",
            )


def override_of(overrides: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers of an ecsPropertiesOverride."""
    tasks = overrides.get("taskProperties") or [{}]
    found: list[dict[str, Any]] = tasks[0].get("containers", [])
    return found


def merge(
    properties: dict[str, Any], overrides: dict[str, Any], merge_container: MergeContainer
) -> dict[str, Any]:
    """The definition's ecsProperties with the request's overrides."""
    by_name = {container["name"]: container for container in override_of(overrides)}
    task = properties["taskProperties"][0]
    merged = [
        merge_container(container, by_name.get(container.get("name", DEFAULT_NAME), {}))
        for container in task["containers"]
    ]
    return {"taskProperties": [task | {"containers": merged}]}


def _shared(task: dict[str, Any]) -> dict[str, Any]:
    """A task's roles and volumes are each container's, by the names that containers use."""
    pairs = (
        ("jobRoleArn", "taskRoleArn"),
        ("executionRoleArn", "executionRoleArn"),
        ("volumes", "volumes"),
    )
    return {own: task[theirs] for own, theirs in pairs if task.get(theirs)}


def _check_containers(found: list[dict[str, Any]]) -> None:
    """What they are to each other."""
    limits.CONTAINERS.check(len(found))
    names = [container.get("name", DEFAULT_NAME) for container in found]
    for name in names:
        if not _NAME.fullmatch(name):
            raise refusal("containers of a task", f"the container name {name!r} is not legal")
    if len(set(names)) < len(names):
        raise refusal(
            "containers of a task",
            "taskProperties.containers: each container needs a name of its own",
        )
    if not any(container.get("essential", True) for container in found):
        raise refusal(
            "containers of a task",
            "taskProperties.containers: at least one container must be essential",
        )
    for container in found:
        if container.get("firelensConfiguration"):
            raise unsupported("firelensConfiguration")
        for member in ("startTimeout", "stopTimeout"):
            limits.CONTAINER_TIMEOUT_S.check(container.get(member, 2), member)
    _check_order(dict(zip(names, found, strict=True)))


def _check_mode(member: str, value: str | None, values: frozenset[str]) -> None:
    if value is not None and value not in values:
        raise refusal("modes", f"{member} is {value!r}, the values are {', '.join(sorted(values))}")


def _check_order(found: dict[str, dict[str, Any]]) -> None:
    """Dependencies lead to other containers, in no circle; only those that may end are waited for."""
    for name, container in found.items():
        for item in container.get("dependsOn", []):
            other, condition = item.get("containerName"), item.get("condition")
            if other not in found:
                raise refusal(
                    "order of containers",
                    f"{name} depends on the container {other!r}, which is not there",
                )
            if condition not in CONDITIONS:
                raise refusal(
                    "order of containers",
                    f"dependsOn.condition is {condition!r}, the values are {', '.join(CONDITIONS)}",
                )
            if condition != START and found[other].get("essential", True):
                raise refusal(
                    "order of containers",
                    f"the condition {condition} can't be set on the essential container {other}",
                )
    waits = {
        name: {item["containerName"] for item in container.get("dependsOn", [])}
        for name, container in found.items()
    }
    while free := [name for name in waits if not waits[name] & waits.keys()]:
        for name in free:
            del waits[name]
    if waits:
        raise refusal(
            "order of containers", f"the containers {', '.join(sorted(waits))} depend on each other"
        )
