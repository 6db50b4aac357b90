"""submit.findings: what the doctor makes of what AWS describes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from submit.findings import (
    Quota,
    Verdict,
    judge_account,
    judge_clock,
    judge_queue,
    judge_quota,
    judge_secret,
    quota_of,
)
from submit.fleet import Queue

from .fake import FLEET

QUEUE = Queue(
    arn="arn:aws:batch:eu-west-1:123456789012:job-queue/q",
    instance_type="g4dn.4xlarge",
    arch="x86_64",
    vcpus=16,
    memory_mib=60_000,
    gpus=1,
    max_vcpus=256,
)
OK, PROBLEM = Verdict.OK, Verdict.PROBLEM


def described(**changes: Any) -> dict[str, Any]:
    order = [{"order": 2, "computeEnvironment": "ce2"}, {"order": 1, "computeEnvironment": "ce1"}]
    return {"state": "ENABLED", "status": "VALID", "computeEnvironmentOrder": order} | changes


def environment(name: str, *, most: int = 256, **changes: Any) -> dict[str, Any]:
    return {
        "computeEnvironmentName": name,
        "state": "ENABLED",
        "status": "VALID",
        "computeResources": {"maxvCpus": most, "desiredvCpus": 32},
    } | changes


INVALID = {"status": "INVALID", "statusReason": "CLIENT_ERROR - Not authorized"}


@pytest.mark.parametrize(
    ("queue", "environments", "verdict", "says"),
    [
        (described(), [environment("ce1")], OK, "32 of at most 256 vCPUs"),
        (None, [], PROBLEM, f"{QUEUE.arn} is not there"),
        (described(state="DISABLED"), [], PROBLEM, "DISABLED and VALID"),
        (described(**INVALID), [], PROBLEM, "INVALID: CLIENT_ERROR - Not authorized"),
        (described(), [], PROBLEM, "its compute environment is not there"),
        (
            described(),
            [environment("ce1", **INVALID), environment("ce2", state="DISABLED")],
            PROBLEM,
            "the compute environment ce1 is ENABLED and INVALID: CLIENT_ERROR",
        ),
        # One of two is enough to run on, and still worth a word.
        (
            described(),
            [environment("ce1"), environment("ce2", **INVALID)],
            OK,
            "the compute environment ce2 is ENABLED and INVALID",
        ),
        (
            described(),
            [environment("ce1", most=8), environment("ce2", most=0)],
            PROBLEM,
            "ce1 may have 8 vCPUs, one g4dn.4xlarge has 16: no instance can ever start",
        ),
    ],
)
def test_a_queue(
    queue: dict[str, Any] | None, environments: list[dict[str, Any]], verdict: Verdict, says: str
) -> None:
    by_name = {item["computeEnvironmentName"]: item for item in environments}
    finding = judge_queue("q", QUEUE, queue, by_name)
    assert finding.verdict is verdict
    assert says in finding.says
    assert bool(finding.next) == (verdict is PROBLEM)


@pytest.mark.parametrize(
    ("skew_s", "verdict", "says"),
    [
        (0.4, OK, "as AWS's"),
        (-299, OK, "299 s from AWS's"),
        (301, PROBLEM, "5 minutes ahead of AWS's"),
        (-3600, PROBLEM, "60 minutes behind AWS's"),
    ],
)
def test_the_clock(skew_s: float, verdict: Verdict, says: str) -> None:
    finding = judge_clock(1_800_000_000.0 + skew_s, 1_800_000_000.0)
    assert (finding.verdict, says in finding.says) == (verdict, True)


def test_another_account() -> None:
    assert judge_account("arn:ada", FLEET.account, FLEET).verdict is OK
    finding = judge_account("arn:ada", "999999999999", FLEET)
    assert finding.verdict is PROBLEM
    assert "999999999999; the fleet of rl is in 123456789012" in finding.says
    assert "AWS_PROFILE" in finding.next


@pytest.mark.parametrize(
    ("secret", "verdict", "says"),
    [
        ({"VersionIdsToStages": {"1": ["AWSCURRENT"]}}, OK, "with a value"),
        (None, PROBLEM, "is not there"),
        ({}, PROBLEM, "has no value"),
        ({"DeletedDate": "2026-01-01", "VersionIdsToStages": {"1": []}}, PROBLEM, "being deleted"),
    ],
)
def test_a_secret(secret: dict[str, Any] | None, verdict: Verdict, says: str) -> None:
    finding = judge_secret("WANDB_API_KEY", "arn:secret", secret)
    assert (finding.verdict, says in finding.says) == (verdict, True)


# Names as the EC2 User Guide lists them ("On-Demand Instance quotas", "Spot Instance quotas").
QUOTAS = [
    Quota(code=name, name=name, value=64)
    for name in (
        "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
        "Running On-Demand G and VT instances",
        "Running On-Demand P instances",
        "Running On-Demand Inf instances",
        "Running On-Demand HPC instances",
        "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
        "All G and VT Spot Instance Requests",
        "All P4, P3 and P2 Spot Instance Requests",
        "All P5 Spot Instance Requests",
        "All Inf Spot Instance Requests",
        "EC2-VPC Elastic IPs",
    )
]


@pytest.mark.parametrize(
    ("instance_type", "spot", "name"),
    [
        ("c6g.medium", False, "Running On-Demand Standard"),
        ("im4gn.large", True, "All Standard"),
        ("g4dn.xlarge", False, "Running On-Demand G"),
        ("g5.xlarge", True, "All G"),
        ("vt1.3xlarge", True, "All G and VT"),
        ("p4d.24xlarge", True, "All P4, P3 and P2"),
        ("p5en.48xlarge", True, "All P5"),
        ("p5.48xlarge", False, "Running On-Demand P"),
        ("inf2.xlarge", True, "All Inf"),
        ("hpc7g.4xlarge", False, "Running On-Demand HPC"),
        ("x2gd.medium", False, None),
    ],
)
def test_which_quota(instance_type: str, spot: bool, name: str | None) -> None:  # noqa: FBT001 # a table's column
    queue = msgspec.structs.replace(QUEUE, instance_type=instance_type, spot=spot)
    found = quota_of(queue, QUOTAS)
    assert (found.name.startswith(name) if name and found else found is None) is True


@pytest.mark.parametrize(
    ("value", "verdict", "says"),
    [
        (0, PROBLEM, "0 vCPUs: no instance can start for q"),
        (15, PROBLEM, "15 vCPUs: no instance can start for q"),
        (16, OK, "fewer than the 256 that one queue may have"),
        (1000, OK, "1000 vCPUs"),
    ],
)
def test_a_quota(value: float, verdict: Verdict, says: str) -> None:
    finding = judge_quota(Quota(code="L-1", name="G", value=value), {"q": QUEUE})
    assert (finding.verdict, says in finding.says) == (verdict, True)
    assert ("--quota-code L-1 --desired-value 256" in finding.next) == (verdict is PROBLEM)
