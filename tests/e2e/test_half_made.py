"""What was made and then failed is the engine's to complete or to take away."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .conftest import Account, Failed, Stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROGRAM = """
from pulumi_aws import iam

iam.InstanceProfile("machines", role="late")
"""


@pytest.fixture
def stack(tmp_path: Path, environment: dict[str, str]) -> Stack:
    """A project of one resource, whose second half needs what is not there yet."""
    (tmp_path / "Pulumi.yaml").write_text(
        "name: half\nruntime: {name: python, options: {virtualenv: .venv}}\n"
    )
    (tmp_path / "__main__.py").write_text(PROGRAM)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    stack = Stack(tmp_path, "half", environment)
    stack.configure()
    return stack


def test_half_made_resource_is_completed_and_not_made_again(account: Account, stack: Stack) -> None:
    iam = account.sandbox.client("iam")
    empty = account.everything()
    with pytest.raises(Failed, match="NoSuchEntity: Role late not found"):
        stack.up()
    ((_, name),) = account.everything() - empty
    assert kept(stack) == [name]

    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "ec2.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    iam.create_role(RoleName="late", AssumeRolePolicyDocument=document)
    stack.up()
    profile = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    assert [role["RoleName"] for role in profile["Roles"]] == ["late"]
    assert stack.plan() == {}

    stack.destroy()
    iam.delete_role(RoleName="late")
    assert account.everything() == empty


def kept(stack: Stack) -> list[str]:
    """Ids of the instance profiles that the engine knows."""
    state = json.loads(stack.run("stack", "export", "--stack", stack.name))
    return [
        resource["id"]
        for resource in state["deployment"]["resources"]
        if resource["type"] == "aws:iam/instanceProfile:InstanceProfile"
    ]
