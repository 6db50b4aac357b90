"""ListJobs by each filter, and a queue's snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.batch.ruling import cases, proves, refused
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow


def listed(world: World, name: str, value: str) -> list[str]:
    filters = [{"name": name, "values": [value]}]
    found = world.batch.list_jobs(jobQueue="q", filters=filters)["jobSummaryList"]
    return [job["jobId"] for job in found]


def test_by_definition(world: World) -> None:
    """A name means any revision; an ARN one; the case counts."""
    first, second = world.definition("Model"), world.definition("Model")
    ids = [world.submit("true", jobDefinition=arn) for arn in (first, second)]
    for job_id in ids:
        world.over(job_id)
    assert listed(world, "JOB_DEFINITION", "Model") == ids[::-1]
    assert listed(world, "JOB_DEFINITION", "Mod*") == ids[::-1]
    assert listed(world, "JOB_DEFINITION", "model") == []
    assert listed(world, "JOB_DEFINITION", first) == ids[:1]


def test_a_jobs_arn_is_as_good_as_its_id(world: World) -> None:
    """Also of a child; clients of AWS use both."""
    job = world.over(world.submit("true", arrayProperties={"size": 2}))
    for suffix in ("", ":1"):
        found = world.batch.describe_jobs(jobs=[job["jobArn"] + suffix])["jobs"]
        assert [one["jobId"] for one in found] == [job["jobId"] + suffix]


@proves("pages of ListJobs")
def test_a_page_is_no_longer_than_aws_makes_it(world: World) -> None:
    """Who asks for more gets so much (API Reference, ListJobs, maxResults)."""
    parent = world.submit("true", arrayProperties={"size": 2})
    ids = [world.submit("true", jobName="paged") for _ in range(101)]
    world.over(parent)
    name = {"name": "JOB_NAME", "values": ["PAGED"]}
    first = world.batch.list_jobs(jobQueue="q", filters=[name], maxResults=1000)
    assert len(first["jobSummaryList"]) == 100
    rest = world.batch.list_jobs(jobQueue="q", filters=[name], nextToken=first["nextToken"])
    assert [job["jobId"] for job in first["jobSummaryList"] + rest["jobSummaryList"]] == ids[::-1]
    all_over = world.batch.list_jobs(arrayJobId=parent, jobStatus="SUCCEEDED", maxResults=5000)
    assert len(all_over["jobSummaryList"]) == 2


@proves("pages of ListJobs")
def test_a_share_and_a_status_go_together(world: World) -> None:
    """The one filter that does not ignore the status (API Reference, ListJobs)."""
    arn = world.batch.create_scheduling_policy(name="listed")["arn"]
    world.queue("listed", "ce", schedulingPolicyArn=arn)
    job_id = world.submit("true", jobQueue="listed", shareIdentifier="rl")
    world.over(job_id)
    share = [{"name": "SHARE_IDENTIFIER", "values": ["rl"]}]

    def found(**status: str) -> list[str]:
        jobs = world.batch.list_jobs(jobQueue="listed", filters=share, **status)["jobSummaryList"]
        return [job["jobId"] for job in jobs]

    assert found() == found(jobStatus="SUCCEEDED") == [job_id]
    assert found(jobStatus="RUNNABLE") == []


def test_by_time(world: World) -> None:
    job = world.over(world.submit("true"))
    at = job["createdAt"]
    assert job["jobId"] in listed(world, "AFTER_CREATED_AT", str(at - 1))
    assert job["jobId"] not in listed(world, "AFTER_CREATED_AT", str(at))
    assert job["jobId"] in listed(world, "BEFORE_CREATED_AT", str(at + 1))
    assert job["jobId"] not in listed(world, "BEFORE_CREATED_AT", str(at))


@cases(
    ("listing", ("AFTER_CREATED_AT", "yesterday"), "milliseconds"),
    ("listing", ("COLOUR", "red"), "the filters are"),
)
def test_filters_that_are_none(world: World, rule: str | None, change: Any, says: str) -> None:
    assert says in refused(rule, lambda: listed(world, *change))


def test_the_snapshot_shows_what_waits_first(world: World) -> None:
    busy = world.submit("sleep", "60", arrayProperties={"size": 4})
    until(lambda: world.job(busy)["arrayProperties"]["statusSummary"]["RUNNING"] == 4)
    array = world.submit("true", arrayProperties={"size": 3})
    single = world.submit("true")

    def front() -> list[str]:
        jobs: Any = world.batch.get_job_queue_snapshot(jobQueue="q")["frontOfQueue"]["jobs"]
        return [job["jobArn"].rpartition("/")[2] for job in jobs]

    until(lambda: front() == [f"{array}:0", f"{array}:1", f"{array}:2", single])
    snapshot = world.batch.get_job_queue_snapshot(jobQueue="q")["frontOfQueue"]
    assert all(
        job["earliestTimeAtPosition"] <= snapshot["lastUpdatedAt"] for job in snapshot["jobs"]
    )
    world.batch.terminate_jobs(jobs=[busy], reason="r")
    world.over(single)
    until(lambda: front() == [])


def test_a_snapshot_shows_a_hundred_at_most(world: World) -> None:
    wants = [{"type": "VCPU", "value": "9"}]
    job_id = world.submit(
        "true", arrayProperties={"size": 200}, containerOverrides={"resourceRequirements": wants}
    )
    until(
        lambda: len(world.batch.get_job_queue_snapshot(jobQueue="q")["frontOfQueue"]["jobs"]) == 100
    )
    world.batch.terminate_job(jobId=job_id, reason="r")
    world.over(job_id)
