"""Settings that people of other tools have reported as bugs, and what becomes of them here.

Numbers are of the issue trackers of terraform-provider-aws, terraform, aws-cdk, metaflow and open-supply-hub.
"""

from __future__ import annotations

import pytest

from infra.catalog import parse_catalog
from infra.choices import choose
from infra.data import instance_types_csv
from infra.settings import Settings, TypeSettings, read_settings

from .test_plan import planned

CATALOG = parse_catalog(instance_types_csv())


def told(**config: str) -> str:
    """All that is said of these settings."""
    settings, mistakes = read_settings({f"runfleet:{key}": text for key, text in config.items()})
    _, impossible = choose(settings, CATALOG)
    return "\n".join(f"{m.path}: {m.problem} {m.command}" for m in [*mistakes, *impossible])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        # aws-cdk 31148, 25562, 31762: `optimal` beside ARM, or where one type was meant.
        ({"instanceTypes": "optimal"}, "leaves the choice of types to Batch"),
        # terraform-provider-aws 45783, aws-cdk 35515: its successors.
        ({"instanceTypes": "default_arm64"}, "leaves the choice of types to Batch"),
        ({"instanceTypes": "default-x86_64"}, "leaves the choice of types to Batch"),
        # metaflow 70: families and types look alike in what Batch says that it takes.
        ({"instanceTypes": "c5"}, "c5 is a family of"),
        ({"instanceTypes": "C6G.medium"}, "nearest: c6g.medium"),
        # terraform 16978: two ids in one text.
        ({"subnetIds": '["subnet-12345678,subnet-87654321"]'}, "subnetIds[0]"),
        ({"instanceTypes": '["c5.large,c5.xlarge"]'}, "several types are a list"),
        # terraform-provider-aws 11077: desired_vcpus is Batch's own.
        ({"desiredVcpus": "0"}, "no such key"),
        ({"minVcpus": "0"}, "nearest: maxVcpus"),
        # Numbers as people write them.
        ({"spotBidPercentage": "100%"}, "nearest: 100"),
        ({"spotBidPercentage": "0.5"}, "nearest: 1"),
        ({"maxVcpus": "2e3"}, "nearest: 2000"),
        ({"rootVolumeGib": "100GB"}, "nearest: 100"),
        ({"rootVolumeGib": "8"}, "nearest: 30"),
        # aws-cdk 25562: P3, which Batch's images of today no longer run on.
        ({"instanceTypes": "p3.2xlarge"}, "needs an image of your own"),
        ({"instanceTypes": "g5g.xlarge"}, "needs an image of your own"),
        # open-supply-hub 1058: Batch refuses them when all else stands already.
        ({"instanceTypes": "t3.large,t3a.large"}, "Batch takes no burstable types"),
        # More vCPUs in one machine than all may have: RUNNABLE for ever.
        ({"instanceTypes": "p4d.24xlarge", "maxVcpus": "64"}, "none would start"),
        # A strategy for spot given to on-demand machines.
        ({"allocationStrategy": "SPOT_CAPACITY_OPTIMIZED"}, "BEST_FIT_PROGRESSIVE"),
    ],
)
def test_told_before_anything_is_made(config: dict[str, str], said: str) -> None:
    assert said in told(**config)


def test_arm_and_x86_in_one_fleet() -> None:
    """aws-cdk 31148: never in one compute environment."""
    settings = Settings(
        instance_types=tuple(TypeSettings(type=t) for t in ("c6g.medium", "c5.large"))
    )
    for compute in (c for t in planned(settings).types for c in t.compute):
        assert compute.instance_type == {"c6g": "c6g.medium", "c5-": "c5.large"}[compute.name[:3]]


def test_best_fit_on_spot_has_the_role_that_tags() -> None:
    """aws-cdk 9073 and 6706: IamFleetRole is invalid."""
    settings = Settings(
        instance_types=(TypeSettings(type="c5.large"),), spot_allocation_strategy="BEST_FIT"
    )
    role = planned(settings).roles.spot_fleet
    assert role
    (policy,) = role.managed_policy_arns
    assert policy.endswith(":policy/service-role/AmazonEC2SpotFleetTaggingRole")


def test_whole_price_is_not_written_down() -> None:
    """It is what Batch takes when nothing is said."""
    settings = Settings(instance_types=(TypeSettings(type="c5.large"),))
    assert {c.bid_percentage for t in planned(settings).types for c in t.compute} == {None}
