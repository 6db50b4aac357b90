"""Fair shares in the sandbox's Batch: what is asked of a job, and whose turn it is."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.batch.account import Account
from sandbox.batch.errors import ClientError
from sandbox.batch.shares import check_job, create, next_turn
from sandbox.batch.store import Job, Resource, Store
from tests.sandbox.batch.ruling import proves

FAIR = Resource("fair", "arn:fair", {"schedulingPolicyArn": "arn:policy"})
PLAIN = Resource("plain", "arn:plain", {})
WEIGHTS = {
    "shareDistribution": [
        {"shareIdentifier": "vision*", "weightFactor": 0.5},
        {"shareIdentifier": "slow", "weightFactor": 4.0},
    ]
}


def job(share: str, *, priority: int = 0, created_ms: int = 0) -> Job:
    spec = {"jobName": share, "shareIdentifier": share, "schedulingPriority": priority}
    return Job(share, f"arn:{share}", spec, created_ms)


def turn(waiting: list[Job], use: dict[str, int], policy: dict[str, Any] = WEIGHTS) -> str | None:
    found = next_turn(policy, waiting, use)
    return found.name if found else None


@pytest.mark.parametrize(
    ("queue", "request_", "told"),
    [
        (FAIR, {}, "shareIdentifier must be specified"),
        (FAIR, {"shareIdentifier": "a-b"}, "letters and digits"),
        (PLAIN, {"shareIdentifier": "a"}, "with fair share scheduling policy"),
        (PLAIN, {"schedulingPriorityOverride": 1}, "with fair share scheduling policy"),
    ],
)
def test_what_is_refused(queue: Resource, request_: dict[str, Any], told: str) -> None:
    with pytest.raises(ClientError, match=told):
        check_job(queue, request_, ())


def test_what_is_taken() -> None:
    check_job(FAIR, {"shareIdentifier": "rl1", "schedulingPriorityOverride": 3}, ())
    check_job(FAIR, {"shareIdentifier": "rl*"}, ())
    check_job(PLAIN, {}, ())


@proves("active share identifiers of a queue")
def test_five_hundred_shares_are_active_at_a_time() -> None:
    """API Reference, CreateJobQueue: another one is refused, another job of theirs is not."""
    waiting = [job(f"s{n}") for n in range(500)]
    check_job(FAIR, {"shareIdentifier": "s499"}, waiting)
    check_job(FAIR, {"shareIdentifier": "s500"}, waiting[1:])
    with pytest.raises(ClientError, match="501"):
        check_job(FAIR, {"shareIdentifier": "s500"}, waiting)


@proves("no overlap of shares")
@pytest.mark.parametrize(
    "names", [("UserA*", "UserA1"), ("UserA1", "UserA*"), ("a", "a"), ("a*", "ab*"), ("*", "a")]
)
def test_entries_of_a_policy_do_not_overlap(names: tuple[str, ...]) -> None:
    """API Reference, ShareAttributes."""
    policy = {"shareDistribution": [{"shareIdentifier": name} for name in names]}
    with pytest.raises(ClientError, match="overlap"):
        create(Store(Account("us-east-1")), {"name": "p", "fairsharePolicy": policy})


@pytest.mark.parametrize("name", ["", "a-b", "a" * 256, "a**"])
def test_names_of_shares(name: str) -> None:
    policy = {"shareDistribution": [{"shareIdentifier": name}]}
    with pytest.raises(ClientError, match="not legal"):
        create(Store(Account("us-east-1")), {"name": "p", "fairsharePolicy": policy})


@proves("turns of shares")
def test_the_share_that_has_least_is_next() -> None:
    assert turn([job("a"), job("b")], {"a": 2, "b": 1}) == "b"
    assert turn([job("a"), job("b")], {"a": 0, "b": 1}) == "a"
    assert turn([], {}) is None


def test_the_smaller_weight_gets_more() -> None:
    assert turn([job("a"), job("vision1")], {"a": 1, "vision1": 2}) == "vision1"
    assert turn([job("a"), job("vision1")], {"a": 1, "vision1": 4}) == "a"


def test_the_entry_that_fits_gives_the_weight() -> None:
    assert turn([job("a"), job("slow")], {"a": 2, "slow": 0}) == "a"
    assert turn([job("a"), job("slower")], {"a": 2, "slower": 0}) == "slower"


@proves("turns of shares")
def test_in_a_share_priority_and_then_age() -> None:
    old, new, urgent = (
        job("a", created_ms=1),
        job("a", created_ms=2),
        job("a", priority=5, created_ms=3),
    )
    assert next_turn({}, [new, old], {}) is old
    assert next_turn({}, [old, urgent], {}) is urgent
