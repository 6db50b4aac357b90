"""infra.standing: the account as it is, looked at with the provider's own credentials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from infra.standing import Look, NotCounted
from sandbox.testing import Running, running

from .test_plan import ACCOUNT

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


@pytest.fixture
def environment(sandbox: Running) -> str:
    """ARN of a compute environment of the stack rl."""
    ec2, iam, batch = (sandbox.client(name) for name in ("ec2", "iam", "batch"))
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="-", VpcId=vpc)["GroupId"]
    iam.create_instance_profile(InstanceProfileName="p")
    made = batch.create_compute_environment(
        computeEnvironmentName="rl-c6g-medium",
        type="MANAGED",
        tags={"stack": "rl", "queue": "c6g-medium"},
        computeResources={
            "type": "EC2",
            "maxvCpus": 4,
            "instanceTypes": ["c6g.medium"],
            "subnets": [ec2.describe_subnets()["Subnets"][0]["SubnetId"]],
            "securityGroupIds": [group],
            "instanceRole": "p",
        },
    )
    return str(made["computeEnvironmentArn"])


@pytest.mark.usefixtures("_towards")
def test_what_stands(environment: str) -> None:
    assert environment
    standing = Look({}, ACCOUNT).standing()
    assert [(e.name, e.stack, e.queue) for e in standing.environments] == [
        ("rl-c6g-medium", "rl", "c6g-medium")
    ]
    assert standing.queues == ()
    assert Look({}, ACCOUNT).jobs([]) == dict[str, Counter[str]]()


@pytest.mark.usefixtures("_towards")
def test_credentials_of_another_account_are_not_used() -> None:
    other = msgspec.structs.replace(ACCOUNT, account="999999999999")
    with pytest.raises(NotCounted, match="boto3's credentials are of account 123456789012"):
        Look({}, other)


@pytest.mark.usefixtures("_towards")
def test_calls_that_are_refused() -> None:
    with pytest.raises(NotCounted, match="UnrecognizedClientException"):
        Look({"aws:accessKey": "AKIAOTHER", "aws:secretKey": "x"}, ACCOUNT)


def test_provider_with_a_role_of_its_own() -> None:
    with pytest.raises(NotCounted, match="aws:assumeRoles"):
        Look({"aws:assumeRoles": "[{}]"}, ACCOUNT)
