"""What stands in an account, of the kinds that a fleet is made of. Speaks boto3."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any


def list_account(env: Mapping[str, str]) -> set[tuple[str, str]]:
    """(kind, name) of all resources, with the credentials and the endpoint of `env`."""
    connect = _connector(env)
    found: set[tuple[str, str]] = set()
    for kind, service, operation, member, name in KINDS:
        for page in connect(service).get_paginator(operation).paginate():
            found |= {(kind, item[name]) for item in page[member]}
    pages = connect("batch").get_paginator("describe_job_definitions").paginate(status="ACTIVE")
    found |= {
        ("job definition", item["jobDefinitionName"])
        for page in pages
        for item in page["jobDefinitions"]
    }
    return found


KINDS = (
    ("IAM role", "iam", "list_roles", "Roles", "RoleName"),
    (
        "IAM instance profile",
        "iam",
        "list_instance_profiles",
        "InstanceProfiles",
        "InstanceProfileName",
    ),
    ("security group", "ec2", "describe_security_groups", "SecurityGroups", "GroupName"),
    (
        "launch template",
        "ec2",
        "describe_launch_templates",
        "LaunchTemplates",
        "LaunchTemplateName",
    ),
    (
        "compute environment",
        "batch",
        "describe_compute_environments",
        "computeEnvironments",
        "computeEnvironmentName",
    ),
    ("job queue", "batch", "describe_job_queues", "jobQueues", "jobQueueName"),
    ("log group", "logs", "describe_log_groups", "logGroups", "logGroupName"),
)
"""Kind, service, operation, and where in its answer the names stand."""


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
