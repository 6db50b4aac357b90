"""A fleet that is taken down while it is used, or after somebody was at it by hand."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from .conftest import Account, Failed, Stack, Workshop

pytestmark = [pytest.mark.engine, pytest.mark.slow]

DEFINITION = {
    "type": "container",
    "containerProperties": {
        "image": "python:3.12",
        "command": ["sleep", "300"],
        "resourceRequirements": [
            {"type": "VCPU", "value": "1"},
            {"type": "MEMORY", "value": "512"},
        ],
    },
}


@pytest.fixture
def stack(project: Path, workshop: Workshop) -> Stack:
    stack = workshop(project, "ending")
    stack.configure(instanceTypes=["c6g.medium", "c5a.large"], spot=False, maxVcpus=4)
    stack.up()
    return stack


def submit(account: Account, stack: Stack, queue: str, count: int) -> list[str]:
    batch = account.sandbox.client("batch")
    arn = batch.register_job_definition(jobDefinitionName="sleep", **DEFINITION)["jobDefinitionArn"]
    where = stack.fleet().queues[queue].arn
    return [
        batch.submit_job(jobName="sleep", jobQueue=where, jobDefinition=arn)["jobId"]
        for _ in range(count)
    ]


def states(account: Account, jobs: list[str]) -> list[str]:
    found = account.sandbox.client("batch").describe_jobs(jobs=jobs)["jobs"]
    return sorted(job["status"] for job in found)


def until(account: Account, jobs: list[str], wanted: list[str]) -> None:
    deadline = time.monotonic() + 60
    while states(account, jobs) != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    assert states(account, jobs) == wanted


def test_with_jobs_in_it(account: Account, stack: Stack, environment: dict[str, str]) -> None:
    """A preview refuses what would end them unasked, and says whose jobs end; those of other types
    go on. Destroy says so and ends the rest, without the program.
    """
    staying = submit(account, stack, "c6g-medium", 1)
    until(account, staying, ["RUNNING"])
    for change in ({"batchServiceRole": True}, {"allocationStrategy": "BEST_FIT"}):
        stack.configure(instanceTypes=["c6g.medium", "c5a.large"], spot=False, maxVcpus=4, **change)
        with pytest.raises(Failed, match=r"would end: ending-c6g-medium-\w+: 1 RUNNING"):
            stack.plan()
    going = submit(account, stack, "c5a-large", 5)
    stack.configure(instanceTypes=["c6g.medium"], spot=False, maxVcpus=4)
    told = stack.run("preview", "--stack", stack.name)
    assert re.search(r"jobs end with their queues: ending-c5a-large-\w+: ", told)
    stack.up()
    assert states(account, going) == ["FAILED"] * 5
    assert states(account, staying) == ["RUNNING"]
    stack.client, stack.environment = "", environment  # all that a user's command starts
    told = stack.destroy()
    assert "jobs end with their queues: c6g-medium: 1 RUNNING" in told
    assert states(account, staying) == ["FAILED"]
    assert account.environments(stack.name) == {}


def test_with_jobs_where_batch_changes_nothing_in_place(
    account: Account, project: Path, workshop: Workshop
) -> None:
    """With a service role of the stack's own, as CleanRL's module has: a larger disk would take the
    machines from under what runs. The size alone changes in place.
    """
    stack = workshop(project, "fixed")
    settings = {"instanceTypes": ["c6g.medium"], "spot": False, "batchServiceRole": True}
    stack.configure(**settings)
    stack.up()
    running = submit(account, stack, "c6g-medium", 1)
    until(account, running, ["RUNNING"])
    assert stack.plan() == {}
    stack.configure(**settings, maxVcpus=8)
    assert stack.plan() == {"ComputeEnvironment c6g-medium": "update"}
    stack.configure(**settings, rootVolumeGib=200, instanceStore=True, tags={"cost-center": "4711"})
    with pytest.raises(Failed, match=r"would end: fixed-c6g-medium-\w+: 1 RUNNING") as caught:
        stack.plan()
    assert "runfleet:rootVolumeGib: Batch can not change" in str(caught.value)
    assert "runfleet:tags: Batch can not change" in str(caught.value)
    assert "runfleet:instanceStore: Batch" not in str(caught.value)  # c6g has no local disk
    stack.configure(**settings)
    stack.destroy()


def test_after_somebody_was_at_it(account: Account, project: Path, workshop: Workshop) -> None:
    """A queue and a role that are gone already are no reason to stop, neither for destroy nor,
    with --refresh, for up.
    """
    empty = account.everything()
    stack = workshop(project, "handy")
    stack.configure(instanceTypes=["c6g.medium"], spot=False, maxVcpus=4)
    stack.up()
    batch, logs = account.sandbox.client("batch"), account.sandbox.client("logs")
    queue = stack.fleet().queues["c6g-medium"].arn

    def remove() -> None:
        batch.update_job_queue(jobQueue=queue, state="DISABLED")
        until_gone(account, queue)
        logs.delete_log_group(logGroupName="/runfleet/handy")

    remove()
    stack.up("--refresh")
    assert stack.plan() == {}
    queue = stack.fleet().queues["c6g-medium"].arn
    remove()
    stack.destroy()
    assert account.everything() == empty


def until_gone(account: Account, queue: str) -> None:
    batch = account.sandbox.client("batch")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = batch.describe_job_queues(jobQueues=[queue])["jobQueues"]
        if not found:
            return
        if found[0]["state"] == "DISABLED" and found[0]["status"] == "VALID":
            batch.delete_job_queue(jobQueue=queue)
        time.sleep(0.1)
    pytest.fail(f"{queue} does not go")
