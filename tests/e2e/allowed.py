"""What IAM would ask of a call, and whether a policy grants it: as far as submit's calls need.

Written from the Service Authorization Reference (its tables of actions, resource types and
condition keys), apart from the policy. A call that is not in ASKED is a mistake: somebody has to
look up what it takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import msgspec

AT = "us-east-1:123456789012"
BATCH = f"arn:aws:batch:{AT}"
Tags = Callable[[str], dict[str, str]]
"""The tags of a resource, by its ARN."""


class Asked(msgspec.Struct, frozen=True):
    action: str
    resource: str = "*"
    context: dict[str, str] = {}


def asked(service: str, operation: str, request: dict[str, Any], tags: Tags) -> list[Asked]:
    """What has to be allowed for this call."""
    return list(ASKED[f"{service}.{operation}"](request, tags))


def granted(policy: str, ask: Asked) -> bool:
    return any(
        statement["Effect"] == "Allow"
        and _any(statement["Action"], ask.action)
        and _any(statement["Resource"], ask.resource)
        and _holds(statement.get("Condition", {}), ask.context)
        for statement in json.loads(policy)["Statement"]
    )


def actions(policy: str) -> set[str]:
    """All actions that a policy names."""
    return {a for s in json.loads(policy)["Statement"] for a in _listed(s["Action"])}


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def _any(patterns: Any, value: str) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in _listed(patterns))


def _holds(conditions: dict[str, dict[str, str]], context: dict[str, str]) -> bool:
    assert set(conditions) <= {"StringEquals", "StringEqualsIfExists", "StringLike"}
    return all(
        _any(wanted, context[key]) if key in context else operator.endswith("IfExists")
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _of(resource: str, tags: Tags) -> dict[str, str]:
    return {f"aws:ResourceTag/{key}": value for key, value in tags(resource).items()}


def _requested(request: dict[str, Any]) -> dict[str, str]:
    return {f"aws:RequestTag/{key}": value for key, value in request.get("tags", {}).items()}


def _submit(request: dict[str, Any], tags: Tags) -> Iterator[Asked]:
    for resource in (request["jobQueue"], request["jobDefinition"]):
        yield Asked("batch:SubmitJob", resource, _of(resource, tags) | _requested(request))
    if request.get("tags"):
        yield Asked("batch:TagResource", f"{BATCH}:job/any", _requested(request))


def _register(request: dict[str, Any], tags: Tags) -> Iterator[Asked]:
    del tags
    resource = f"{BATCH}:job-definition/{request['jobDefinitionName']}"
    for action in ("batch:RegisterJobDefinition", "batch:TagResource"):
        yield Asked(action, resource, _requested(request))
    container = request["containerProperties"]
    for role in {container.get("jobRoleArn"), container.get("executionRoleArn")} - {None}:
        yield Asked("iam:PassRole", role, {"iam:PassedToService": "ecs-tasks.amazonaws.com"})


def _end(request: dict[str, Any], tags: Tags) -> Iterator[Asked]:
    for job in request.get("jobs") or [request["jobId"]]:
        resource = f"{BATCH}:job/{job}"
        yield Asked("batch:TerminateJob", resource, _of(resource, tags))


def _on_secret(operation: str) -> Callable[[dict[str, Any], Tags], Iterator[Asked]]:
    def ask(request: dict[str, Any], tags: Tags) -> Iterator[Asked]:
        secret = request["SecretId"]
        yield Asked(f"secretsmanager:{operation}", secret, _of(secret, tags))

    return ask


def _just(action: str, resource: str = "*") -> Callable[[dict[str, Any], Tags], Iterator[Asked]]:
    """The action on a resource, in which words of the request may stand."""
    return lambda request, _: iter([Asked(action, resource.format(**request))])


def _nothing(request: dict[str, Any], tags: Tags) -> Iterator[Asked]:
    del request, tags
    return iter(())


LOGS = f"arn:aws:logs:{AT}:log-group:{{logGroupName}}"
ASKED: dict[str, Callable[[dict[str, Any], Tags], Iterator[Asked]]] = {
    "batch.SubmitJob": _submit,
    "batch.RegisterJobDefinition": _register,
    "batch.TerminateJob": _end,
    "batch.TerminateJobs": _end,  # no action of its own (API reference, TerminateJobs)
    **{
        f"batch.{name}": _just(f"batch:{name}")
        for name in (
            "DescribeComputeEnvironments",
            "DescribeJobDefinitions",
            "DescribeJobQueues",
            "DescribeJobs",
            "GetJobQueueSnapshot",
            "ListJobs",
        )
    },
    "logs.GetLogEvents": _just("logs:GetLogEvents", f"{LOGS}:log-stream:{{logStreamName}}"),
    "logs.FilterLogEvents": _just("logs:FilterLogEvents", f"{LOGS}:log-stream:any"),
    "logs.DescribeLogGroups": _just("logs:DescribeLogGroups", f"arn:aws:logs:{AT}:log-group:any"),
    "ssm.GetParametersByPath": _just(
        "ssm:GetParametersByPath", f"arn:aws:ssm:{AT}:parameter{{Path}}"
    ),
    "iam.GetRole": _just("iam:GetRole", "arn:aws:iam::123456789012:role/{RoleName}"),
    "secretsmanager.DescribeSecret": _on_secret("DescribeSecret"),
    "secretsmanager.PutSecretValue": _on_secret("PutSecretValue"),
    "service-quotas.ListServiceQuotas": _just("servicequotas:ListServiceQuotas"),
    "sts.GetCallerIdentity": _nothing,
}
