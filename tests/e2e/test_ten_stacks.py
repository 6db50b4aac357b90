"""Ten teams' fleets in one account, up to the last queue that AWS gives, and one too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.catalog import parse_catalog
from infra.data import instance_types_csv

from .conftest import Account, Failed, Stack, Workshop

pytestmark = [pytest.mark.engine, pytest.mark.slow]

LONG = "a-long-name-for-a-team-" + "x" * 60
NAMES = ("rl", "RL", "rl-spot", "rl_spot", "rl.spot", "rl-c6g", LONG, f"{LONG}y", "queue", "rest")
"""Names that other rules than Pulumi's take for one another: of upper and lower case, of signs
that a service does not take, of lengths that are cut."""
EVERYTHING = {
    "bucket": True,
    "fairShare": True,
    "publish": True,
    "repository": True,
    "storageOnDestroy": "delete",
    "submitters": True,
}
LEFT = 50 - 2 * (len(NAMES) - 1)
"""Queues and compute environments for the last one."""


def types(count: int) -> list[str]:
    """That many small types which the sandbox offers."""
    catalog = parse_catalog(instance_types_csv()).values()
    families = ("c5", "c6g", "m5", "m6g", "r5", "r6g", "c5a", "m5a")
    return sorted(t.name for t in catalog if t.family in families and t.vcpus <= 8)[:count]


def test_ten_stacks(account: Account, project: Path, workshop: Workshop) -> None:
    empty = account.everything()
    stacks = [workshop(project, name) for name in NAMES]
    of: dict[str, set[tuple[str, str]]] = {}
    for stack in stacks:
        before = account.everything()
        last = stack is stacks[-1]
        stack.configure(
            instanceTypes=types(LEFT // 2) if last else ["c6g.medium"],
            **({} if last else EVERYTHING),
        )
        stack.up()
        after = account.everything()
        assert before <= after  # nothing of another was taken or renamed
        of[stack.name] = after - before
    distinct_documents(stacks)
    one_too_many(workshop(project, "eleventh"))
    stacks[0].destroy()
    assert account.everything() == empty | set().union(*(of[s.name] for s in stacks[1:]))
    for stack in stacks[1:3]:
        assert stack.plan() == {}
    for stack in stacks[1:]:
        stack.destroy()
    assert account.everything() == empty


def distinct_documents(stacks: list[Stack]) -> None:
    fleets = [stack.fleet() for stack in stacks]
    assert sum(len(fleet.queues) for fleet in fleets) == 50
    arns = {queue.arn for fleet in fleets for queue in fleet.queues.values()}
    assert len(arns) == 50
    for key in ("log_group", "job_role_arn", "execution_role_arn"):
        assert len({getattr(fleet, key) for fleet in fleets}) == len(stacks)
    for key in ("image_repository", "artifacts"):
        assert len({getattr(fleet, key) for fleet in fleets[:-1]}) == len(stacks) - 1


def one_too_many(stack: Stack) -> None:
    """Told before anything is made, with whose queues there are."""
    stack.configure(instanceTypes=["c6g.medium"])
    with pytest.raises(Failed) as caught:
        stack.plan()
    told = str(caught.value)
    assert "the fleet's 2 compute environments and 2 queues beside 50 compute environments" in told
    assert "stack RL, " in told
    assert "Nothing was changed" in told
