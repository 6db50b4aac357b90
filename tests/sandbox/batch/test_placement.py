"""Where jobs run, and why nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.batch.instances import instance_type
from tests.sandbox.batch.ruling import proves
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow


def needs(vcpus: int, memory_mib: int = 100, gpus: int = 0) -> dict[str, Any]:
    requirements = [
        {"type": "VCPU", "value": str(vcpus)},
        {"type": "MEMORY", "value": str(memory_mib)},
    ]
    if gpus:
        requirements.append({"type": "GPU", "value": str(gpus)})
    return {"resourceRequirements": requirements}


@pytest.mark.parametrize(
    ("name", "vcpus", "most", "gpus"),
    [
        ("c6g.medium", 1, 2048, 0),
        ("c5a.large", 2, 4096, 0),
        ("m6gd.medium", 1, 4096, 0),
        ("g4dn.xlarge", 4, 16384, 1),
        ("p4d.24xlarge", 96, 1_179_648, 8),
    ],
)
def test_an_instance_registers_less_than_its_nominal_memory(
    name: str, vcpus: int, most: int, gpus: int
) -> None:
    found = instance_type(name)
    assert found is not None
    assert (found.vcpus, found.gpus) == (vcpus, gpus)
    assert 0.9 * most < found.memory_mib <= most - 32


def test_an_environment_takes_no_more_than_its_vcpus(world: World) -> None:
    world.environment("two", maxvCpus=2, instanceTypes=["c6g.large"])
    world.queue("two", "two")
    job_id = world.submit("sleep", "0.1", jobQueue="two", arrayProperties={"size": 6})
    most = 0
    while (job := world.job(job_id))["status"] != "SUCCEEDED":
        summary = job["arrayProperties"]["statusSummary"]
        most = max(most, summary["STARTING"] + summary["RUNNING"])
    assert most <= 2


@pytest.mark.parametrize(
    ("wants", "reason"),
    [
        (needs(1, 2048), "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"),
        (needs(2), "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"),
        (needs(1, gpus=1), "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"),
    ],
)
def test_why_a_job_never_starts(world: World, wants: dict[str, Any], reason: str) -> None:
    job_id = world.submit("true", containerOverrides=wants)
    until(lambda: world.job(job_id).get("statusReason", "").startswith(reason))
    assert world.job(job_id)["status"] == "RUNNABLE"
    world.batch.terminate_job(jobId=job_id, reason="r")


def test_a_job_larger_than_the_whole_environment(world: World) -> None:
    world.environment("small", maxvCpus=2, instanceTypes=["c6g.xlarge"])
    world.queue("small", "small")
    job_id = world.submit("true", jobQueue="small", containerOverrides=needs(4))
    reason = "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"
    until(lambda: world.job(job_id).get("statusReason", "").startswith(reason))


def test_a_disabled_environment_starts_nothing_until_it_is_enabled(world: World) -> None:
    world.environment("off")
    world.queue("off", "off")
    world.batch.update_compute_environment(computeEnvironment="off", state="DISABLED")
    until(lambda: world.environment_detail("off")["status"] == "VALID")
    job_id = world.submit("true", jobQueue="off")
    until(lambda: world.job(job_id).get("statusReason", "").startswith("UNDETERMINED"))
    world.batch.update_compute_environment(computeEnvironment="off", state="ENABLED")
    assert world.over(job_id)["status"] == "SUCCEEDED"


@proves("order of environments")
def test_a_job_goes_to_the_next_environment_of_its_queue(world: World) -> None:
    world.environment("first", instanceTypes=["c6g.medium"])
    world.environment("second", instanceTypes=["c6g.2xlarge"])
    world.queue("both", "first", "second")
    job_id = world.submit("printenv", "AWS_BATCH_CE_NAME", jobQueue="both")
    large_id = world.submit(
        "printenv", "AWS_BATCH_CE_NAME", jobQueue="both", containerOverrides=needs(8)
    )
    assert world.lines(world.over(job_id)) == ["first"]
    assert world.lines(world.over(large_id)) == ["second"]


def test_looking_at_an_array_leaves_nothing_behind(world: World) -> None:
    """Ten thousand children are numbers until something happens to them."""
    job_id = world.submit("true", arrayProperties={"size": 10_000}, containerOverrides=needs(9))
    until(lambda: world.job(f"{job_id}:0").get("statusReason"))
    array = world.sandbox.app.batch().store.jobs[job_id].array
    assert array is not None
    before = len(array.children)
    for index in (0, 77, 9_999):
        assert world.job(f"{job_id}:{index}")["arrayProperties"]["index"] == index
    pages = world.batch.get_paginator("list_jobs").paginate(
        arrayJobId=job_id, jobStatus="RUNNABLE", PaginationConfig={"MaxItems": 2500}
    )
    assert sum(len(page["jobSummaryList"]) for page in pages) == 2500
    assert len(array.children) == before <= 4  # those for which there is a slot
    for nobody in (f"{job_id}:10000", f"{job_id}:-1", f"{job_id}:01", f"{job_id}:x", f"{job_id}:"):
        assert world.batch.describe_jobs(jobs=[nobody])["jobs"] == []
    world.batch.terminate_job(jobId=job_id, reason="r")
    assert world.over(job_id)["arrayProperties"]["statusSummary"]["FAILED"] == 10_000
