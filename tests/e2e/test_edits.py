"""Every setting, edited on a fleet that stands: what the engine plans, and that AWS then has it.

Each edit is asked about by itself; then those of a round are made together, and the next round
stands on what they have left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from .conftest import ROOT, Account, Failed, Stack, Workshop

pytestmark = [pytest.mark.engine, pytest.mark.slow]

POOLS = ("c6g-medium", "c6g-medium-spot")
BASE: dict[str, Any] = {"instanceTypes": ["c6g.medium"], "storageOnDestroy": "delete"}


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """`change` of the settings, and the plan for it: operation by resource; or what is told."""

    change: dict[str, Any]
    round: int = 1
    plan: dict[str, str] = {}
    refused: str = ""


def each(operation: str, *kinds: str, of: tuple[str, ...] = POOLS) -> dict[str, str]:
    """One operation for resources of both pools."""
    return {
        f"{kind} {'edits-' if kind == 'JobQueue' else ''}{pool}": operation
        for kind in kinds
        for pool in of
    }


TOLD = {"EndingJobs jobs": "update"}
"""What tells of the jobs in all queues."""
ROLES = {f"Role {name}-role": "replace" for name in ("instance", "job", "execution")}
ATTACHED = {
    "RolePolicyAttachment instance-role-AmazonEC2ContainerServiceforEC2Role": "replace",
    "RolePolicyAttachment execution-role-AmazonECSTaskExecutionRolePolicy": "replace",
}
BUCKET = (
    "Bucket",
    "BucketLifecycleConfiguration",
    "BucketPolicy",
    "BucketPublicAccessBlock",
    "BucketServerSideEncryptionConfiguration",
    "BucketVersioning",
)
PARTS = ("fleet", "tags", "queues/c6g-medium", "queues/c6g-medium-spot")


def edits(subnet: str, vpc: str) -> dict[str, Edit]:
    """By the key that they are about."""
    new_machines = each("update", "LaunchTemplate", "ComputeEnvironment")
    return {
        "instanceTypes": Edit(
            change={"instanceTypes": ["c6g.medium", {"type": "c5a.large", "spot": False}]},
            plan={"TypeQueues c5a.large": "create", **TOLD}
            | each("create", "LaunchTemplate", "ComputeEnvironment", "JobQueue", of=("c5a-large",)),
        ),
        "instanceTypes, back": Edit(
            round=2,
            change={"instanceTypes": ["c6g.medium"]},
            plan={"TypeQueues c5a.large": "delete", **TOLD}
            | each("delete", "LaunchTemplate", "ComputeEnvironment", "JobQueue", of=("c5a-large",)),
        ),
        "maxVcpus": Edit(change={"maxVcpus": 16}, plan=each("update", "ComputeEnvironment")),
        "spotBidPercentage": Edit(
            change={"spotBidPercentage": 50},
            plan={"ComputeEnvironment c6g-medium-spot": "update"},
        ),
        "priority": Edit(change={"priority": 5}, plan=each("update", "JobQueue")),
        "allocationStrategy": Edit(
            change={"spotAllocationStrategy": "SPOT_CAPACITY_OPTIMIZED"},
            plan={"ComputeEnvironment c6g-medium-spot": "update"},
        ),
        "capacityWaitHours": Edit(change={"capacityWaitHours": 2}, plan=each("update", "JobQueue")),
        "longestJobHours": Edit(
            change={"longestJobHours": 1}, plan=each("update", "ComputeEnvironment")
        ),
        "rootVolumeGib": Edit(change={"rootVolumeGib": 200}, plan=new_machines),
        "tags": Edit(
            change={"tags": {"cost-center": "4711"}},
            plan=each("update", "LaunchTemplate", "ComputeEnvironment", "JobQueue")
            | {
                "SecurityGroup machines": "update",
                "SecurityGroupEgressRule machines-to-anywhere": "update",
                "SecurityGroupIngressRule machines-to-machines": "update",
                "InstanceProfile instance-profile": "update",
                "LogGroup logs": "update",
                **dict.fromkeys(ROLES, "update"),
            },
        ),
        "logRetentionDays": Edit(change={"logRetentionDays": 7}, plan={"LogGroup logs": "update"}),
        "image": Edit(change={"image": "python:3.12"}),
        "capacityCheck": Edit(change={"capacityCheck": "warn"}),
        "subnetIds": Edit(
            change={"subnetIds": [subnet]}, plan=each("update", "ComputeEnvironment")
        ),
        "vpcId": Edit(change={"vpcId": vpc}),
        "instanceStore": Edit(change={"instanceStore": True}),
        "flex": Edit(
            change={"flex": True}, plan={"JobQueue edits-c6g-medium-flex": "create", **TOLD}
        ),
        "flex, back": Edit(
            round=2,
            change={"flex": False},
            plan={"JobQueue edits-c6g-medium-flex": "delete", **TOLD},
        ),
        "secrets": Edit(
            change={"secrets": {"HF_TOKEN": "hf"}},
            refused="stands in plain text in the stack's file",
        ),
        "wandbApiKey": Edit(change={"wandbApiKey": "key"}, refused="stands in plain text"),
        "fairShare": Edit(change={"fairShare": True}, refused="Batch fixes when a queue is made"),
        "shares": Edit(change={"shares": {"a": 2}}, refused="only where fairShare is true"),
        "naming": Edit(change={"naming": "plain"}, refused="a queue can not be renamed"),
        "permissionsBoundary": Edit(
            change={"permissionsBoundary": "arn:aws:iam::aws:policy/PowerUserAccess"},
            plan=dict.fromkeys(ROLES, "update"),
        ),
        # The new roles are there before machines and jobs are told of them.
        "rolePath": Edit(
            round=3,
            change={"rolePath": "/teams/"},
            plan=ROLES
            | ATTACHED
            | {
                "InstanceProfile instance-profile": "replace",
                "RolePolicy use-artifacts": "replace",
            }
            | each("update", "ComputeEnvironment"),
        ),
        "repository": Edit(
            change={"repository": True},
            plan={
                "ImageRepository images": "create",
                "Repository images": "create",
                "LifecyclePolicy images": "create",
            },
        ),
        "repositoryKeepImages": Edit(
            round=2, change={"repositoryKeepImages": 9}, plan={"LifecyclePolicy images": "replace"}
        ),
        "bucket": Edit(
            change={"bucket": True},
            plan={
                "ArtifactBucket artifacts": "create",
                "RolePolicy use-artifacts": "create",
                **{f"{kind} artifacts": "create" for kind in BUCKET},
            },
        ),
        "bucketExpiryDays": Edit(
            round=2,
            change={"bucketExpiryDays": 30},
            plan={"BucketLifecycleConfiguration artifacts": "update"},
        ),
        "storageOnDestroy": Edit(
            round=2,
            change={"storageOnDestroy": "protect"},
            plan={"Repository images": "update", "Bucket artifacts": "update"},
        ),
        "storageOnDestroy, bucket": Edit(
            round=3,
            change={"bucket": False},
            refused="because it is protected",
        ),
        "storageOnDestroy, back": Edit(
            round=3,
            change={"storageOnDestroy": "delete"},
            plan={"Repository images": "update", "Bucket artifacts": "update"},
        ),
        "publish": Edit(
            round=3,
            change={"publish": True},
            plan={"Publishing publishing": "create"}
            | {f"Parameter {part}": "create" for part in PARTS},
        ),
        "submitters": Edit(
            round=3, change={"submitters": True}, plan={"Policy submitters": "create"}
        ),
        "spotFleetRole": Edit(
            round=3,
            change={"spotFleetRole": True},
            plan={
                "Role spot-fleet-role": "create",
                "RolePolicyAttachment spot-fleet-role-AmazonEC2SpotFleetTaggingRole": "create",
                "ComputeEnvironment c6g-medium-spot": "replace",
                "JobQueue edits-c6g-medium-spot": "update",
            },
        ),
        # A new environment, the queue led to it, and then the old one taken away.
        "batchServiceRole": Edit(
            round=4,
            change={"batchServiceRole": True},
            plan={
                "Role batch-service-role": "create",
                "RolePolicyAttachment batch-service-role-AWSBatchServiceRole": "create",
            }
            | each("replace", "ComputeEnvironment")
            | each("update", "JobQueue"),
        ),
        "spot": Edit(
            round=5,
            change={"spot": False},
            plan=each("delete", "LaunchTemplate", "ComputeEnvironment", "JobQueue", of=POOLS[1:])
            | {
                **TOLD,
                "Parameter queues/c6g-medium-spot": "delete",
                "Role spot-fleet-role": "delete",
                "RolePolicyAttachment spot-fleet-role-AmazonEC2SpotFleetTaggingRole": "delete",
            },
        ),
        "onDemand": Edit(
            round=6, change={"onDemand": False}, refused="neither a spot nor an on-demand"
        ),
    }


TOLD_ELSEWHERE = {"shareDecayHours", "shareReservation", "spotAllocationStrategy"}
"""Of fair shares, in test_shares; and a key that stands in the row of its brother."""


def test_every_key_has_an_edit() -> None:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    told = {key.partition(",")[0] for key in edits("", "")}
    told |= {key for edit in edits("", "").values() for key in edit.change}
    assert told | TOLD_ELSEWHERE == set(declared)


def test_edits(account: Account, project: Path, workshop: Workshop) -> None:
    empty = account.everything()
    stack = workshop(project, "edits")
    settings = dict(BASE)
    stack.configure(**settings)
    stack.up()
    subnets = account.sandbox.client("ec2").describe_subnets()["Subnets"]
    rows = edits(subnets[0]["SubnetId"], subnets[0]["VpcId"])
    for number in sorted({edit.round for edit in rows.values()}):
        for key, edit in rows.items():
            if edit.round == number:
                ask(stack, key, settings | edit.change, edit)
        made = [e for e in rows.values() if e.round == number and not e.refused]
        for edit in made:
            settings |= edit.change
        stack.configure(**settings)
        stack.up()
        assert stack.plan() == {}, number
    stack.up("--refresh", "--expect-no-changes")
    stack.destroy()
    assert account.everything() == empty


def ask(stack: Stack, key: str, settings: dict[str, Any], edit: Edit) -> None:
    stack.configure(**settings)
    if edit.refused:
        with pytest.raises(Failed, match=edit.refused):
            stack.plan()
    else:
        assert stack.plan() == edit.plan, key


def test_shares(account: Account, project: Path, workshop: Workshop) -> None:
    """How a queue shares may be changed; whether it does, not."""
    stack = workshop(project, "shares")
    fair = {"instanceTypes": ["c6g.medium"], "spot": False, "fairShare": True}
    stack.configure(**fair)
    stack.up()
    for change in ({"shareDecayHours": 1}, {"shareReservation": 10}, {"shares": {"a*": 0.5}}):
        stack.configure(**fair, **change)
        assert stack.plan() == {"SchedulingPolicy shares-share": "update"}
    stack.up()
    stack.configure(**fair | {"fairShare": False})
    with pytest.raises(Failed, match="Batch fixes when a queue is made"):
        stack.plan()
    stack.destroy()
    assert account.environments("shares") == {}
