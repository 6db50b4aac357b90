"""Job definitions: revisions, checks, paging. No I/O."""

from __future__ import annotations

import json
import re
from typing import Any

from sandbox.batch import limits, mounts, nodes, tags, tasks
from sandbox.batch.paging import paged, refuse_both
from sandbox.batch.rules import refusal, unsupported
from sandbox.batch.store import Store

_UNSUPPORTED = ("eksProperties", "consumableResourceProperties")
_FARGATE_ONLY = (
    "fargatePlatformConfiguration",
    "networkConfiguration",
    "ephemeralStorage",
    "runtimePlatform",
)
"""Members for Fargate, which AWS refuses with EC2 (API Reference, ContainerProperties)."""
_UNLIKE = ("enableExecuteCommand",)
_CONDITIONS = frozenset({"onReason", "onStatusReason", "onExitCode"})
_IMAGE = re.compile("[A-Za-z0-9_:./#@-]+")
"""API Reference, ContainerProperties, image; a digest comes behind `@`."""
_NUMBERS = {"VCPU": limits.VCPUS, "MEMORY": limits.MEMORY_MIB, "GPU": limits.GPUS}


def register(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """RegisterJobDefinition: always a new revision, even of equal content."""
    name = request["jobDefinitionName"]
    if not re.fullmatch(limits.NAME, name):
        raise refusal("legal names", f"jobDefinitionName {name!r} is not a legal name")
    limits.DEFINITION_BYTES.check(len(json.dumps(request, separators=(",", ":")).encode()))
    for member in _UNSUPPORTED:
        if request.get(member) is not None:
            raise unsupported(f"{member} of job definitions")
    if request.get("platformCapabilities", ["EC2"]) != ["EC2"]:
        raise unsupported("platform capabilities but EC2")
    _check_properties(request)
    check_retry(request.get("retryStrategy"))
    check_timeout(request.get("timeout"))
    limits.SCHEDULING_PRIORITY.check(request.get("schedulingPriority", 0))
    tags.check(request.get("tags"))
    revisions = store.definitions.setdefault(name, [])
    revision = len(revisions) + 1
    arn = store.account.arn("job-definition", f"{name}:{revision}")
    revisions.append(
        request
        | {
            "jobDefinitionArn": arn,
            "revision": revision,
            "status": "ACTIVE",
            "containerOrchestrationType": "ECS",
        }
    )
    store.tags[arn] = dict(request.get("tags", {}))
    return {"jobDefinitionName": name, "jobDefinitionArn": arn, "revision": revision}


def deregister(store: Store, request: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """DeregisterJobDefinition: running jobs go on, new ones are refused."""
    if ":" not in request["jobDefinition"].rpartition("/")[2]:
        raise refusal("revision to deregister", "jobDefinition must be name:revision or an ARN")
    definition = store.definition(request["jobDefinition"])
    definition["status"] = "INACTIVE"
    store.inactive.setdefault(definition["jobDefinitionArn"], now_ms)
    return {}


def describe(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeJobDefinitions, by list, name and status, in pages."""
    refuse_both(request, "jobDefinitions")
    if request.get("jobDefinitions"):
        if set(request) != {"jobDefinitions"}:
            raise refusal("pages", "jobDefinitions can't be used with other parameters")
        limits.DESCRIBE_DEFINITIONS.check(len(request["jobDefinitions"]))
        wanted = map(store.find_definition, request["jobDefinitions"])
        found = [definition for definition in wanted if definition]
    else:
        names = [request["jobDefinitionName"]] if "jobDefinitionName" in request else None
        found = [
            definition
            for name, revisions in sorted(store.definitions.items())
            if names is None or name in names
            for definition in reversed(revisions)
            if definition
        ]
    if "status" in request:
        found = [d for d in found if d["status"] == request["status"]]
    page, token = paged(found, request, limits.DESCRIBE_PAGE)
    return {
        "jobDefinitions": [d | {"tags": dict(store.tags[d["jobDefinitionArn"]])} for d in page],
        "nextToken": token,
    }


def check_retry(strategy: dict[str, Any] | None) -> None:
    """Raises ClientError for a retryStrategy that AWS refuses."""
    if strategy is None:
        return
    if "attempts" not in strategy:
        raise refusal(
            "attempts given",
            "Error executing request, Exception : RetryAttempts must be provided with retry strategy",
        )
    limits.ATTEMPTS.check(strategy["attempts"])
    rules = strategy.get("evaluateOnExit", [])
    limits.EVALUATE_ON_EXIT.check(len(rules))
    for rule in rules:
        if not any(rule.get(key) for key in _CONDITIONS):
            raise refusal("retry rules", "an evaluateOnExit rule needs a condition")
        for key in _CONDITIONS & set(rule):
            _check_condition(key, rule[key])


def _check_condition(key: str, pattern: str) -> None:
    limits.CONDITION.check(len(pattern))
    if "*" in pattern[:-1]:
        raise refusal("retry rules", f"evaluateOnExit.{key} is {pattern!r}: `*` may only end it")
    letters, told = r"[0-9]", "digits"
    if key != "onExitCode":
        letters, told = r"[A-Za-z0-9.:\s]", "letters, digits, periods, colons and white space"
    if not re.fullmatch(letters + r"*\*?", pattern):
        raise refusal("retry rules", f"evaluateOnExit.{key} is {pattern!r}: it takes {told}")


def check_timeout(timeout: dict[str, Any] | None) -> None:
    """Raises ClientError for a timeout under a minute."""
    if timeout and "attemptDurationSeconds" in timeout:
        limits.TIMEOUT_S.check(timeout["attemptDurationSeconds"])


def check_requirements(requirements: list[dict[str, Any]]) -> None:
    """Raises ClientError for resourceRequirements that AWS refuses."""
    if len({r["type"] for r in requirements}) < len(requirements):
        raise refusal("resource requirements", "resourceRequirements has a type twice")
    for requirement in requirements:
        if not re.fullmatch(r"[0-9]{1,9}", requirement["value"]):
            raise refusal(
                "resource requirements",
                f"resourceRequirements {requirement['type']} must be a whole number, "
                f"not {requirement['value']!r}",
            )
        _NUMBERS[requirement["type"]].check(int(requirement["value"]))


def check_environment(environment: list[dict[str, Any]]) -> None:
    """Raises ClientError for names that AWS keeps for itself."""
    for pair in environment:
        if pair.get("name", "").startswith("AWS_BATCH"):
            raise refusal(
                "reserved variables",
                "Environment variable names starting with AWS_BATCH are reserved",
            )


def check_command(command: list[str]) -> None:
    """Raises ClientError for an empty argument."""
    if any(not argument for argument in command):
        raise refusal("no empty words", "command must not hold an empty string")


def _check_properties(request: dict[str, Any]) -> None:
    """The properties of the definition's type, and of no other."""
    container, node = request.get("containerProperties"), request.get("nodeProperties")
    task = request.get("ecsProperties")
    if request["type"] == "multinode":
        for member in ("containerProperties", "ecsProperties"):
            if request.get(member):
                raise refusal(
                    "kinds of definitions", f"{member} is not for multinode job definitions"
                )
        nodes.check_definition(node, check_container)
        return
    if node:
        raise refusal("kinds of definitions", "nodeProperties is for multinode job definitions")
    if task and container:
        raise refusal(
            "kinds of definitions", "containerProperties and ecsProperties exclude each other"
        )
    if task:
        tasks.check_definition(task, check_container)
        return
    if not container:
        raise refusal(
            "kinds of definitions",
            "containerProperties or ecsProperties must be provided for a container job definition",
        )
    if container.get("instanceType"):
        raise refusal(
            "kinds of definitions",
            "containerProperties.instanceType is for multinode job definitions",
        )
    check_container(container)


def check_container(container: dict[str, Any]) -> None:
    _refuse_members(container)
    if not container.get("image"):
        raise refusal("image and resources", "containerProperties.image must be provided")
    limits.IMAGE.check(len(container["image"]))
    if not _IMAGE.fullmatch(container["image"]):
        raise refusal(
            "image and resources", f"the image {container['image']!r} is not a legal name"
        )
    requirements = container.get("resourceRequirements", [])
    check_requirements(requirements)
    for kind, old in (("VCPU", "vcpus"), ("MEMORY", "memory")):
        if not container.get(old) and kind not in {r["type"] for r in requirements}:
            raise refusal("image and resources", f"resourceRequirements needs {kind}")
    check_environment(container.get("environment", []))
    check_command(container.get("command", []))
    _check_roles(container)
    mounts.check(container)
    driver = container.get("logConfiguration", {}).get("logDriver", "awslogs")
    if driver != "awslogs":
        raise unsupported(f"the log driver {driver}")


def _refuse_members(container: dict[str, Any]) -> None:
    for member in _FARGATE_ONLY:
        if container.get(member) is not None:
            raise refusal("not on EC2", f"containerProperties.{member} is for Fargate")
    for member in _UNLIKE:
        if container.get(member):
            raise unsupported(f"containerProperties.{member}")


def _check_roles(container: dict[str, Any]) -> None:
    for key in ("jobRoleArn", "executionRoleArn"):
        if container.get(key) and not container[key].startswith("arn:"):
            raise refusal("roles are ARNs", f"{key} must be an ARN")
    if container.get("secrets") and not container.get("executionRoleArn"):
        raise refusal("secrets need a role", "secrets need an executionRoleArn")
