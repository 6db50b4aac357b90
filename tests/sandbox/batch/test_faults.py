"""Faults on demand: they strike as told, and are in the log."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

pytestmark = pytest.mark.slow


@pytest.fixture
def log_length(world: Any) -> int:
    return len(world.sandbox.app.faults.log()["struck"])


def test_throttling(world: Any, log_length: int) -> None:
    world.sandbox.fault("throttle", service="batch", operation="DescribeJobQueues", count=2)
    for _ in range(2):
        with pytest.raises(ClientError) as caught:
            world.batch.describe_job_queues()
        assert caught.value.response["Error"]["Code"] == "TooManyRequestsException"
    world.batch.describe_job_queues()
    struck = world.sandbox.app.faults.log()["struck"][log_length:]
    assert [f["operation"] for f in struck] == ["DescribeJobQueues"] * 2


def test_an_answer_lost_after_the_deed(world: Any) -> None:
    before = len(world.sandbox.app.batch().store.jobs)
    world.sandbox.fault("lost", operation="SubmitJob")
    with pytest.raises(ConnectionClosedError):
        world.submit("true")
    assert len(world.sandbox.app.batch().store.jobs) == before + 1


def test_a_connection_reset_before_the_deed(world: Any) -> None:
    before = len(world.sandbox.app.batch().store.jobs)
    world.sandbox.fault("reset", operation="SubmitJob")
    with pytest.raises(ConnectionClosedError):
        world.submit("true")
    assert len(world.sandbox.app.batch().store.jobs) == before


def test_the_nth_call_fails(world: Any) -> None:
    world.sandbox.fault("error", operation="DescribeComputeEnvironments", after=2)
    for _ in range(2):
        world.batch.describe_compute_environments()
    with pytest.raises(ClientError) as caught:
        world.batch.describe_compute_environments()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500


def test_faults_of_other_services(world: Any) -> None:
    world.sandbox.fault("throttle", service="logs", operation="DescribeLogGroups")
    logs = world.sandbox.client("logs", config=world.batch.meta.config)
    with pytest.raises(ClientError) as caught:
        logs.describe_log_groups()
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"


def test_calls_are_counted(world: Any) -> None:
    before = world.sandbox.calls().get("batch.ListJobs", 0)
    world.batch.list_jobs(jobQueue="q")
    assert world.sandbox.calls()["batch.ListJobs"] == before + 1


def test_a_fault_that_is_none(world: Any) -> None:
    with pytest.raises(ValueError, match="no fault 'flood'"):
        world.sandbox.fault("flood")
