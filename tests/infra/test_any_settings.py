"""Settings at random: a plan that AWS takes, or a message; never a traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import settings as run_with
from hypothesis import strategies as st

from infra.choices import choose
from infra.mistakes import Refused
from infra.plan import plan_fleet
from infra.plans import FleetPlan
from infra.secret_settings import read_secrets
from infra.settings import Settings, TypeSettings, read_settings

from .test_plan import ACCOUNT, CATALOG

ROOT = Path(__file__).resolve().parents[2]

# What people type, mostly nearly right.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
TYPE_NAMES = st.sampled_from(sorted(CATALOG)) | st.text("g4dn.xlarge-", max_size=12)
ITEMS = TYPE_NAMES | st.fixed_dictionaries(
    {"type": TYPE_NAMES},
    optional={
        "spot": st.booleans() | JSON,
        "onDemand": st.booleans() | JSON,
        "maxVcpus": st.integers(-2, 2000) | JSON,
        "spotBidPercentage": st.integers(-1, 102),
        "imageId": st.sampled_from(["ami-12345678", "ami-87654321"]) | JSON,
        "flex": st.booleans(),
        "instanceStore": st.booleans(),
        "priority": st.integers(-1, 1001),
        "allocationStrategy": st.sampled_from(["BEST_FIT", "best_fit_progressive", "SPOT"]),
        "spotAllocationStrategy": st.sampled_from(["BEST_FIT", "SPOT_CAPACITY_OPTIMIZED"]),
        "size": JSON,
    },
)
ANY: dict[str, st.SearchStrategy[str]] = {
    "runfleet:instanceTypes": st.lists(ITEMS, max_size=30).map(json.dumps)
    | JSON.map(json.dumps)
    | st.text(),
    "runfleet:spot": st.sampled_from(["true", "false", "no"]) | st.text(),
    "runfleet:onDemand": st.sampled_from(["true", "false", ""]),
    "runfleet:maxVcpus": st.integers(-5, 200_000).map(str) | st.text(),
    "runfleet:spotBidPercentage": st.integers(-5, 120).map(str) | st.text(),
    "runfleet:longestJobHours": st.integers(-1, 8).map(str) | JSON.map(json.dumps),
    "runfleet:rootVolumeGib": st.integers(0, 20_000).map(str) | st.text(),
    "runfleet:subnetIds": st.sampled_from(["subnet-12345678", "[]", "x", "[[]]"]) | st.text(),
    "runfleet:vpcId": st.sampled_from(["", "vpc-12345678", "vpc-1"]) | st.text(),
    "runfleet:image": st.sampled_from(["python:3.12", "", "a b"]) | st.text(),
    "runfleet:logRetentionDays": st.integers(0, 4000).map(str),
    "runfleet:tags": st.dictionaries(st.text(), st.text() | JSON, max_size=4).map(json.dumps)
    | st.text(),
    "runfleet:flex": st.sampled_from(["true", "false"]),
    "runfleet:capacityWaitHours": st.integers(-1, 25).map(str),
    "runfleet:fairShare": st.sampled_from(["true", "false"]),
    "runfleet:shares": st.sampled_from(["a=1,b*=2.5", "{}", '{"a": "x"}', "a-b=1"]),
    "runfleet:rolePath": st.sampled_from(["/", "/teams/", "teams", ""]),
    "runfleet:permissionsBoundary": st.sampled_from(
        ["", "arn:aws:iam::123456789012:policy/bound", "bound"]
    ),
    "runfleet:batchServiceRole": st.sampled_from(["true", "false"]),
    "runfleet:spotFleetRole": st.sampled_from(["true", "false"]),
    "runfleet:priority": st.integers(-1, 1001).map(str) | JSON.map(json.dumps),
    "runfleet:allocationStrategy": st.sampled_from(["BEST_FIT", "best_fit", "SPOT", ""]),
    "runfleet:spotAllocationStrategy": st.sampled_from(["BEST_FIT", "LOWEST_PRICE"]),
    "runfleet:shareDecayHours": st.integers(-1, 169).map(str),
    "runfleet:shareReservation": st.integers(-1, 100).map(str) | st.text(),
    "runfleet:instanceStore": st.sampled_from(["true", "false", "nvme"]),
    "runfleet:repository": st.sampled_from(["true", "false", "yes"]),
    "runfleet:repositoryKeepImages": st.integers(0, 1001).map(str) | st.text(),
    "runfleet:bucket": st.sampled_from(["true", "false", "on"]),
    "runfleet:bucketExpiryDays": st.integers(-1, 3651).map(str) | JSON.map(json.dumps),
    "runfleet:storageOnDestroy": st.sampled_from(["protect", "retain", "delete", "keep"]),
    "runfleet:naming": st.sampled_from(["stack", "plain", "short"]),
    "runfleet:capacityCheck": st.sampled_from(["fail", "warn", "none", "off"]),
    "runfleet:publish": st.sampled_from(["true", "false", "ssm"]),
    "runfleet:submitters": st.sampled_from(["true", "false"]) | st.text(),
    "runfleet:wandbApiKey": st.text(),
    "runfleet:secrets": st.dictionaries(st.text(), st.text() | JSON, max_size=3).map(json.dumps)
    | JSON.map(json.dumps)
    | st.text(),
    "runfleet:maxVcpu": st.text(),
    "aws:region": st.text(),
}
CONFIG = st.fixed_dictionaries({}, optional=ANY)
TRUTH = st.sampled_from(["true", "false"])
GOOD: dict[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(
        (
            "batchServiceRole",
            "bucket",
            "fairShare",
            "flex",
            "instanceStore",
            "publish",
            "repository",
            "spotFleetRole",
            "submitters",
        ),
        TRUTH,
    ),
    "instanceTypes": st.lists(
        st.sampled_from(["c6g.medium", "c5a.large", "g4dn.xlarge", "m6gd.medium", "p4d.24xlarge"]),
        min_size=1,
        unique=True,
    ).map(json.dumps),
    "maxVcpus": st.sampled_from(["96", "100000"]),
    "spotBidPercentage": st.sampled_from(["1", "99", "100"]),
    "priority": st.sampled_from(["0", "1000"]),
    "allocationStrategy": st.sampled_from(["BEST_FIT", "BEST_FIT_PROGRESSIVE"]),
    "spotAllocationStrategy": st.sampled_from(
        ["BEST_FIT", "BEST_FIT_PROGRESSIVE", "SPOT_CAPACITY_OPTIMIZED"]
    ),
    "capacityWaitHours": st.sampled_from(["0", "1", "24"]),
    "shareDecayHours": st.sampled_from(["0", "168"]),
    "shareReservation": st.sampled_from(["0", "99"]),
    "longestJobHours": st.sampled_from(["1", "6"]),
    "subnetIds": st.just("subnet-aaaaaaaa"),
    "rootVolumeGib": st.sampled_from(["30", "16384"]),
    "rolePath": st.sampled_from(["/", "/teams/rl/"]),
    "permissionsBoundary": st.just("arn:aws:iam::123456789012:policy/bound"),
    "repositoryKeepImages": st.sampled_from(["1", "1000"]),
    "bucketExpiryDays": st.sampled_from(["0", "1", "3650"]),
    "storageOnDestroy": st.sampled_from(["protect", "retain", "delete"]),
    "naming": st.sampled_from(["stack", "plain"]),
    "logRetentionDays": st.sampled_from(["1", "3653"]),
    "tags": st.dictionaries(
        st.text("abcxyz-", min_size=1, max_size=128), st.text("abc", max_size=256), max_size=40
    ).map(json.dumps),
    "wandbApiKey": st.text(min_size=1),
    "secrets": st.dictionaries(
        st.text("ABC_", min_size=1, max_size=128), st.text(min_size=1, max_size=9), max_size=9
    ).map(json.dumps),
}
"""What goes, and its ends: with these the plans are looked at, not the messages alone."""
MOSTLY_GOOD = st.fixed_dictionaries(
    {}, optional={f"runfleet:{key}": strategy for key, strategy in GOOD.items()}
)
OWN_IMAGE = {"arm64": "ami-12345678", "x86_64": "ami-87654321"}
OWN_IMAGE |= {"arm64_mac": "ami-12345678", "x86_64_mac": "ami-87654321"}
STACKS = st.text("abcXYZ019._-", min_size=1, max_size=100)


def test_all_keys_are_drawn() -> None:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    assert {*declared, "maxVcpu", "aws:region"} == {key.removeprefix("runfleet:") for key in ANY}
    assert set(GOOD) <= set(declared)


@run_with(max_examples=400, deadline=None)
@given(CONFIG | MOSTLY_GOOD, st.booleans(), STACKS)
def test_any_settings_make_a_plan_that_aws_takes_or_a_message(
    config: dict[str, str],
    kept_secret: bool,  # noqa: FBT001 # hypothesis passes by position
    stack: str,
) -> None:
    keys = frozenset({"runfleet:wandbApiKey", "runfleet:secrets"}) if kept_secret else frozenset()
    settings, mistakes = read_settings(config, secret_keys=keys)
    secrets, bad_secrets = read_secrets(config, secret_keys=keys)
    mistakes += bad_secrets
    choices, impossible = choose(settings, CATALOG)
    if mistakes or impossible:
        told = Refused([*mistakes, *impossible]).told(stack)
        assert all(f"\n  {mistake.path}: {mistake.problem}" in told for mistake in mistakes)
        return
    try:
        plan = plan_fleet(
            settings, choices, ACCOUNT, stack=stack, project="runfleet", secret_names=secrets
        )
    except Refused as refused:
        assert {
            re.sub(r"\[\d+\]", "", m.path) for m in refused.mistakes
        } <= {  # only these may come
            "runfleet:instanceTypes",
            "runfleet:instanceTypes.imageId",
            "runfleet:subnetIds",
            "runfleet:rootVolumeGib",
            "runfleet:tags",
        }
        return
    check_against_aws(plan)


@run_with(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(CATALOG)), min_size=1, max_size=25, unique=True),
    st.booleans(),
    STACKS,
)
def test_any_types_of_the_catalogue(names: list[str], own_images: bool, stack: str) -> None:  # noqa: FBT001 # hypothesis passes by position
    """Mostly good settings, so that the plans are looked at too."""
    items = tuple(
        TypeSettings(
            type=name,
            spot=CATALOG[name].spot,
            on_demand=True,
            max_vcpus=max(CATALOG[name].vcpus, 1),
            image_id=OWN_IMAGE[CATALOG[name].arch] if own_images else None,
        )
        for name in names
    )
    settings = Settings(instance_types=items, root_volume_gib=200)
    choices, impossible = choose(settings, CATALOG)
    if impossible:
        assert any(re.search("image of your own|can not be had", m.problem) for m in impossible)
        return
    check_against_aws(plan_fleet(settings, choices, ACCOUNT, stack=stack, project="runfleet"))


def check_against_aws(plan: FleetPlan) -> None:
    """What Batch, EC2 and IAM would refuse, written down apart from the plan's own code."""
    computes = [compute for t in plan.types for compute in t.compute]
    queues = [queue for t in plan.types for queue in t.queues]
    assert 0 < len(computes) <= 50
    assert 0 < len(queues) <= 50
    for name in (n for q in queues for n in (q.resource_name, *q.compute)):
        assert re.fullmatch("[0-9A-Za-z][0-9A-Za-z_-]{0,119}", name)
    assert len({queue.resource_name for queue in queues}) == len(queues)
    for compute in computes:
        instance_type = CATALOG[compute.instance_type]
        assert re.fullmatch("[0-9A-Za-z][0-9A-Za-z_-]{0,101}", compute.environment_name_prefix)
        assert re.fullmatch(r"[0-9A-Za-z().\-/_]{3,102}", compute.template_name_prefix)
        assert not re.match(r"(t\d|mac|c1|m1|m2)", instance_type.family)
        assert compute.image_type in {"ECS_AL2023", "ECS_AL2023_NVIDIA"}
        assert compute.image_type == "ECS_AL2023" or instance_type.arch == "x86_64"
        assert compute.image_id or instance_type.family not in {"a1", "g5g", "p3", "g3", "g4ad"}
        assert (compute.market == "SPOT") == compute.name.endswith("-spot")
        assert compute.market == "EC2" or instance_type.spot
        assert compute.market == "SPOT" or compute.bid_percentage is None
        assert (
            compute.allocation_strategy
            in {
                "EC2": {"BEST_FIT_PROGRESSIVE", "BEST_FIT"},
                "SPOT": {
                    "SPOT_PRICE_CAPACITY_OPTIMIZED",
                    "SPOT_CAPACITY_OPTIMIZED",
                    "BEST_FIT_PROGRESSIVE",
                    "BEST_FIT",
                },
            }[compute.market]
        )
        if compute.market == "SPOT" and compute.allocation_strategy == "BEST_FIT":
            assert compute.spot_fleet_role
        assert plan.roles.spot_fleet or not compute.spot_fleet_role
        assert plan.roles.batch_service or not compute.service_role
        assert compute.max_vcpus >= instance_type.vcpus
        assert 1 <= compute.job_execution_timeout_minutes <= 360
        assert compute.subnet_ids
        assert len(compute.tags) <= 50
        assert not any(key.lower().startswith("aws:") for key in compute.tags)
    for role in (plan.roles.instance, plan.roles.job, plan.roles.execution):
        assert re.fullmatch("[A-Za-z0-9_+=,.@-]{1,38}", role.name_prefix)
    assert re.fullmatch("(?!sg-).{1,229}", plan.network.group_name_prefix)
    assert re.fullmatch(r"[.\-_/#A-Za-z0-9]{1,512}", plan.log_group.name)
    for queue in queues:
        assert 1 <= len(queue.compute) <= 3
        assert set(queue.compute) <= {compute.name for compute in computes}
        assert 0 <= queue.priority <= 1000
        assert (plan.share is not None) == queue.fair_share
        assert all(600 <= limit.max_time_seconds <= 86_400 for limit in queue.time_limits)
        nominal = CATALOG[queue.facts.instance_type].memory_mib
        assert 0 < queue.facts.memory_mib <= nominal * 0.95 - 32
    check_kept(plan)


def check_kept(plan: FleetPlan) -> None:
    """What Secrets Manager, S3, ECR, SSM and Batch's fair shares would refuse."""
    prefixes = [secret.name_prefix for secret in plan.secrets.secrets] if plan.secrets else []
    assert len(set(prefixes)) == len(prefixes)
    assert all(re.fullmatch("[A-Za-z0-9/_+=.@-]{1,486}", prefix) for prefix in prefixes)
    if plan.bucket:
        assert re.fullmatch("[a-z0-9][a-z0-9-]{0,36}", plan.bucket.name_prefix)
        assert plan.bucket.expiry_days is None or plan.bucket.expiry_days >= 1
    if plan.repository:
        part = "[a-z0-9]+(?:[._-][a-z0-9]+)*"
        assert re.fullmatch(f"{part}(/{part})*", plan.repository.name)
        assert 2 <= len(plan.repository.name) <= 256
    if plan.publishing:
        assert len(plan.publishing.tags_text.encode()) <= 4096
    if plan.share:
        assert 0 <= plan.share.share_decay_seconds <= 604_800
        assert 0 <= plan.share.compute_reservation <= 99
        assert len(plan.share.weights) <= 500
        assert all(0.0001 <= weight <= 999.9999 for weight in plan.share.weights.values())
