"""What lasts until it is changed, as clients and jobs see it."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.client import control
from sandbox.errors import SandboxError
from sandbox.rates import Buckets
from tests.sandbox.batch.ruling import proves
from tests.sandbox.conftest import World, trust, until

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def calm(world: World) -> Any:
    yield
    world.sandbox.conditions()


def struck(world: World, kind: str) -> list[Any]:
    return [fault for fault in world.sandbox.app.faults.log()["struck"] if fault["kind"] == kind]


def test_no_capacity_and_then_some(world: World) -> None:
    world.environment("none", instanceTypes=["m6gd.medium"])
    world.queue("none", "none")
    world.sandbox.conditions(capacity={"m6gd.medium": 0})
    job_id = world.submit("true", jobQueue="none")
    until(lambda: "m6gd.medium" in world.job(job_id).get("statusReason", ""))
    assert world.job(job_id)["statusReason"].startswith("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    assert struck(world, "capacity")[-1]["type"] == "m6gd.medium"
    world.sandbox.conditions(capacity={"m6gd.medium": 1})
    assert world.over(job_id)["status"] == "SUCCEEDED"


@proves("seen late")
@proves("no exit code")
def test_an_image_that_cannot_be_pulled(world: World) -> None:
    world.sandbox.conditions(no_image="busy*")
    job = world.over(world.submit("true"))
    assert job["status"] == "FAILED"
    assert job["container"]["reason"].startswith("CannotPullContainerError")
    assert "exitCode" not in job["container"]
    assert struck(world, "image")[-1]["job"] == job["jobId"]


def test_a_job_is_not_seen_at_once(world: World) -> None:
    """DescribeJobs is eventually consistent."""
    world.sandbox.conditions(lag_s=3600)
    job_id = world.submit("true")
    assert world.batch.describe_jobs(jobs=[job_id])["jobs"] == []
    filters = [{"name": "JOB_NAME", "values": ["job"]}]
    listed = world.batch.list_jobs(jobQueue="q", filters=filters)["jobSummaryList"]
    assert job_id not in {job["jobId"] for job in listed}
    assert job_id in {fault["job"] for fault in struck(world, "unseen")}
    world.sandbox.conditions()
    assert world.over(job_id)["status"] == "SUCCEEDED"


@proves("rates")
def test_calls_above_the_rate_are_throttled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.sandbox.app, "_buckets", Buckets(lambda: 0.0))
    world.sandbox.conditions(rates=True)
    codes = []
    for _ in range(51):
        with pytest.raises(ClientError) as caught:
            world.batch.submit_job(jobName="x", jobQueue="nope", jobDefinition="d")
        codes.append(caught.value.response["Error"]["Code"])
    assert codes == ["ClientException"] * 50 + ["TooManyRequestsException"]
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert struck(world, "rate")[-1]["operation"] == "SubmitJob"


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        ("batch", "describe_job_queues", "ExpiredTokenException"),
        ("logs", "describe_log_groups", "ExpiredTokenException"),
        ("sts", "get_caller_identity", "ExpiredToken"),
        ("ec2", "describe_vpcs", "RequestExpired"),
        ("s3", "list_buckets", "ExpiredToken"),
    ],
)
def test_expired_credentials(world: World, service: str, call: str, code: str) -> None:
    world.sandbox.fault("expired", service=service)
    client = world.sandbox.client(service, config=world.batch.meta.config)
    with pytest.raises(ClientError) as caught:
        getattr(client, call)()
    assert caught.value.response["Error"]["Code"] == code


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("conditions", {"lag_s": -1}),
        ("conditions", {"weather": "fine"}),
        ("clock", {"advance": -1}),
        ("clock", {"speed": 0}),
        ("interrupt", {"job": "x"}),
        ("interrupt", {"jobId": "x", "notice": -1}),
    ],
)
def test_what_makes_no_sense_is_refused(world: World, name: str, body: dict[str, Any]) -> None:
    with pytest.raises(SandboxError):
        control(world.sandbox.port, world.sandbox.app.key, "POST", name, body)


NOTICE = """
import json, os, time, urllib.request
base = os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"] + "/latest/"
def ask(path, method="GET", **headers):
    headers = {"X-aws-ec2-metadata-" + key.replace("_", "-"): v for key, v in headers.items()}
    request = urllib.request.Request(base + path, method=method, headers=headers)
    return urllib.request.urlopen(request).read().decode()
token = ask("api/token", "PUT", token_ttl_seconds="60")
print(ask("meta-data/instance-type", token=token), flush=True)
while True:
    try:
        print(json.loads(ask("meta-data/spot/instance-action", token=token))["action"], flush=True)
        break
    except urllib.error.HTTPError as err:
        assert err.code == 404
        time.sleep(0.05)
time.sleep(60)
"""


@proves("spot notice")
def test_a_notice_comes_before_the_end(world: World) -> None:
    """The job sees it at its instance's metadata endpoint; then the instance goes."""
    job_id = world.submit("python3", "-c", NOTICE)
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    until(lambda: world.lines(world.job(job_id)) == ["c6g.medium"])
    world.sandbox.interrupt(job_id, notice_s=3600)
    until(lambda: world.lines(world.job(job_id)) == ["c6g.medium", "terminate"])
    assert world.job(job_id)["status"] == "RUNNING"
    world.sandbox.advance(3600)
    job = world.over(job_id)
    assert job["statusReason"].startswith("Host EC2 (instance i-")
    assert struck(world, "lost")[-1]["instance"] in job["statusReason"]


def test_the_metadata_endpoint_is_a_machines_own(world: World) -> None:
    job_id = world.submit("sleep", "60")
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    machine = next(m for m in world.sandbox.app.batch().scheduler.machines.everyone() if m.jobs)
    for path, method, status in (
        (f"{machine.secret}/latest/meta-data/instance-id", "GET", 401),
        (f"{machine.secret}/latest/api/token", "PUT", 400),
        (f"{machine.secret}/latest/api/token", "POST", 405),
        ("guessed/latest/api/token", "PUT", 404),
        ("", "GET", 404),
    ):
        url = f"{world.sandbox.endpoint}/_metadata/{path}"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(url, method=method))  # noqa: S310 # ours
        assert caught.value.code == status
        caught.value.close()
    world.batch.terminate_job(jobId=job_id, reason="r")
    world.over(job_id)


ASK_AWS = """
import boto3
print(boto3.client("sts").get_caller_identity()["Account"])
print(boto3.client("batch").describe_job_queues()["jobQueues"][0]["jobQueueName"])
"""


@proves("job role")
def test_a_job_with_a_role_finds_aws(world: World) -> None:
    """It signs with what ECS hands out; nothing of it is in the job's environment or in views."""
    world.iam.create_role(RoleName="job", AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com"))
    role = {"jobRoleArn": "arn:aws:iam::123456789012:role/job"}
    world.definition("asks", sys.executable, "-c", ASK_AWS, containerProperties=role)
    job = world.over(world.submit(jobDefinition="asks"))
    assert world.lines(job) == ["123456789012", "q"]
    world.definition("env", "env", containerProperties=role)
    lines = world.lines(world.over(world.submit(jobDefinition="env")))
    assert not [line for line in lines if world.sandbox.app.key in line]


def test_interruptions_by_rate_end_in_retries(world: World) -> None:
    """A job that outlives its machines, and goes on."""
    world.sandbox.conditions(interruptions_per_hour=3600, seed=3, notice_s=0)
    world.environment("rough")
    world.queue("rough", "rough")
    job_id = world.submit("sleep", "600", jobQueue="rough", retryStrategy={"attempts": 10})
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    world.sandbox.advance(3600)
    until(lambda: len(world.job(job_id)["attempts"]) >= 1)
    assert world.job(job_id)["attempts"][0]["statusReason"].startswith("Host EC2")
    world.batch.terminate_job(jobId=job_id, reason="r")
    until(lambda: world.job(job_id)["status"] == "FAILED")
    assert json.dumps(struck(world, "lost"))
