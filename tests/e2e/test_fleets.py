"""Two teams' fleets in one account, from nothing to nothing, through every kind of change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Account, Stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]

EACH = ("LaunchTemplate {}", "ComputeEnvironment {}", "JobQueue rl-{}")
"""What a queue is made of, beside what its type has once."""
TOLD = {"EndingJobs jobs": "update"}
"""What tells of the jobs in all queues."""


def queues_of(operation: str, instance_type: str) -> dict[str, str]:
    """The plan for an instance type and no other: its component and its two queues."""
    name = instance_type.replace(".", "-")
    plan = {f"TypeQueues {instance_type}": operation, **TOLD}
    for queue in (name, f"{name}-spot"):
        plan |= {resource.format(queue): operation for resource in EACH}
    return plan


def names(*instance_types: str) -> set[str]:
    dashed = [name.replace(".", "-") for name in instance_types]
    return {*dashed, *(f"{name}-spot" for name in dashed)}


def test_two_fleets_from_nothing_to_nothing(
    account: Account, project: Path, environment: dict[str, str]
) -> None:
    """One test, for each step stands on the one before, and each `up` takes seconds."""
    empty = account.everything()
    rl, dl = (Stack(project, name, environment) for name in ("rl", "dl"))
    rl.configure(instanceTypes=["c6g.medium", "c5a.large"], maxVcpus=16)
    dl.configure(instanceTypes=["c6g.medium"], spot=False)

    from_nothing(account, rl)
    side_by_side(account, rl, dl)
    of_the_other = account.environments("dl")
    nothing_to_do(rl)
    more_vcpus_for_one_type(account, rl)
    new_machines_for_all(account, rl)
    another_type(account, rl)
    assert account.environments("dl") == of_the_other

    rl.destroy()
    assert set(account.environments("rl")) == set()
    assert account.environments("dl") == of_the_other
    dl.destroy()
    assert account.everything() == empty


def from_nothing(account: Account, rl: Stack) -> None:
    """The preview knows all of it, and the document tells what then stands."""
    plan = rl.plan()
    assert set(plan.values()) == {"create"}
    assert (
        queues_of("create", "c6g.medium") | {"EndingJobs jobs": "create"}
    ).items() <= plan.items()
    assert account.environments("rl") == {}
    rl.up()
    fleet = rl.fleet()
    assert set(fleet.queues) == set(account.environments("rl")) == names("c6g.medium", "c5a.large")
    queues = account.sandbox.client("batch").describe_job_queues(
        jobQueues=[queue.arn for queue in fleet.queues.values()]
    )["jobQueues"]
    assert [(queue["state"], queue["status"]) for queue in queues] == [("ENABLED", "VALID")] * 4


def side_by_side(account: Account, rl: Stack, dl: Stack) -> None:
    """The same type in two stacks of one account: no name of theirs is the same."""
    before = account.environments("rl")
    dl.up()
    assert set(account.environments("dl")) == {"c6g-medium"}
    assert account.environments("rl") == before
    fleets = [stack.fleet() for stack in (rl, dl)]
    arns = {fleet.queues["c6g-medium"].arn for fleet in fleets}
    groups, roles = ({getattr(f, key) for f in fleets} for key in ("log_group", "job_role_arn"))
    assert [len(distinct) for distinct in (arns, groups, roles)] == [2, 2, 2]


def nothing_to_do(rl: Stack) -> None:
    """A second `up` has nothing to do, not even after AWS was asked how things are."""
    assert rl.plan() == {}
    rl.up("--refresh", "--expect-no-changes")


def more_vcpus_for_one_type(account: Account, rl: Stack) -> None:
    """In place, and nowhere else: running jobs do not notice."""
    before = account.environments("rl")
    rl.configure(
        instanceTypes=["c6g.medium", {"type": "c5a.large", "maxVcpus": 64}],
        maxVcpus=16,
    )
    assert rl.plan() == {
        "ComputeEnvironment c5a-large": "update",
        "ComputeEnvironment c5a-large-spot": "update",
    }
    rl.up()
    after = account.environments("rl")
    assert {name: most(after[name]) for name in after} == {
        "c6g-medium": 16,
        "c6g-medium-spot": 16,
        "c5a-large": 64,
        "c5a-large-spot": 64,
    }
    assert uuids(after) == uuids(before)


def new_machines_for_all(account: Account, rl: Stack) -> None:
    """A larger disk is a new version of the launch template, which its environment takes."""
    before = account.environments("rl")
    rl.configure(instanceTypes=["c6g.medium", "c5a.large"], maxVcpus=16, rootVolumeGib=200)
    queues = names("c6g.medium", "c5a.large")
    assert rl.plan() == {
        f"{kind} {name}": "update"
        for kind in ("LaunchTemplate", "ComputeEnvironment")
        for name in queues
    }
    rl.up()
    after = account.environments("rl")
    assert uuids(after) == uuids(before)
    assert {version(environment) for environment in after.values()} == {"2"}


def another_type(account: Account, rl: Stack) -> None:
    """One type goes, another comes: what is not theirs stays as it is."""
    before = account.environments("rl")
    rl.configure(instanceTypes=["c6g.medium"], maxVcpus=16, rootVolumeGib=200)
    assert rl.plan() == queues_of("delete", "c5a.large")
    rl.configure(instanceTypes=["c6g.medium", "g4dn.xlarge"], maxVcpus=16, rootVolumeGib=200)
    assert rl.plan() == queues_of("delete", "c5a.large") | queues_of("create", "g4dn.xlarge")
    rl.up()
    after = account.environments("rl")
    assert set(after) == names("c6g.medium", "g4dn.xlarge")
    for name in names("c6g.medium"):
        assert after[name] == before[name]
    assert set(rl.fleet().queues) == set(after)


def most(environment: Any) -> int:
    return int(environment["computeResources"]["maxvCpus"])


def version(environment: Any) -> str:
    return str(environment["computeResources"]["launchTemplate"]["version"])


def uuids(environments: dict[str, Any]) -> dict[str, str]:
    """Told apart even from a successor of the same name."""
    return {name: environment["uuid"] for name, environment in environments.items()}
