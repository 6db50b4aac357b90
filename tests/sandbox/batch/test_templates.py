"""Launch templates in compute environments, bundles of types, and changes that take members away."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.batch.instances import expand
from tests.sandbox.batch.ruling import proves, refused
from tests.sandbox.conftest import World, trust, until

pytestmark = pytest.mark.slow


def template(world: World, name: str, data: dict[str, Any]) -> dict[str, str]:
    made = world.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    return {"launchTemplateId": made["LaunchTemplate"]["LaunchTemplateId"]}


def settled(world: World, name: str, **changes: Any) -> Any:
    """The environment, once it is VALID or INVALID."""
    world.batch.create_compute_environment(
        computeEnvironmentName=name, type="MANAGED", computeResources=world.resources(**changes)
    )
    until(lambda: world.environment_detail(name)["status"] in {"VALID", "INVALID"})
    return world.environment_detail(name)


@proves("groups from templates")
@pytest.mark.parametrize("kind", ["plain", "interface"])
def test_security_groups_may_come_from_the_launch_template(world: World, kind: str) -> None:
    """API Reference, ComputeResource, securityGroupIds."""
    data: dict[str, Any] = {"SecurityGroupIds": [world.group]}
    if kind == "interface":
        data = {"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [world.group]}]}
    found = settled(world, kind, securityGroupIds=None, launchTemplate=template(world, kind, data))
    assert found["status"] == "VALID"
    assert "securityGroupIds" not in found["computeResources"]


@proves("groups from templates")
def test_without_any_security_group_it_is_invalid(world: World) -> None:
    bare = template(world, "bare", {"KeyName": "mine"})
    found = settled(world, "bare", securityGroupIds=None, launchTemplate=bare)
    assert found["status"] == "INVALID"
    assert "has no security groups" in found["statusReason"]


@proves("launch templates")
def test_an_overrides_template_must_exist_too(world: World) -> None:
    own = template(world, "own", {"SecurityGroupIds": [world.group]})
    lost = {"launchTemplateId": "lt-0", "targetInstanceTypes": ["c6g.medium"]}
    found = settled(world, "lost", launchTemplate=own | {"overrides": [lost]})
    assert found["status"] == "INVALID"
    assert "lt-0" in found["statusReason"]


@proves("empty takes away")
def test_an_empty_value_takes_a_member_away(world: World) -> None:
    """API Reference, ComputeResourceUpdate."""
    own = template(world, "gone", {"SecurityGroupIds": [world.group]})
    settled(world, "gone", launchTemplate=own, ec2KeyPair="mine")
    world.batch.update_compute_environment(
        computeEnvironment="gone",
        computeResources={"launchTemplate": {"launchTemplateId": ""}, "ec2KeyPair": ""},
    )
    until(lambda: world.environment_detail("gone")["status"] == "VALID")
    left = world.environment_detail("gone")["computeResources"]
    assert "launchTemplate" not in left
    assert "ec2KeyPair" not in left


@proves("service-linked for good")
def test_a_role_of_ones_own_stays(world: World) -> None:
    """API Reference, UpdateComputeEnvironment, serviceRole."""
    world.iam.create_role(RoleName="svc", AssumeRolePolicyDocument=trust("batch.amazonaws.com"))
    world.batch.create_compute_environment(
        computeEnvironmentName="svc",
        type="MANAGED",
        serviceRole="svc",
        computeResources=world.resources(),
    )
    until(lambda: world.environment_detail("svc")["status"] == "VALID")
    linked = world.environment_detail("ce")["serviceRole"]
    update = world.batch.update_compute_environment
    for name, role in (("svc", linked), ("ce", "svc")):
        refused(
            "service-linked for good",
            lambda name=name, role=role: update(computeEnvironment=name, serviceRole=role),
        )
    world.iam.delete_role(RoleName="svc")
    update(computeEnvironment="svc", computeResources={"maxvCpus": 8})
    until(lambda: world.environment_detail("svc")["status"] == "INVALID")
    assert "svc does not exist" in world.environment_detail("svc")["statusReason"]


@proves("bundles of types")
@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("optimal", {"m6i", "c6i", "r6i", "c7i"}),
        ("default_x86_64", {"m6i", "c6i", "r6i", "c7i"}),
        ("default_arm64", {"m6g", "c6g", "r6g", "c7g"}),
    ],
)
def test_bundles_of_types(world: World, name: str, families: set[str]) -> None:
    """API Reference, ComputeResource, instanceTypes."""
    assert {found.name.partition(".")[0] for found in expand(name)} == families
    found = settled(world, name.replace("_", "-"), instanceTypes=[name])
    assert found["status"] == "VALID"
    assert found["computeResources"]["instanceTypes"] == [name]
