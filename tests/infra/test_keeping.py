"""infra.keeping and the rights that go with it: storage, publishing, submitters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.choices import choose
from infra.mistakes import Refused
from infra.names import lower_named
from infra.plan import fleet_document, plan_fleet
from infra.plans import FleetPlan, Scope, StoragePlan
from infra.rights import may_submit, may_use_bucket, only_over_tls
from infra.settings import Settings, TypeSettings
from submit.fleet import FleetError, fleet_from_parameters, fleet_to_parameters

from .test_plan import ACCOUNT, CATALOG, planned

ALL = {
    "repository": True,
    "bucket": True,
    "publish": True,
    "submitters": True,
    "instance_types": (TypeSettings(type="c6g.medium"),),
}
SCOPE = Scope(
    partition="aws",
    region="us-east-1",
    account="123456789012",
    stack="rl",
    log_group="/runfleet/rl",
    parameter_path="/runfleet/rl",
)


def with_all(stack: str = "rl", **settings: Any) -> FleetPlan:
    return planned(Settings(**ALL | settings), stack=stack)


def statements(text: str) -> dict[str, dict[str, Any]]:
    return {s["Sid"]: s for s in json.loads(text)["Statement"]}


def test_nothing_of_it_by_default() -> None:
    plan = planned(Settings())
    assert (plan.repository, plan.bucket, plan.publishing, plan.submitters) == (None,) * 4


@pytest.mark.parametrize(
    ("choice", "storage"),
    [
        ("protect", StoragePlan(protect=True, retain=False, empty_first=False)),
        ("retain", StoragePlan(protect=False, retain=True, empty_first=False)),
        ("delete", StoragePlan(protect=False, retain=False, empty_first=True)),
    ],
)
def test_what_destroy_does(choice: str, storage: StoragePlan) -> None:
    plan = with_all(storage_on_destroy=choice)
    assert plan.repository
    assert plan.bucket
    assert plan.repository.storage == plan.bucket.storage == storage


def test_repository() -> None:
    plan = with_all(repository_keep_images=3).repository
    assert plan
    assert plan.name == "runfleet/rl"
    (rule,) = json.loads(plan.lifecycle_policy)["rules"]
    assert rule["selection"]["countNumber"] == 3


def test_bucket() -> None:
    plan = with_all(bucket_expiry_days=30).bucket
    assert plan
    assert (plan.name_prefix, plan.prefix, plan.expiry_days) == ("runfleet-rl-", "rl/", 30)
    assert with_all().bucket.expiry_days is None  # type: ignore[union-attr] # it is there


def test_lower_case_names_never_meet() -> None:
    stacks = ("rl", "RL", "r.l", "r-l", "r_l", "x" * 100, "x" * 101)
    named = [lower_named(stack, "-", limit=37, before="runfleet-") for stack in stacks]
    assert named[0] == "runfleet-rl-"
    assert len(set(named)) == len(stacks)
    assert all(len(name) <= 37 for name in named)


def test_jobs_have_their_own_prefix_and_no_more() -> None:
    found = statements(may_use_bucket("arn:aws:s3:::b", "rl/"))
    assert found["UseOwnPrefix"]["Resource"] == "arn:aws:s3:::b/rl/*"
    assert found["ListOwnPrefix"]["Condition"] == {"StringLike": {"s3:prefix": "rl/*"}}
    assert not {"s3:*", "s3:DeleteBucket"} & set(found["UseOwnPrefix"]["Action"])


def test_no_plain_http() -> None:
    (statement,) = statements(only_over_tls("arn:aws:s3:::b")).values()
    assert statement["Effect"] == "Deny"
    assert statement["Resource"] == ["arn:aws:s3:::b", "arn:aws:s3:::b/*"]


def test_submitters_reach_their_own_stack_alone() -> None:
    """All that changes something names the team: by tag, role, log group, path or ARN."""
    text = may_submit(
        SCOPE,
        roles=["arn:aws:iam::123456789012:role/job", "arn:aws:iam::123456789012:role/execution"],
        repository_arn="arn:aws:ecr:us-east-1:123456789012:repository/runfleet/rl",
        bucket=("arn:aws:s3:::b", "rl/"),
    )
    assert len("".join(text.split())) <= 6144  # IAM, managed policy
    found = statements(text)
    free = {sid for sid, s in found.items() if s["Resource"] == "*"}
    assert free == {"ExamineLogsAndQuotas", "Look", "LogInToTheRegistry"}
    assert found["SubmitToOwnQueues"]["Condition"] == {
        "StringEquals": {"aws:ResourceTag/stack": "rl"}
    }
    assert found["GiveJobsTheirRoles"]["Condition"] == {
        "StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
    }
    assert found["ReadOwnLogs"]["Resource"].endswith(":log-group:/runfleet/rl:*")
    assert found["ReadTheFleetDocument"]["Resource"] == [
        "arn:aws:ssm:us-east-1:123456789012:parameter/runfleet/rl",
        "arn:aws:ssm:us-east-1:123456789012:parameter/runfleet/rl/*",
    ]


def test_submitters_without_storage() -> None:
    found = statements(may_submit(SCOPE, roles=["r"], repository_arn=None, bucket=None))
    assert not {"PushAndPullImages", "FetchArtifacts"} & set(found)


def test_tags_too_long_to_be_published_are_refused() -> None:
    tags = {f"tag{n}": "x" * 200 for n in range(30)}
    settings = Settings(**ALL | {"tags": tags})
    choices, mistakes = choose(settings, CATALOG)
    assert mistakes == []
    with pytest.raises(Refused, match=r"a parameter takes 4096"):
        plan_fleet(settings, choices, ACCOUNT, stack="rl", project="runfleet")


def test_parts_make_the_document() -> None:
    """And each but the tags has room in a parameter."""
    plan = planned(Settings(flex=True))
    names = [queue.name for t in plan.types for queue in t.queues]
    fleet = fleet_document(
        plan,
        roles=("job", "execution"),
        arns={name: f"arn:{name}" for name in names},
        secret_arns={"WANDB_API_KEY": "arn:secret"},
    )
    parts = fleet_to_parameters(fleet)
    assert fleet_from_parameters(parts) == fleet
    assert max(len(text) for text in parts.values()) <= 4096


@pytest.mark.parametrize(
    "parts", [{}, {"fleet": "{}"}, {"queues/a": "{}"}, {"fleet": "[]", "tags": "{}"}]
)
def test_parts_that_make_none(parts: dict[str, str]) -> None:
    with pytest.raises(FleetError):
        fleet_from_parameters(parts)
