"""infra.standing: the account as it is, looked at with the provider's own credentials."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from infra.ending import Jobs
from infra.jobs_plugin import last_word
from infra.standing import Look, NotCounted
from sandbox.testing import Running, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Running]:
    with running() as sandbox_:
        yield sandbox_


@pytest.fixture
def _towards(sandbox: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in sandbox.env().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture(scope="module")
def environment(sandbox: Running) -> str:
    """ARN of a compute environment of the stack rl."""
    ec2, iam, batch = (sandbox.client(name) for name in ("ec2", "iam", "batch"))
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="-", VpcId=vpc)["GroupId"]
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "ec2.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    iam.create_role(RoleName="p", AssumeRolePolicyDocument=document)
    iam.attach_role_policy(
        RoleName="p",
        PolicyArn="arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role",
    )
    iam.create_instance_profile(InstanceProfileName="p")
    iam.add_role_to_instance_profile(InstanceProfileName="p", RoleName="p")
    made = batch.create_compute_environment(
        computeEnvironmentName="rl-c6g-medium",
        type="MANAGED",
        tags={"stack": "rl", "queue": "c6g-medium"},
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 4,
            "instanceTypes": ["c6g.medium"],
            "subnets": [ec2.describe_subnets()["Subnets"][0]["SubnetId"]],
            "securityGroupIds": [group],
            "instanceRole": "p",
        },
    )
    arn = str(made["computeEnvironmentArn"])
    for _ in range(100):
        (found,) = batch.describe_compute_environments(computeEnvironments=[arn])[
            "computeEnvironments"
        ]
        if found["status"] == "VALID":
            return arn
        time.sleep(0.05)
    pytest.fail(found["statusReason"])


def look(config: dict[str, str], *, account: str = "123456789012") -> Look:
    return Look(config, account=account, region="us-east-1")


@pytest.mark.usefixtures("_towards")
def test_what_stands(environment: str) -> None:
    assert environment
    standing = look({}).standing("rl")
    assert [(e.name, e.stack, e.queue) for e in standing.environments] == [
        ("rl-c6g-medium", "rl", "c6g-medium")
    ]


@pytest.mark.usefixtures("_towards")
def test_credentials_of_another_account_are_not_used() -> None:
    with pytest.raises(NotCounted, match="boto3's credentials are of account 123456789012"):
        look({}, account="999999999999")


@pytest.mark.usefixtures("_towards")
def test_calls_that_are_refused() -> None:
    with pytest.raises(NotCounted, match="UnrecognizedClientException"):
        look({"aws:accessKey": "AKIAOTHER", "aws:secretKey": "x"})


def test_provider_with_a_role_of_its_own() -> None:
    with pytest.raises(NotCounted, match="aws:assumeRoles"):
        look({"aws:assumeRoles": "[{}]"})


def submit(sandbox: Running, queue: str, **request: Any) -> None:
    batch = sandbox.client("batch")
    resources = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]
    definition = batch.register_job_definition(
        jobDefinitionName="waits",
        type="container",
        containerProperties={"image": "python:3.12", "resourceRequirements": resources},
    )["jobDefinitionArn"]
    batch.submit_job(jobName="waits", jobQueue=queue, jobDefinition=definition, **request)


@pytest.mark.usefixtures("_towards")
def test_jobs_of_queues(sandbox: Running, environment: str) -> None:
    """Those that are not over, an array with all it has; told when the queues are destroyed."""
    batch = sandbox.client("batch")
    order = [{"order": 1, "computeEnvironment": environment}]
    busy, idle = (
        batch.create_job_queue(jobQueueName=name, priority=1, computeEnvironmentOrder=order)
        for name in ("busy", "idle")
    )
    sandbox.conditions(capacity={"c6g.medium": 0})
    submit(sandbox, "busy", arrayProperties={"size": 30})
    assert look({}).jobs([busy["jobQueueArn"], idle["jobQueueArn"]]) == {
        busy["jobQueueArn"]: [Jobs(status="PENDING", jobs=1, runs=30)]
    }
    properties = {
        "account": "123456789012",
        "region": "us-east-1",
        "config": {},
        "queues": {"c6g-medium": busy["jobQueueArn"], "c6g-medium-spot": idle["jobQueueArn"]},
    }
    assert last_word(properties) == "jobs end with their queues: c6g-medium: 1 PENDING (30 runs)"
    assert last_word(properties | {"queues": {"c6g-medium-spot": idle["jobQueueArn"]}}) == ""
    assert last_word(properties | {"account": "999999999999"}) == (
        "jobs that are in the queues end with them; they were not counted: boto3's credentials are "
        "of account 123456789012, the provider's of 999999999999"
    )
