"""Cases of what a fleet keeps beside its machines: secrets, parameters, images, buckets, shares."""

from __future__ import annotations

import json
from typing import Any

from sandbox.testing import Running

from .case import Case, allow


class StorageGround:
    """What these cases' resources stand on."""

    def __init__(self, sandbox: Running, environment: str) -> None:
        self.environment = environment
        secrets = sandbox.client("secretsmanager")
        self.secrets = [secrets.create_secret(Name=n)["ARN"] for n in ("ground", "other-ground")]
        s3, ecr, batch = (sandbox.client(name) for name in ("s3", "ecr", "batch"))
        self.buckets = ["ground", "other-ground"]
        for name in self.buckets:
            s3.create_bucket(Bucket=name)
            ecr.create_repository(repositoryName=name)
        self.policies = [
            batch.create_scheduling_policy(name=name)["arn"] for name in ("ground", "other-ground")
        ]


STORAGE_NAMES = (
    "secret",
    "named secret",
    "secret version",
    "parameter",
    "repository",
    "image lifecycle",
    "bucket",
    "versioning",
    "encryption",
    "public access",
    "bucket lifecycle",
    "bucket policy",
    "managed policy",
    "named managed policy",
    "shares",
    "fair queue",
)


def storage_cases(on: StorageGround) -> dict[str, Case]:
    """By a name for test reports."""
    return {**_secrets(on), **_images(), **_buckets(on), **_shares(on)}


def _secrets(on: StorageGround) -> dict[str, Case]:
    return {
        "secret": Case(
            token="aws:secretsmanager/secret:Secret",
            inputs={
                "namePrefix": "fleet/",
                "description": "Of the team",
                "recoveryWindowInDays": 0,
                "tags": {"team": "rl"},
            },
            edits=({"description": "Of the other team"}, {"tags": {"stage": "1"}}),
            replacing=({"namePrefix": "other/"}, {"region": "us-west-2"}),
        ),
        "named secret": Case(
            token="aws:secretsmanager/secret:Secret",
            inputs={"name": "fleet/key", "recoveryWindowInDays": 0},
            replacing=({"name": "fleet/other"},),
        ),
        "secret version": Case(
            token="aws:secretsmanager/secretVersion:SecretVersion",
            inputs={"secretId": on.secrets[0], "secretString": "one"},
            stays=True,
            replacing=(
                {"secretString": "two"},
                {"secretId": on.secrets[1]},
                {"region": "us-west-2"},
            ),
        ),
        "parameter": Case(
            token="aws:ssm/parameter:Parameter",
            inputs={
                "name": "/fleet/one",
                "type": "String",
                "insecureValue": "{}",
                "description": "A queue",
                "tags": {"team": "rl"},
            },
            edits=(
                {"insecureValue": '{"arn": 1}'},
                {"description": "Queue"},
                {"tags": {"stage": "1"}},
            ),
            replacing=({"name": "/fleet/two"}, {"region": "us-west-2"}),
        ),
        "managed policy": Case(
            token="aws:iam/policy:Policy",
            inputs={
                "namePrefix": "fleet-",
                "path": "/teams/",
                "description": "Submitters",
                "policy": allow("batch:SubmitJob"),
                "tags": {"team": "rl"},
            },
            edits=(
                {"policy": allow("batch:DescribeJobs")},
                {"policy": allow("batch:ListJobs")},
                {"tags": {"stage": "1"}},
            ),
            replacing=({"description": "Others"}, {"path": "/"}, {"namePrefix": "other-"}),
        ),
        "named managed policy": Case(
            token="aws:iam/policy:Policy",
            inputs={"name": "fleet", "policy": allow("batch:SubmitJob")},
            replacing=({"name": "other"},),
        ),
    }


def _images() -> dict[str, Case]:
    def keep(count: int) -> str:
        rule = {
            "rulePriority": 1,
            "selection": {
                "tagStatus": "any",
                "countType": "imageCountMoreThan",
                "countNumber": count,
            },
            "action": {"type": "expire"},
        }
        return json.dumps({"rules": [rule]})

    return {
        "repository": Case(
            token="aws:ecr/repository:Repository",
            inputs={
                "name": "fleet",
                "imageScanningConfiguration": {"scanOnPush": True},
                "imageTagMutability": "MUTABLE",
                "forceDelete": True,
                "tags": {"team": "rl"},
            },
            edits=(
                {"imageScanningConfiguration": {"scanOnPush": False}},
                {"imageTagMutability": "IMMUTABLE"},
                {"tags": {"stage": "1"}},
                {"forceDelete": False},
            ),
            replacing=({"name": "other"}, {"region": "us-west-2"}),
        ),
        "image lifecycle": Case(
            token="aws:ecr/lifecyclePolicy:LifecyclePolicy",
            inputs={"repository": "ground", "policy": keep(3)},
            replacing=(
                {"policy": keep(4)},
                {"repository": "other-ground"},
                {"region": "us-west-2"},
            ),
        ),
    }


def _buckets(on: StorageGround) -> dict[str, Case]:
    bucket, other = on.buckets
    elsewhere: tuple[dict[str, Any], ...] = ({"bucket": other}, {"region": "us-west-2"})
    rule = {
        "id": "old",
        "status": "Enabled",
        "filter": {"prefix": ""},
        "expiration": {"days": 30},
        "noncurrentVersionExpiration": {"noncurrentDays": 7},
        "abortIncompleteMultipartUpload": {"daysAfterInitiation": 7},
    }
    flags = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    return {
        "bucket": Case(
            token="aws:s3/bucket:Bucket",
            inputs={"bucketPrefix": "fleet-", "forceDestroy": True, "tags": {"team": "rl"}},
            edits=({"tags": {"stage": "1"}}, {"tags": {}}, {"forceDestroy": False}),
            replacing=({"bucketPrefix": "other-"}, {"region": "us-west-2"}),
        ),
        "versioning": Case(
            token="aws:s3/bucketVersioning:BucketVersioning",
            inputs={"bucket": bucket, "versioningConfiguration": {"status": "Enabled"}},
            stays=True,
            edits=({"versioningConfiguration": {"status": "Suspended"}},),
            replacing=elsewhere,
        ),
        "encryption": Case(
            token="aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
            inputs={
                "bucket": bucket,
                "rules": [
                    {
                        "applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"},
                        "bucketKeyEnabled": True,
                    }
                ],
            },
            edits=(
                {"rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "aws:kms"}}]},
            ),
            replacing=elsewhere,
        ),
        "public access": Case(
            token="aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
            inputs={"bucket": bucket, **dict.fromkeys(flags, True)},
            edits=({"blockPublicAcls": False},),
            replacing=elsewhere,
        ),
        "bucket lifecycle": Case(
            token="aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
            inputs={"bucket": bucket, "rules": [rule]},
            edits=({"rules": [rule | {"expiration": {"days": 60}}]},),
            replacing=elsewhere,
        ),
        "bucket policy": Case(
            token="aws:s3/bucketPolicy:BucketPolicy",
            inputs={"bucket": bucket, "policy": allow("s3:GetObject")},
            edits=({"policy": allow("s3:PutObject")},),
            replacing=elsewhere,
        ),
    }


def _shares(on: StorageGround) -> dict[str, Case]:
    shares: dict[str, Any] = {
        "computeReservation": 10,
        "shareDecaySeconds": 3600,
        "shareDistributions": [{"shareIdentifier": "vision*", "weightFactor": 0.5}],
    }
    return {
        "shares": Case(
            token="aws:batch/schedulingPolicy:SchedulingPolicy",
            inputs={"name": "fleet", "fairSharePolicy": shares, "tags": {"team": "rl"}},
            edits=(
                {"fairSharePolicy": shares | {"shareDecaySeconds": 7200}},
                {"tags": {"stage": "1"}},
            ),
            replacing=({"name": "other"}, {"region": "us-west-2"}),
        ),
        "fair queue": Case(
            token="aws:batch/jobQueue:JobQueue",
            inputs={
                "name": "fleet",
                "priority": 1,
                "state": "ENABLED",
                "schedulingPolicyArn": on.policies[0],
                "computeEnvironmentOrders": [{"order": 1, "computeEnvironment": on.environment}],
            },
            edits=({"schedulingPolicyArn": on.policies[1]},),
        ),
    }
