"""submit.waiting: why jobs wait, in words."""

from __future__ import annotations

import pytest

from submit.waiting import WAITS_FOR, MachinesFacts, QueueFacts, why_waiting


def machines(name: str = "ce", **facts: object) -> MachinesFacts:
    whole = {"instance_types": ("g4dn.xlarge",), "spot": True, "max_vcpus": 64, "desired_vcpus": 8}
    return MachinesFacts(name=name, **(whole | facts))  # type: ignore[arg-type] # a table's row


def queue(*several: MachinesFacts, **facts: object) -> QueueFacts:
    return QueueFacts(name="q", machines=several or (machines(),), **facts)  # type: ignore[arg-type] # likewise


@pytest.mark.parametrize(
    ("facts", "reasons", "said"),
    [
        (None, [], ["the queue is gone"]),
        (queue(state="DISABLED"), [], ["disabled: aws batch update-job-queue --state ENABLED"]),
        (queue(status="INVALID", reason="no CE"), [], ["the queue q is INVALID: no CE"]),
        (queue(status="DELETING"), [], ["is being deleted"]),
        (queue(machines(state="DISABLED")), [], ["update-compute-environment --state ENABLED"]),
        (
            queue(machines(status="INVALID", reason="CLIENT_ERROR - no role")),
            [],
            ["its machines (ce) are INVALID: CLIENT_ERROR - no role"],
        ),
        (queue(machines(status="CREATING")), [], ["CREATING: this passes"]),
        (
            queue(machines(status="INVALID"), machines("other", state="DISABLED")),
            [],
            ["(ce) are INVALID", "(other) are disabled"],
        ),
        (queue(machines(desired_vcpus=62)), [], ["all 64 vCPUs that ce may have are asked for"]),
        (queue(machines(max_vcpus=2)), [], ["a run needs 4 vCPUs, ce may have 2 in all"]),
        (queue(machines(desired_vcpus=0)), [], ["no instance of ce is up yet"]),
        (queue(machines(desired_vcpus=8)), [], ["has asked for 8 vCPUs and may have 64"]),
        (
            queue(),
            ["CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - The job queue has…"],
            ["AWS has no g4dn.xlarge free as spot at the moment"],
        ),
        (
            queue(machines(spot=False)),
            ["CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - x"] * 3,
            ["AWS has no g4dn.xlarge free at the moment; the runs start when it has"],
        ),
        (queue(), ["MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - x"], ["no instance of g4dn"]),
        (
            queue(),
            ["MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"],
            ["one run needs more vCPUs than the queue may ever have (64)"],
        ),
        (queue(), ["something new {types}"], ["AWS Batch says: something new {types}"]),
    ],
)
def test_why(facts: QueueFacts | None, reasons: list[str], said: list[str]) -> None:
    sentences = why_waiting(facts, reasons, vcpus=4)
    assert len(sentences) == len(said)
    for sentence, part in zip(sentences, said, strict=True):
        assert part in sentence


def test_there_is_always_an_answer() -> None:
    for market in (True, False):
        for reason in [*WAITS_FOR, ""]:
            facts = queue(machines(spot=market))
            assert all(why_waiting(facts, [reason] if reason else [], 1))
