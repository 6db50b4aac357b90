"""infra.settings: stack configuration as people write it, and every mistake in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from infra.reference import settings_page
from infra.settings import SECRET_KEYS, Settings, TypeSettings, read_settings

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = Settings()


def read(**keys: str) -> Settings:
    settings, mistakes = read_settings({f"runfleet:{key}": text for key, text in keys.items()})
    assert mistakes == []
    return settings


def wrong(**keys: str) -> dict[str, str]:
    _, mistakes = read_settings({f"runfleet:{key}": text for key, text in keys.items()})
    return {mistake.path.removeprefix("runfleet:"): mistake.problem for mistake in mistakes}


def test_pulumi_yaml_has_the_same_keys_and_defaults() -> None:
    """The engine hands Pulumi.yaml's defaults over as texts; they make the default Settings."""
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    declared: dict[str, Any] = project["config"]
    fields = msgspec.structs.fields(Settings)
    assert set(declared) == {field.encode_name for field in fields} | set(SECRET_KEYS)
    assert all(entry["description"] for entry in declared.values())
    texts = {
        key: entry["default"] if isinstance(entry["default"], str) else json.dumps(entry["default"])
        for key, entry in declared.items()
    }
    assert read(**texts) == DEFAULT


def test_demo_stack_is_well_formed() -> None:
    config = yaml.safe_load((ROOT / "Pulumi.demo.yaml").read_text())["config"]
    texts = {key: v if isinstance(v, str) else json.dumps(v) for key, v in config.items()}
    settings, mistakes = read_settings(texts)
    assert mistakes == []
    assert [item.type for item in settings.instance_types if item] == [
        "c6g.medium",
        "c5a.large",
        "m6gd.medium",
        "g4dn.xlarge",
    ]


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        ("maxVcpus", "16\x1f", "max_vcpus", 16),
        ("maxVcpus", "16", "max_vcpus", 16),
        ("spot", "false", "spot", False),
        ("onDemand", "False", "on_demand", False),
        ("spotBidPercentage", "50", "spot_bid_percentage", 50),
        ("longestJobHours", "1", "longest_job_hours", 1),
        ("flex", "true", "flex", True),
        ("priority", "0", "priority", 0),
        ("allocationStrategy", "best_fit", "allocation_strategy", "BEST_FIT"),
        ("spotAllocationStrategy", "BEST_FIT", "spot_allocation_strategy", "BEST_FIT"),
        ("capacityWaitHours", "24", "capacity_wait_hours", 24),
        ("fairShare", "true", "fair_share", True),
        ("shareDecayHours", "0", "share_decay_hours", 0),
        ("shareReservation", "99", "share_reservation", 99),
        ("shares", "a=0.5,b*=2", "shares", {"a": 0.5, "b*": 2.0}),
        ("instanceStore", "true", "instance_store", True),
        ("rolePath", "/a/b/", "role_path", "/a/b/"),
        (
            "permissionsBoundary",
            "arn:aws-cn:iam::123456789012:policy/b",
            "permissions_boundary",
            "arn:aws-cn:iam::123456789012:policy/b",
        ),
        ("batchServiceRole", "true", "batch_service_role", True),
        ("spotFleetRole", "true", "spot_fleet_role", True),
        ("repository", "true", "repository", True),
        ("repositoryKeepImages", "1", "repository_keep_images", 1),
        ("bucket", "true", "bucket", True),
        ("bucketExpiryDays", "1", "bucket_expiry_days", 1),
        ("storageOnDestroy", "Retain", "storage_on_destroy", "retain"),
        ("naming", "plain", "naming", "plain"),
        ("capacityCheck", "warn", "capacity_check", "warn"),
        ("publish", "true", "publish", True),
        ("submitters", "true", "submitters", True),
        ("vpcId", "vpc-0123456789abcdef0", "vpc_id", "vpc-0123456789abcdef0"),
        ("subnetIds", '["subnet-12345678"]', "subnet_ids", ("subnet-12345678",)),
        (
            "subnetIds",
            "subnet-12345678, subnet-87654321",
            "subnet_ids",
            ("subnet-12345678", "subnet-87654321"),
        ),
        ("rootVolumeGib", "30", "root_volume_gib", 30),
        ("image", "ghcr.io/a/b@sha256:0f", "image", "ghcr.io/a/b@sha256:0f"),
        ("logRetentionDays", "365", "log_retention_days", 365),
        ("tags", '{"year": 2026, "Größe": "a b"}', "tags", {"year": "2026", "Größe": "a b"}),
        ("tags", "a=1,b=", "tags", {"a": "1", "b": ""}),
        ("instanceTypes", "c6g.medium", "instance_types", (TypeSettings(type="c6g.medium"),)),
        (
            "instanceTypes",
            """["t3.micro", {"type": "p3.2xlarge", "spot": false, "onDemand": "true",
            "maxVcpus": "8", "spotBidPercentage": 40, "imageId": "ami-12345678"}]""",
            "instance_types",
            (
                TypeSettings(type="t3.micro"),
                TypeSettings(
                    type="p3.2xlarge",
                    spot=False,
                    on_demand=True,
                    max_vcpus=8,
                    spot_bid_percentage=40,
                    image_id="ami-12345678",
                ),
            ),
        ),
    ],
)
def test_one_key_changes_one_field(key: str, text: str, field: str, value: object) -> None:
    assert read(**{key: text}) == msgspec.structs.replace(DEFAULT, **{field: value})


@pytest.mark.parametrize(
    ("key", "text", "path", "told"),
    [
        ("maxVcpus", "0", "maxVcpus", "from 1 to 100000; nearest: 1$"),
        ("shares", "a=1000", "shares.a", "a number from 0.0001 to 999.9999; nearest: 999.9999$"),
        ("shares", "a=nan", "shares.a", "a number from"),
        ("shares", "a-b=1", "shares.a-b", "a share identifier"),
        ("naming", "plan", "naming", "must be one of .*; nearest: plain$"),
        ("storageOnDestroy", "keep", "storageOnDestroy", "must be one of"),
        ("rolePath", "teams", "rolePath", "begins and ends with /"),
        ("permissionsBoundary", "bound", "permissionsBoundary", "the ARN of an IAM policy"),
        ("capacityWaitHours", "25", "capacityWaitHours", "from 0 to 24; nearest: 24$"),
        ("maxVcpus", "lots", "maxVcpus", '"lots" is not allowed; must be a whole number'),
        ("maxVcpus", "1.5", "maxVcpus", "whole number"),
        ("maxVcpus", "", "maxVcpus", "whole number"),
        ("maxVcpus", "[1]", "maxVcpus", "whole number"),
        ("maxVcpus", "9" * 40, "maxVcpus", "whole number"),
        ("maxVcpuss", "1", "maxVcpuss", "no such key; nearest: maxVcpus"),
        ("qwxyz", "1", "qwxyz", "no such key$"),
        ("spot", "yes", "spot", "true or false; nearest: true"),
        ("spotBidPercentage", "101", "spotBidPercentage", "nearest: 100"),
        ("longestJobHours", "48", "longestJobHours", "from 1 to 6; nearest: 6"),
        ("vpcId", "subnet-12345678", "vpcId", "the id of a VPC"),
        ("vpcId", "vpc-12345678\n", "vpcId", "the id of a VPC"),
        ("subnetIds", "subnet-12345678,x", r"subnetIds[1]", "the id of a subnet"),
        ("subnetIds", "{}", "subnetIds", "not a list"),
        ("rootVolumeGib", "8", "rootVolumeGib", "nearest: 30"),
        ("image", "", "image", "container image"),
        ("image", "two words", "image", "container image"),
        ("logRetentionDays", "100", "logRetentionDays", "nearest: 90"),
        ("tags", "[]", "tags", "not a map"),
        ("tags", "novalue", "tags", "not a map"),
        ("tags", '{"aws:x": "1"}', "tags.aws:x", "does not begin with aws:"),
        ("tags", '{"a": 1.5}', "tags.a", "tag value"),
        ("instanceTypes", "[", "instanceTypes", "not a list"),
        ("instanceTypes", "[" * 9999, "instanceTypes", "not a list"),
        ("instanceTypes", "[3]", "instanceTypes[0]", "neither a text nor a map"),
        ("instanceTypes", "[null]", "instanceTypes[0]", "neither a text nor a map"),
        ("instanceTypes", '[{"spot": true}]', "instanceTypes[0].type", "is missing"),
        ("instanceTypes", '["a", {"type": 3.5}]', "instanceTypes[1].type", "an EC2 instance type"),
        (
            "instanceTypes",
            '[{"type": "c6g.medium", "maxVcpu": 4}]',
            "instanceTypes[0].maxVcpu",
            "no such key; nearest: maxVcpus",
        ),
        (
            "instanceTypes",
            '[{"type": "c6g.medium", "imageId": "ami-1"}]',
            "instanceTypes[0].imageId",
            "the id of an AMI",
        ),
    ],
)
def test_a_mistake_is_told_with_its_path(key: str, text: str, path: str, told: str) -> None:
    mistakes = wrong(**{key: text})
    assert list(mistakes) == [path]
    assert re.search(told, mistakes[path])


def test_all_mistakes_at_once() -> None:
    mistakes = wrong(
        maxVcpus="0",
        spott="true",
        tags='{"aws:x": "1", "y": []}',
        instanceTypes='[{"typ": "x"}, {"type": "c6g.medium", "spot": 3, "maxVcpus": 0}]',
    )
    assert set(mistakes) == {
        "maxVcpus",
        "spott",
        "tags.aws:x",
        "tags.y",
        "instanceTypes[0].typ",
        "instanceTypes[0].type",
        "instanceTypes[1].spot",
        "instanceTypes[1].maxVcpus",
    }


def test_what_is_readable_stays_to_be_checked_further() -> None:
    """An item's good members survive its bad one; an item without a type keeps its place."""
    settings, mistakes = read_settings(
        {"runfleet:instanceTypes": '[{"typ": "x"}, {"type": "a1.medium", "spot": 3}]'}
    )
    assert len(mistakes) == 3
    assert settings.instance_types == (None, TypeSettings(type="a1.medium"))


def test_other_namespaces_are_not_ours() -> None:
    assert read_settings({"aws:region": "us-east-1", "other:maxVcpuss": "1"}) == (DEFAULT, [])


def test_top_level_mistakes_come_with_a_command() -> None:
    _, mistakes = read_settings({"runfleet:maxVcpus": "0", "runfleet:spott": "true"})
    assert [mistake.command for mistake in mistakes] == [
        "pulumi config set runfleet:maxVcpus 1",
        "pulumi config rm runfleet:spott",
    ]


@pytest.mark.parametrize("key", ["maxVcpus", "instanceTypes", "tags", "nosuch"])
def test_a_secret_is_refused_and_in_no_message(key: str) -> None:
    """None of these keys can be kept secret: they become names, tags, and outputs."""
    full = f"runfleet:{key}"
    settings, mistakes = read_settings(
        {full: '{"hunter2": ["hunter2"]}', "runfleet:spot": "false"},
        secret_keys=frozenset({full, "aws:secretKey"}),
    )
    assert settings == msgspec.structs.replace(DEFAULT, spot=False)
    assert [mistake.path for mistake in mistakes] == [full]
    assert "hunter2" not in repr(mistakes)
    assert mistakes[0].command == f"pulumi config set --plaintext {full} …"


def test_page_on_settings_is_current() -> None:
    """Renew it with: python -m infra settings > docs/reference/settings.md"""
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    page = (ROOT / "docs/reference/settings.md").read_text()
    assert page == settings_page(declared)
    members = [field.encode_name for field in msgspec.structs.fields(TypeSettings)]
    assert all(f"| `{key}` |" in page for key in [*declared, *members])


@pytest.mark.parametrize(
    ("key", "text", "nearest"),
    [
        ("rolePath", "teams/rl", "/teams/rl/"),
        ("vpcId", "VPC-1234ABCD", "vpc-1234abcd"),
        ("image", " python:3.12 ", "python:3.12"),
        ("vpcId", "vpc-1", ""),
        ("vpcId", " ", ""),
    ],
)
def test_texts_that_are_nearly_right(key: str, text: str, nearest: str) -> None:
    _, (mistake,) = read_settings({f"runfleet:{key}": text})
    assert mistake.command == (f"pulumi config set runfleet:{key} {nearest}" if nearest else "")
    assert mistake.problem.endswith(f"; nearest: {nearest}") == bool(nearest)
