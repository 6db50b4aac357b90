"""What roles a fleet has and what each may do: IAM documents. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from infra import names
from infra.plans import Account, RolePlan, RolesPlan
from infra.settings import NAMESPACE, Settings


def plan_roles(
    settings: Settings,
    account: Account,
    stack: str,
    tags: dict[str, str],
    *,
    spot_fleet: bool,
) -> RolesPlan:
    """The roles of a stack; `spot_fleet` says that a compute environment needs that one."""

    def role(kind: str, description: str, trust: str, *policies: str) -> RolePlan:
        return RolePlan(
            resource_name=f"{kind}-role",
            name_prefix=names.named(
                stack, f"-{kind}-", limit=names.ROLE_PREFIX, before=f"{NAMESPACE}-"
            ),
            path=settings.role_path,
            permissions_boundary=settings.permissions_boundary or None,
            description=description,
            assume_role_policy=trust,
            managed_policy_arns=tuple(
                f"arn:{account.partition}:iam::aws:policy/{policy}" for policy in policies
            ),
            tags=tags,
        )

    # ECS, Batch and EC2 Spot Fleet say for whom they ask for a role; without the condition they
    # could be made to ask for this one for another account (IAM guide, "Confused deputy"). EC2
    # does not say it.
    own_account = {"aws:SourceAccount": account.account}
    tasks = _trust("ecs-tasks.amazonaws.com", own_account)
    return RolesPlan(
        instance=role(
            "instance",
            "Machines of the fleet: join the ECS cluster",
            _trust(f"ec2.{account.dns_suffix}", {}),
            "service-role/AmazonEC2ContainerServiceforEC2Role",
        ),
        job=role("job", "Jobs of the fleet: nothing unless the team's settings say so", tasks),
        execution=role(
            "execution",
            "Starting jobs of the fleet: pull images, write logs",
            tasks,
            "service-role/AmazonECSTaskExecutionRolePolicy",
        ),
        batch_service=role(
            "batch-service",
            "Batch: start and stop the machines of the fleet",
            _trust("batch.amazonaws.com", own_account),
            "service-role/AWSBatchServiceRole",
        )
        if settings.batch_service_role
        else None,
        spot_fleet=role(
            "spot-fleet",
            "EC2 Spot Fleet: start, stop and tag the spot machines of the fleet",
            _trust("spotfleet.amazonaws.com", own_account),
            "service-role/AmazonEC2SpotFleetTaggingRole",
        )
        if spot_fleet
        else None,
    )


def may_read_secrets(secret_arns: Sequence[str]) -> str:
    """The policy by which the execution role reads these secrets, and no other."""
    return _policy(
        {
            "Sid": "ReadSecretsOfTheTeam",
            "Effect": "Allow",
            "Action": "secretsmanager:GetSecretValue",
            "Resource": sorted(secret_arns),
        }
    )


def _trust(service: str, condition: dict[str, str]) -> str:
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
    }
    if condition:
        statement["Condition"] = {"StringEquals": condition}
    return _policy(statement)


def _policy(*statements: dict[str, Any]) -> str:
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    return json.dumps(document, sort_keys=True)
