"""A sandbox for the tests of a module, and a fleet of one queue in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox.testing import Running, running


def trust(service: str) -> str:
    """A trust policy for one service."""
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": service},
                    "Action": "sts:AssumeRole",
                }
            ],
        }
    )


def until(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """The condition's value, once it is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)
    return value


class World:
    """A sandbox with the roles and the network that a compute environment needs."""

    def __init__(self, sandbox: Running) -> None:
        self.sandbox = sandbox
        self.batch = sandbox.client("batch", config=_one_try())
        self.logs = sandbox.client("logs")
        iam, ec2 = sandbox.client("iam"), sandbox.client("ec2")
        iam.create_role(RoleName="instance", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
        iam.create_instance_profile(InstanceProfileName="instance")
        iam.add_role_to_instance_profile(InstanceProfileName="instance", RoleName="instance")
        self.iam, self.ec2 = iam, ec2
        self.subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        self.group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]

    def resources(self, **changes: Any) -> dict[str, Any]:
        """ComputeResources that AWS takes, with changes; None takes a member away."""
        whole = {
            "type": "SPOT",
            "allocationStrategy": "SPOT_PRICE_CAPACITY_OPTIMIZED",
            "minvCpus": 0,
            "maxvCpus": 16,
            "instanceTypes": ["c6g.medium"],
            "subnets": [self.subnet],
            "securityGroupIds": [self.group],
            "instanceRole": "instance",
            "ec2Configuration": [{"imageType": "ECS_AL2023"}],
        } | changes
        return {key: value for key, value in whole.items() if value is not None}

    def environment(self, name: str, **changes: Any) -> str:
        """A compute environment that is VALID."""
        self.batch.create_compute_environment(
            computeEnvironmentName=name,
            type="MANAGED",
            computeResources=self.resources(**changes),
        )
        until(lambda: self.environment_detail(name)["status"] == "VALID")
        return name

    def environment_detail(self, name: str) -> Any:
        found = self.batch.describe_compute_environments(computeEnvironments=[name])
        return (found["computeEnvironments"] or [None])[0]

    def queue(self, name: str, *environments: str, **options: Any) -> str:
        """A job queue that is VALID."""
        self.batch.create_job_queue(
            jobQueueName=name,
            priority=options.pop("priority", 1),
            computeEnvironmentOrder=[
                {"order": n, "computeEnvironment": e} for n, e in enumerate(environments)
            ],
            **options,
        )
        until(lambda: self.queue_detail(name)["status"] == "VALID")
        return name

    def queue_detail(self, name: str) -> Any:
        return (self.batch.describe_job_queues(jobQueues=[name])["jobQueues"] or [None])[0]

    def definition(self, name: str, *command: str, **changes: Any) -> str:
        """The ARN of a job definition."""
        container = {
            "image": "busybox",
            "command": list(command) or ["true"],
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "100"},
            ],
        } | changes.pop("containerProperties", {})
        answer = self.batch.register_job_definition(
            jobDefinitionName=name, type="container", containerProperties=container, **changes
        )
        return str(answer["jobDefinitionArn"])

    def submit(self, *command: str, **request: Any) -> str:
        """A job's id, on the queue `q` and with the definition `d` unless said otherwise."""
        overrides = request.pop("containerOverrides", {})
        if command:
            overrides = overrides | {"command": list(command)}
        whole = {"jobName": "job", "jobQueue": "q", "jobDefinition": "d"} | request
        return str(self.batch.submit_job(containerOverrides=overrides, **whole)["jobId"])

    def job(self, job_id: str) -> Any:
        return self.batch.describe_jobs(jobs=[job_id])["jobs"][0]

    def over(self, job_id: str) -> Any:
        """The job, once it is over."""
        until(lambda: self.job(job_id)["status"] in {"SUCCEEDED", "FAILED"})
        return self.job(job_id)

    def lines(self, job: Any) -> list[str]:
        """What the job's last attempt has printed."""
        options = job["container"].get("logConfiguration", {}).get("options", {})
        events = self.logs.get_log_events(
            logGroupName=options.get("awslogs-group", "/aws/batch/job"),
            logStreamName=job["container"]["logStreamName"],
            startFromHead=True,
        )["events"]
        return [event["message"] for event in events]


def _one_try() -> Any:
    from botocore.config import Config  # noqa: PLC0415 # only for tests that need a client

    return Config(retries={"total_max_attempts": 1})


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A sandbox with a valid environment `ce`, queue `q` and definition `d`."""
    with running(slots=4, grace_s=0.5) as sandbox:
        world = World(sandbox)
        world.environment("ce")
        world.queue("q", "ce")
        world.definition("d")
        yield world
