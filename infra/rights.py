"""What roles a fleet has and what each may do: IAM documents. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from infra import names
from infra.plans import Account, RolePlan, RolesPlan, Scope
from infra.secret_settings import WANDB_VARIABLE
from infra.settings import NAMESPACE, Settings


class Kind(msgspec.Struct, frozen=True):
    """A role that a stack may have: for which service, and what AWS's own policy lets it do."""

    name: str
    description: str
    service: str
    policy: str = ""


INSTANCE = Kind(
    "instance",
    "Machines of the fleet: join the ECS cluster",
    "ec2",
    "AmazonEC2ContainerServiceforEC2Role",
)
JOB = Kind("job", "Jobs of the fleet: nothing unless the team's settings say so", "ecs-tasks")
EXECUTION = Kind(
    "execution",
    "Starting jobs of the fleet: pull images, write logs",
    "ecs-tasks",
    "AmazonECSTaskExecutionRolePolicy",
)
BATCH_SERVICE = Kind(
    "batch-service",
    "Batch: start and stop the machines of the fleet",
    "batch",
    "AWSBatchServiceRole",
)
SPOT_FLEET = Kind(
    "spot-fleet",
    "EC2 Spot Fleet: start, stop and tag the spot machines of the fleet",
    "spotfleet",
    "AmazonEC2SpotFleetTaggingRole",
)


def plan_roles(
    settings: Settings,
    account: Account,
    stack: str,
    tags: dict[str, str],
    *,
    spot_fleet: bool,
) -> RolesPlan:
    """The roles of a stack; `spot_fleet` says that a compute environment needs that one."""

    def role(kind: Kind) -> RolePlan:
        before, rest = f"{NAMESPACE}-", f"-{kind.name}-"
        policies = f"arn:{account.partition}:iam::aws:policy/service-role"
        return RolePlan(
            resource_name=f"{kind.name}-role",
            name_prefix=names.named(stack, rest, limit=names.ROLE_PREFIX, before=before),
            path=settings.role_path,
            permissions_boundary=settings.permissions_boundary or None,
            description=kind.description,
            assume_role_policy=_trust(kind, account),
            managed_policy_arns=(f"{policies}/{kind.policy}",) if kind.policy else (),
            tags=tags,
        )

    return RolesPlan(
        instance=role(INSTANCE),
        job=role(JOB),
        execution=role(EXECUTION),
        batch_service=role(BATCH_SERVICE) if settings.batch_service_role else None,
        spot_fleet=role(SPOT_FLEET) if spot_fleet else None,
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
        *_on_roles_and_secrets(scope, roles),
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

    Only what is new or the team's own may be given the tag: whoever could put it on another
    team's definition could run that, with its roles and secrets.
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
                "batch:ListJobs",
            ],
            "Resource": "*",
        },
        {
            "Sid": "SubmitToOwnQueues",
            "Effect": "Allow",
            "Action": "batch:SubmitJob",
            # Of a definition without its revision Batch does not look at the tags (User Guide,
            # "Restrict job submission by resource tags").
            "Resource": [f"{batch}:job-queue/*", f"{batch}:job-definition/*:*"],
            "Condition": theirs,
        },
        {
            "Sid": "EndOwnJobs",
            "Effect": "Allow",
            "Action": "batch:TerminateJob",
            "Resource": f"{batch}:job/*",
            "Condition": theirs,
        },
        {
            "Sid": "Define",
            "Effect": "Allow",
            "Action": "batch:RegisterJobDefinition",
            "Resource": f"{batch}:job-definition/{NAMESPACE}-*",
            "Condition": tagged,
        },
        {
            "Sid": "TagWhatIsNew",
            "Effect": "Allow",
            "Action": "batch:TagResource",
            "Resource": [f"{batch}:job-definition/{NAMESPACE}-*", f"{batch}:job/*"],
            "Condition": tagged | {"StringEqualsIfExists": theirs["StringEquals"]},
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


def _on_roles_and_secrets(scope: Scope, roles: Sequence[str]) -> list[dict[str, Any]]:
    """What the doctor looks at; of a secret, whether it is there. One may be written, none read."""
    where = f"{scope.region}:{scope.account}"
    secrets = f"arn:{scope.partition}:secretsmanager:{where}:secret:{NAMESPACE}"
    theirs = {"StringEquals": {"aws:ResourceTag/stack": scope.stack}}
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
            "Resource": f"{secrets}/*",
            "Condition": theirs,
        },
        {
            "Sid": "RenewTheKeyOfWandb",
            "Effect": "Allow",
            "Action": "secretsmanager:PutSecretValue",
            "Resource": f"{secrets}/*/{WANDB_VARIABLE}-*",
            "Condition": theirs,
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


def _trust(kind: Kind, account: Account) -> str:
    """Who may take the role: the service, and for this account alone.

    ECS and Batch say for whom they ask; without the condition they could be made to ask for this
    role for another account (IAM guide, "Confused deputy"). EC2 does not say it, and has another
    name in some partitions; that EC2 Spot Fleet says it stands nowhere.
    """
    is_ec2 = kind is INSTANCE
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {
            "Service": f"{kind.service}.{account.dns_suffix if is_ec2 else 'amazonaws.com'}"
        },
        "Action": "sts:AssumeRole",
    }
    if kind not in {INSTANCE, SPOT_FLEET}:
        statement["Condition"] = {"StringEquals": {"aws:SourceAccount": account.account}}
    return _policy(statement)


def _policy(*statements: dict[str, Any]) -> str:
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    return json.dumps(document, sort_keys=True)
