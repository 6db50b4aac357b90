"""What stands in an account, of the kinds that a fleet is made of. Speaks boto3."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class Kind(msgspec.Struct, frozen=True):
    """Where its name stands in the answers of an operation."""

    label: str
    service: str
    operation: str
    member: str
    name: str
    request: Mapping[str, Any] = {}


KINDS = (
    Kind("bucket", "s3", "list_buckets", "Buckets", "Name"),
    Kind(
        "compute environment",
        "batch",
        "describe_compute_environments",
        "computeEnvironments",
        "computeEnvironmentName",
    ),
    Kind("IAM policy", "iam", "list_policies", "Policies", "PolicyName", {"Scope": "Local"}),
    Kind("IAM role", "iam", "list_roles", "Roles", "RoleName"),
    Kind(
        "instance profile",
        "iam",
        "list_instance_profiles",
        "InstanceProfiles",
        "InstanceProfileName",
    ),
    Kind(
        "job definition",
        "batch",
        "describe_job_definitions",
        "jobDefinitions",
        "jobDefinitionName",
        {"status": "ACTIVE"},
    ),
    Kind("job queue", "batch", "describe_job_queues", "jobQueues", "jobQueueName"),
    Kind(
        "launch template",
        "ec2",
        "describe_launch_templates",
        "LaunchTemplates",
        "LaunchTemplateName",
        {"MaxResults": 200},  # moto gives 15 else, and has no second page
    ),
    Kind("log group", "logs", "describe_log_groups", "logGroups", "logGroupName"),
    Kind("parameter", "ssm", "describe_parameters", "Parameters", "Name"),
    Kind("repository", "ecr", "describe_repositories", "repositories", "repositoryName"),
    Kind("scheduling policy", "batch", "list_scheduling_policies", "schedulingPolicies", "arn"),
    Kind("secret", "secretsmanager", "list_secrets", "SecretList", "Name"),
    Kind("security group", "ec2", "describe_security_groups", "SecurityGroups", "GroupName"),
    Kind(
        "security group rule",
        "ec2",
        "describe_security_group_rules",
        "SecurityGroupRules",
        "SecurityGroupRuleId",
    ),
)


def list_account(env: Mapping[str, str]) -> set[tuple[str, str]]:
    """(kind, name) of all resources, with the credentials and the endpoint of `env`."""
    connect = _connector(env)
    return {
        (kind.label, item[kind.name])
        for kind in KINDS
        for page in connect(kind.service).get_paginator(kind.operation).paginate(**kind.request)
        for item in page[kind.member]
    }


def _connector(env: Mapping[str, str]) -> Callable[[str], Any]:
    import boto3  # noqa: PLC0415 # takes half a second

    session: Any = boto3.session.Session(
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        region_name=env["AWS_REGION"],
    )
    return functools.cache(
        lambda service: session.client(service, endpoint_url=env["AWS_ENDPOINT_URL"])
    )
