"""infra.plan: the default fleet once, then one override a test."""

from __future__ import annotations

import base64
import email
import json
import re

import msgspec
import pytest

from infra.catalog import parse_catalog
from infra.choices import choose
from infra.data import instance_types_csv
from infra.ground import no_ground
from infra.mistakes import Refused
from infra.plan import fleet_document, plan_fleet
from infra.plans import (
    Account,
    ComputePlan,
    FleetPlan,
    Image,
    QueuePlan,
    Subnet,
    TimeLimit,
)
from infra.rights import may_submit
from infra.settings import Settings, TypeSettings
from submit.fleet import Queue, fleet_to_builtins, parse_fleet

CATALOG = parse_catalog(instance_types_csv())
ALL_ZONES = frozenset({"us-east-1a", "us-east-1b"})
ACCOUNT = Account(
    account="123456789012",
    region="us-east-1",
    partition="aws",
    dns_suffix="amazonaws.com",
    vpc_id="vpc-12345678",
    subnets=(
        Subnet(id="subnet-bbbbbbbb", vpc_id="vpc-12345678", zone="us-east-1b"),
        Subnet(id="subnet-aaaaaaaa", vpc_id="vpc-12345678", zone="us-east-1a"),
    ),
    zones_by_type=dict.fromkeys(CATALOG, ALL_ZONES),
    images={
        "ami-12345678": Image(
            id="ami-12345678", arch="arm64", root_device="/dev/sda1", root_volume_gib=30
        ),
        "ami-87654321": Image(
            id="ami-87654321", arch="x86_64", root_device="/dev/xvda", root_volume_gib=200
        ),
    },
)
TAGS = {"team": "rl", "project": "runfleet", "stack": "rl"}


def planned(settings: Settings, account: Account = ACCOUNT, stack: str = "rl") -> FleetPlan:
    choices, mistakes = choose(settings, CATALOG)
    assert mistakes == []
    return plan_fleet(settings, choices, account, stack=stack, project="runfleet")


def one_type(item: TypeSettings, **settings: object) -> FleetPlan:
    return planned(msgspec.structs.replace(Settings(instance_types=(item,)), **settings))


DEFAULT_COMPUTE = ComputePlan(
    name="c6g-medium",
    template_name_prefix="runfleet-rl-c6g-medium-",
    environment_name_prefix="rl-c6g-medium-",
    market="EC2",
    allocation_strategy="BEST_FIT_PROGRESSIVE",
    bid_percentage=None,
    instance_type="c6g.medium",
    image_type="ECS_AL2023",
    image_id=None,
    root_device="/dev/xvda",
    max_vcpus=256,
    subnet_ids=("subnet-aaaaaaaa", "subnet-bbbbbbbb"),
    root_volume_gib=100,
    user_data=None,
    job_execution_timeout_minutes=360,
    service_role=False,
    spot_fleet_role=False,
    tags=TAGS | {"queue": "c6g-medium"},
)
DEFAULT_QUEUE = QueuePlan(
    name="c6g-medium",
    resource_name="rl-c6g-medium",
    fixed_name=None,
    compute=("c6g-medium",),
    priority=1,
    time_limits=(
        TimeLimit(reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT", max_time_seconds=600),
        TimeLimit(
            reason="MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE", max_time_seconds=3600
        ),
    ),
    fair_share=False,
    facts=Queue(
        arn="",
        instance_type="c6g.medium",
        arch="arm64",
        vcpus=1,
        memory_mib=1760,
        gpus=0,
        gpu_model=None,
        spot=False,
        max_vcpus=256,
    ),
    tags=TAGS | {"queue": "c6g-medium"},
)


def test_default_pair() -> None:
    """On demand: all of it. Spot: what differs, and no more."""
    (found,) = one_type(TypeSettings(type="c6g.medium")).types
    assert found.compute[0] == DEFAULT_COMPUTE
    assert found.queues[0] == DEFAULT_QUEUE
    spot = found.compute[1]
    assert spot == msgspec.structs.replace(
        DEFAULT_COMPUTE,
        name="c6g-medium-spot",
        template_name_prefix="runfleet-rl-c6g-medium-spot-",
        environment_name_prefix="rl-c6g-medium-spot-",
        market="SPOT",
        allocation_strategy="SPOT_PRICE_CAPACITY_OPTIMIZED",
        user_data=spot.user_data,
        tags=TAGS | {"queue": "c6g-medium-spot"},
    )
    assert found.queues[1] == msgspec.structs.replace(
        DEFAULT_QUEUE,
        name="c6g-medium-spot",
        resource_name="rl-c6g-medium-spot",
        compute=("c6g-medium-spot",),
        facts=msgspec.structs.replace(DEFAULT_QUEUE.facts, spot=True),
        tags=TAGS | {"queue": "c6g-medium-spot"},
    )


def test_default_fleet() -> None:
    plan = planned(Settings())
    assert [queue.name for t in plan.types for queue in t.queues] == [
        *("g4dn-4xlarge", "g4dn-4xlarge-spot", "g4dn-xlarge", "g4dn-xlarge-spot"),
        *("r5ad-large", "r5ad-large-spot", "c6g-medium", "c6g-medium-spot"),
        *("m6gd-medium", "m6gd-medium-spot", "c5a-large", "c5a-large-spot"),
    ]
    assert plan.network.vpc_id == "vpc-12345678"
    assert plan.network.group_name_prefix == "runfleet-rl-"
    assert (plan.log_group.name, plan.log_group.retention_in_days) == ("/runfleet/rl", 90)
    assert plan.tags == TAGS


def test_user_data_is_mime_multipart_and_drains() -> None:
    """Batch refuses user data that are not MIME multipart."""
    (found,) = one_type(TypeSettings(type="c6g.medium")).types
    message = email.message_from_bytes(base64.b64decode(found.compute[1].user_data or ""))
    assert message.get_content_type() == "multipart/mixed"
    (script,) = message.get_payload()
    assert script.get_content_type() == "text/x-shellscript"
    text = script.get_payload()
    assert text.startswith("#!/bin/sh\n")
    assert "ECS_ENABLE_SPOT_INSTANCE_DRAINING=true >> /etc/ecs/ecs.config" in text


@pytest.mark.parametrize(
    ("item", "settings", "changes"),
    [
        (TypeSettings(type="c6g.medium"), {"max_vcpus": 8}, {"max_vcpus": 8}),
        (TypeSettings(type="c6g.medium", max_vcpus=4), {"max_vcpus": 8}, {"max_vcpus": 4}),
        (TypeSettings(type="c6g.medium"), {"root_volume_gib": 30}, {"root_volume_gib": 30}),
        (
            TypeSettings(type="c6g.medium"),
            {"longest_job_hours": 1},
            {"job_execution_timeout_minutes": 60},
        ),
        (
            TypeSettings(type="c6g.medium", image_id="ami-12345678"),
            {},
            {"image_id": "ami-12345678", "root_device": "/dev/sda1"},
        ),
        (TypeSettings(type="c6g.medium"), {"spot_bid_percentage": 50}, {}),
    ],
)
def test_on_demand_override(
    item: TypeSettings, settings: dict[str, object], changes: dict[str, object]
) -> None:
    found = one_type(item, **settings).types[0].compute[0]
    assert found == msgspec.structs.replace(DEFAULT_COMPUTE, **changes)


def test_bid() -> None:
    """Unset, as AWS advises, unless the team sets less than the whole price."""

    def bid(percentage: int) -> int | None:
        (found,) = one_type(
            TypeSettings(type="c6g.medium", spot_bid_percentage=percentage, on_demand=False)
        ).types
        (compute,) = found.compute
        return compute.bid_percentage

    assert [bid(100), bid(99), bid(1)] == [None, 99, 1]


def test_nvidia() -> None:
    compute, _ = one_type(TypeSettings(type="g4dn.xlarge")).types[0].compute
    assert compute.image_type == "ECS_AL2023_NVIDIA"
    facts = one_type(TypeSettings(type="g4dn.xlarge")).types[0].queues[0].facts
    assert (facts.gpus, facts.gpu_model, facts.arch) == (1, "T4", "x86_64")


def test_subnets_only_where_the_type_is_offered() -> None:
    zones = dict(ACCOUNT.zones_by_type) | {"c6g.medium": frozenset({"us-east-1b", "us-east-1e"})}
    account = msgspec.structs.replace(ACCOUNT, zones_by_type=zones)
    plan = planned(Settings(), account)
    subnets = {t.instance_type: t.compute[0].subnet_ids for t in plan.types}
    assert subnets["c6g.medium"] == ("subnet-bbbbbbbb",)
    assert subnets["c5a.large"] == ("subnet-aaaaaaaa", "subnet-bbbbbbbb")


def test_types_that_are_nowhere_are_refused_together() -> None:
    zones = dict(ACCOUNT.zones_by_type) | {"c6g.medium": frozenset({"us-east-1e"})}
    del zones["c5a.large"]
    account = msgspec.structs.replace(ACCOUNT, zones_by_type=zones)
    with pytest.raises(Refused) as refused:
        planned(Settings(), account)
    elsewhere, nowhere = (mistake.problem for mistake in refused.value.mistakes)
    assert elsewhere.startswith("c6g.medium is offered in us-east-1e only, the subnets are in us-")
    assert nowhere.startswith("us-east-1 does not offer c5a.large;")


def test_roles() -> None:
    """Each trusts one service; what jobs are given is nothing."""
    roles = planned(Settings()).roles
    trusts = {
        role.name_prefix: json.loads(role.assume_role_policy)["Statement"]
        for role in (roles.instance, roles.job, roles.execution)
    }
    tasks = {
        "Effect": "Allow",
        "Principal": {"Service": "ecs-tasks.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"aws:SourceAccount": "123456789012"}},
    }
    machines = {
        "Effect": "Allow",
        "Principal": {"Service": "ec2.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    assert trusts == {
        "runfleet-rl-instance-": [machines],
        "runfleet-rl-job-": [tasks],
        "runfleet-rl-execution-": [tasks],
    }
    assert roles.job.managed_policy_arns == ()


def test_partition() -> None:
    china = msgspec.structs.replace(ACCOUNT, partition="aws-cn", dns_suffix="amazonaws.com.cn")
    role = planned(Settings(), china).roles.instance
    assert role.managed_policy_arns == (
        "arn:aws-cn:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role",
    )
    assert '"ec2.amazonaws.com.cn"' in role.assume_role_policy


def test_no_other_partition_is_named() -> None:
    """Of what a stack with all options has, nothing points out of its partition."""
    gov = msgspec.structs.replace(ACCOUNT, partition="aws-us-gov")
    settings = Settings(
        batch_service_role=True,
        spot_fleet_role=True,
        repository=True,
        bucket=True,
        publish=True,
        submitters=True,
        permissions_boundary="arn:aws-us-gov:iam::aws:policy/PowerUserAccess",
    )
    plan = planned(settings, gov)
    assert plan.submitters
    submit = may_submit(plan.submitters.scope, roles=[], repository_arn=None, bucket=None)
    text = msgspec.json.encode(plan).decode() + submit
    assert "arn:aws-us-gov:" in text
    assert not re.search("arn:(?!aws-us-gov:)", text)


@pytest.mark.parametrize(
    ("arn", "nearest"),
    [
        ("arn:aws:iam::123456789012:policy/b", None),
        ("arn:aws:iam::aws:policy/b", None),
        ("arn:aws:iam::210987654321:policy/a/b", "arn:aws:iam::123456789012:policy/a/b"),
        ("arn:aws-cn:iam::aws:policy/b", "arn:aws:iam::aws:policy/b"),
    ],
)
def test_whose_the_boundary_is(arn: str, nearest: str | None) -> None:
    """IAM would refuse another account's when the first role is made."""
    settings = Settings(permissions_boundary=arn)
    found = no_ground(settings, [], ACCOUNT)
    assert [(m.path, m.command) for m in found] == [
        ("runfleet:permissionsBoundary", f"pulumi config set runfleet:permissionsBoundary {close}")
        for close in ([nearest] if nearest else [])
    ]


def test_tags_of_the_team() -> None:
    """Own tags are everywhere; team and project may be replaced."""
    plan = planned(Settings(tags={"team": "vision", "cost-center": "4711"}))
    own = {"team": "vision", "cost-center": "4711", "project": "runfleet", "stack": "rl"}
    assert plan.tags == plan.network.tags == plan.log_group.tags == plan.roles.job.tags == own
    assert plan.types[0].queues[0].tags == own | {"queue": "g4dn-4xlarge"}


def test_fleet_document() -> None:
    """Every queue with its ARN, readable by submit."""
    plan = planned(Settings())
    names = [queue.name for t in plan.types for queue in t.queues]
    fleet = fleet_document(
        plan,
        roles=("job", "exec"),
        arns={n: f"arn:{n}" for n in names},
        secret_arns={"WANDB_API_KEY": "arn:secret"},
    )
    read = parse_fleet(json.dumps(fleet_to_builtins(fleet)))
    assert read == fleet
    assert {name: queue.arn for name, queue in read.queues.items()} == {
        name: f"arn:{name}" for name in names
    }
    assert (read.job_role_arn, read.execution_role_arn) == ("job", "exec")
    assert (read.account, read.region, read.stack) == ("123456789012", "us-east-1", "rl")
    assert (read.log_group, read.image, read.tags) == ("/runfleet/rl", Settings().image, TAGS)
