"""What roles a fleet has and what each may do: IAM documents. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from infra import names
from infra.plans import Account, RolePlan, RolesPlan, Scope
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


def may_use_bucket(bucket_arn: str, prefix: str) -> str:
    """The policy by which the job role uses what lies under the prefix, and no more."""
    return _policy(
        {
            "Sid": "UseOwnPrefix",
            "Effect": "Allow",
            "Action": [
                "s3:AbortMultipartUpload",
                "s3:DeleteObject",
                "s3:GetObject",
                "s3:ListMultipartUploadParts",
                "s3:PutObject",
            ],
            "Resource": f"{bucket_arn}/{prefix}*",
        },
        _may_list(bucket_arn, prefix),
    )


def only_over_tls(bucket_arn: str) -> str:
    """The bucket's own policy: nobody reads or writes it over plain HTTP."""
    return _policy(
        {
            "Sid": "OnlyOverTls",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [bucket_arn, f"{bucket_arn}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    )


def may_submit(
    scope: Scope,
    *,
    roles: Sequence[str],
    repository_arn: str | None,
    bucket: tuple[str, str] | None,
) -> str:
    """What `submit` calls, on the queues, jobs and logs of one stack.

    `roles` are what jobs run with; `bucket` is its ARN and the team's prefix in it.
    """
    statements = [
        *_on_batch(scope),
        _pass_roles(roles),
        *_on_logs_and_parameters(scope),
        *_examine(scope, roles),
    ]
    if repository_arn:
        statements += _push_images(repository_arn)
    if bucket:
        arn, prefix = bucket
        statements += [_read_objects(arn, prefix), _may_list(arn, prefix)]
    return _policy(*statements)


def _on_batch(scope: Scope) -> list[dict[str, Any]]:
    """Of the team are queues, definitions and jobs with its tag `stack`; all that submit makes
    has it. What only looks can not be bounded so (Service Authorization Reference, Batch).
    """
    batch = f"arn:{scope.partition}:batch:{scope.region}:{scope.account}"
    theirs = {"StringEquals": {"aws:ResourceTag/stack": scope.stack}}
    tagged = {"StringEquals": {"aws:RequestTag/stack": scope.stack}}
    return [
        {
            "Sid": "Look",
            "Effect": "Allow",
            "Action": [
                "batch:DescribeComputeEnvironments",
                "batch:DescribeJobDefinitions",
                "batch:DescribeJobQueues",
                "batch:DescribeJobs",
                "batch:GetJobQueueSnapshot",
                "batch:ListJobs",
            ],
            "Resource": "*",
        },
        {
            "Sid": "SubmitToOwnQueues",
            "Effect": "Allow",
            "Action": "batch:SubmitJob",
            "Resource": [f"{batch}:job-queue/*", f"{batch}:job-definition/*"],
            "Condition": theirs,
        },
        {
            "Sid": "EndOwnJobs",
            "Effect": "Allow",
            "Action": ["batch:CancelJob", "batch:TerminateJob"],
            "Resource": f"{batch}:job/*",
            "Condition": theirs,
        },
        {
            "Sid": "Define",
            "Effect": "Allow",
            "Action": ["batch:RegisterJobDefinition", "batch:TagResource"],
            "Resource": [f"{batch}:job-definition/*", f"{batch}:job/*"],
            "Condition": tagged,
        },
    ]


def _pass_roles(roles: Sequence[str]) -> dict[str, Any]:
    return {
        "Sid": "GiveJobsTheirRoles",
        "Effect": "Allow",
        "Action": "iam:PassRole",
        "Resource": sorted(roles),
        "Condition": {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
    }


def _on_logs_and_parameters(scope: Scope) -> list[dict[str, Any]]:
    where = f"{scope.region}:{scope.account}"
    return [
        {
            "Sid": "ReadOwnLogs",
            "Effect": "Allow",
            "Action": ["logs:FilterLogEvents", "logs:GetLogEvents"],
            "Resource": f"arn:{scope.partition}:logs:{where}:log-group:{scope.log_group}:*",
        },
        {
            "Sid": "ReadTheFleetDocument",
            "Effect": "Allow",
            "Action": "ssm:GetParametersByPath",
            "Resource": [
                f"arn:{scope.partition}:ssm:{where}:parameter{scope.parameter_path}{rest}"
                for rest in ("", "/*")
            ],
        },
    ]


def _examine(scope: Scope, roles: Sequence[str]) -> list[dict[str, Any]]:
    """What the doctor looks at; of a secret, whether it is there."""
    where = f"{scope.region}:{scope.account}"
    return [
        {
            "Sid": "ExamineLogsAndQuotas",
            "Effect": "Allow",
            "Action": ["logs:DescribeLogGroups", "servicequotas:ListServiceQuotas"],
            "Resource": "*",
        },
        {
            "Sid": "ExamineRoles",
            "Effect": "Allow",
            "Action": "iam:GetRole",
            "Resource": sorted(roles),
        },
        {
            "Sid": "ExamineSecrets",
            "Effect": "Allow",
            "Action": "secretsmanager:DescribeSecret",
            "Resource": f"arn:{scope.partition}:secretsmanager:{where}:secret:{NAMESPACE}/*",
            "Condition": {"StringEquals": {"aws:ResourceTag/stack": scope.stack}},
        },
    ]


def _push_images(repository_arn: str) -> list[dict[str, Any]]:
    return [
        {
            "Sid": "LogInToTheRegistry",
            "Effect": "Allow",
            "Action": "ecr:GetAuthorizationToken",
            "Resource": "*",
        },
        {
            "Sid": "PushAndPullImages",
            "Effect": "Allow",
            "Action": [
                "ecr:BatchCheckLayerAvailability",
                "ecr:BatchGetImage",
                "ecr:CompleteLayerUpload",
                "ecr:DescribeImages",
                "ecr:GetDownloadUrlForLayer",
                "ecr:InitiateLayerUpload",
                "ecr:PutImage",
                "ecr:UploadLayerPart",
            ],
            "Resource": repository_arn,
        },
    ]


def _read_objects(bucket_arn: str, prefix: str) -> dict[str, Any]:
    return {
        "Sid": "FetchArtifacts",
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Resource": f"{bucket_arn}/{prefix}*",
    }


def _may_list(bucket_arn: str, prefix: str) -> dict[str, Any]:
    return {
        "Sid": "ListOwnPrefix",
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": bucket_arn,
        "Condition": {"StringLike": {"s3:prefix": f"{prefix}*"}},
    }


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
