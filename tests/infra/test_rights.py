"""infra.rights: what each role may do, and what no role of a team may."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.rights import may_read_secrets, plan_roles
from infra.settings import Settings

from .test_plan import ACCOUNT, TAGS


def roles(settings: Settings, *, spot_fleet: bool = False) -> dict[str, Any]:
    plan = plan_roles(settings, ACCOUNT, "rl", TAGS, spot_fleet=spot_fleet)
    found = (plan.instance, plan.job, plan.execution, plan.batch_service, plan.spot_fleet)
    return {role.resource_name: role for role in found if role}


def test_no_role_more_than_needed() -> None:
    assert set(roles(Settings())) == {"instance-role", "job-role", "execution-role"}


@pytest.mark.parametrize(
    ("settings", "spot_fleet", "name", "policy", "service", "condition"),
    [
        (
            Settings(batch_service_role=True),
            False,
            "batch-service-role",
            "AWSBatchServiceRole",
            "batch.amazonaws.com",
            {"StringEquals": {"aws:SourceAccount": "123456789012"}},
        ),
        (
            Settings(),
            True,
            "spot-fleet-role",
            "AmazonEC2SpotFleetTaggingRole",
            "spotfleet.amazonaws.com",
            None,  # Spot Fleet's own trust policy in the EC2 and Batch guides has none
        ),
    ],
)
def test_roles_on_wish(
    settings: Settings,
    spot_fleet: bool,  # noqa: FBT001 # a table
    name: str,
    policy: str,
    service: str,  # a table
    condition: dict[str, object] | None,
) -> None:
    role = roles(settings, spot_fleet=spot_fleet)[name]
    assert role.managed_policy_arns == (f"arn:aws:iam::aws:policy/service-role/{policy}",)
    (statement,) = json.loads(role.assume_role_policy)["Statement"]
    assert statement["Principal"] == {"Service": service}
    assert statement.get("Condition") == condition


def test_path_and_boundary_are_on_every_role() -> None:
    bound = "arn:aws:iam::123456789012:policy/bound"
    settings = Settings(role_path="/teams/rl/", permissions_boundary=bound, batch_service_role=True)
    found = roles(settings, spot_fleet=True).values()
    assert len(found) == 5
    assert {(role.path, role.permissions_boundary) for role in found} == {("/teams/rl/", bound)}


def test_secrets_are_named_one_by_one() -> None:
    (statement,) = json.loads(may_read_secrets(["b", "a"]))["Statement"]
    assert statement["Action"] == "secretsmanager:GetSecretValue"
    assert statement["Resource"] == ["a", "b"]
