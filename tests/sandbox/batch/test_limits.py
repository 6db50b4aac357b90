"""Each limit of AWS Batch that the sandbox enforces: at its edge taken, beyond it refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.batch import limits
from sandbox.batch.errors import ClientError as Refused
from tests.sandbox.batch.ruling import proves
from tests.sandbox.conftest import trust, until

pytestmark = pytest.mark.slow


def refused(call: Callable[[], Any]) -> str:
    """The message with which the call is refused."""
    with pytest.raises(ClientError) as caught:
        call()
    assert caught.value.response["Error"]["Code"] == "ClientException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return str(caught.value.response["Error"]["Message"])


ROWS = {name: row for name, row in vars(limits).items() if isinstance(row, limits.Limit)}


@pytest.mark.parametrize("name", ROWS)
def test_every_row_has_a_source_and_both_edges(name: str) -> None:
    row = ROWS[name]
    assert row.source
    row.check(row.at_least)
    row.check(row.at_most)
    for outside in (row.at_least - 1, row.at_most + 1):
        with pytest.raises(Refused, match=str(outside)):
            row.check(outside)


def strategy(rule: dict[str, str], count: int = 1) -> dict[str, Any]:
    """A retryStrategy with that rule so many times."""
    return {"attempts": 2, "evaluateOnExit": [{"action": "EXIT"} | rule] * count}


def on_efs(**configuration: Any) -> dict[str, Any]:
    """A definition with a volume on EFS."""
    efs = {"fileSystemId": "fs-1", **configuration}
    return {"containerProperties": {"volumes": [{"name": "v", "efsVolumeConfiguration": efs}]}}


def linux(**parameters: Any) -> dict[str, Any]:
    return {"containerProperties": {"linuxParameters": parameters}}


BY_ID = {"launchTemplateId": "lt-1"}


def overrides(*targets: list[str]) -> dict[str, Any]:
    """A launch template with an override for each of the lists of types."""
    return BY_ID | {"overrides": [BY_ID | {"targetInstanceTypes": types} for types in targets]}


REQUIREMENTS = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"arrayProperties": {"size": 1}}, "array size"),
        ({"arrayProperties": {"size": 10_001}}, "array size"),
        ({"arrayProperties": {}}, "array size"),
        ({"jobName": "a b"}, "jobName"),
        ({"jobName": "-a"}, "jobName"),
        ({"jobName": "a" * 129}, "jobName"),
        ({"jobQueue": "nope"}, "not found"),
        ({"jobDefinition": "nope"}, "not found"),
        ({"jobDefinition": "d:9"}, "not found"),
        ({"retryStrategy": {"attempts": 11}}, "retry attempts"),
        ({"timeout": {"attemptDurationSeconds": 59}}, "attemptDurationSeconds"),
        ({"tags": {f"k{n}": "v" for n in range(51)}}, ""),
        ({"dependsOn": [{"jobId": "nope"}]}, "does not exist"),
        ({"nodeOverrides": {"numNodes": 2}}, "for multi-node jobs"),
        ({"shareIdentifier": "a"}, "shareIdentifier"),
        ({"containerOverrides": {"environment": [{"name": "AWS_BATCH_X"}]}}, "reserved"),
        ({"containerOverrides": {"command": [""]}}, "empty"),
        (
            {"containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "0"}]}},
            "GPUs",
        ),
        (
            {"containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "0.5"}]}},
            "whole",
        ),
        (
            {"containerOverrides": {"environment": [{"name": "A", "value": "x" * 31_000}]}},
            "payload",
        ),
    ],
    ids=str,
)
def test_submit_job(world: Any, request_: dict[str, Any], says: str) -> None:
    before = len(world.sandbox.app.batch().store.jobs)
    assert says in refused(lambda: world.submit(**request_))
    assert len(world.sandbox.app.batch().store.jobs) == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"retryStrategy": {"attempts": 0}}, "retry attempts"),
        (
            {"retryStrategy": strategy({"onReason": "*"}, 6)},
            "evaluateOnExit",
        ),
        ({"retryStrategy": strategy({})}, "condition"),
        ({"retryStrategy": strategy({"onReason": "a*b"})}, "may only end it"),
        ({"retryStrategy": strategy({"onReason": "a(b"})}, "letters, digits, periods"),
        ({"retryStrategy": strategy({"onStatusReason": "x" * 513})}, "of a condition"),
        ({"retryStrategy": strategy({"onExitCode": "one"})}, "it takes digits"),
        ({"retryStrategy": strategy({"onReason": "*", "action": "STAY"})}, "RETRY, EXIT"),
        (
            {"retryStrategy": {"evaluateOnExit": [{"onReason": "*", "action": "EXIT"}]}},
            "needs attempts",
        ),
        ({"schedulingPriority": 10_000}, "schedulingPriority"),
        ({"tags": {"Aws:x": "1"}}, "keeps for itself"),
        ({"containerProperties": {"image": "a" * 256}}, "characters of an image"),
        ({"containerProperties": {"image": "a b"}}, "not a legal name"),
        ({"timeout": {"attemptDurationSeconds": 1}}, "attemptDurationSeconds"),
        ({"containerProperties": {"resourceRequirements": []}}, "needs VCPU"),
        ({"containerProperties": {"resourceRequirements": REQUIREMENTS[:1]}}, "needs MEMORY"),
        (
            {
                "containerProperties": {
                    "resourceRequirements": [
                        REQUIREMENTS[0],
                        {"type": "MEMORY", "value": "3"},
                    ]
                }
            },
            "memory in MiB",
        ),
        (
            {"containerProperties": {"resourceRequirements": REQUIREMENTS + REQUIREMENTS[:1]}},
            "twice",
        ),
        ({"containerProperties": {"jobRoleArn": "role"}}, "ARN"),
        (
            {"containerProperties": {"secrets": [{"name": "A", "valueFrom": "arn:x"}]}},
            "executionRoleArn",
        ),
        ({"containerProperties": {"command": ["sh", "-c", "x" * 25_000]}}, "size in bytes"),
        ({"containerProperties": {"ephemeralStorage": {"sizeInGiB": 30}}}, "for Fargate"),
        ({"containerProperties": {"instanceType": "c6g.medium"}}, "for multinode"),
        (
            {"containerProperties": {"mountPoints": [{"sourceVolume": "x"}]}},
            "no volume",
        ),
        (
            {"containerProperties": {"volumes": [{"name": "x"}, {"name": "x"}]}},
            "a name twice",
        ),
        (
            {
                "containerProperties": {
                    "ulimits": [{"name": "nofile", "softLimit": 2, "hardLimit": 1}]
                }
            },
            "above its hard limit",
        ),
        (
            {"containerProperties": {"linuxParameters": {"swappiness": 101}}},
            "between 0 and 100",
        ),
        (on_efs(authorizationConfig={"iam": "ENABLED"}), "needs transitEncryption"),
        (
            on_efs(transitEncryption="ENABLED", authorizationConfig={"iam": "ENABLED"}),
            "needs a jobRoleArn",
        ),
        (on_efs(authorizationConfig={"accessPointId": "fsap-1"}), "needs transitEncryption"),
        (
            on_efs(rootDirectory="/x", authorizationConfig={"accessPointId": "fsap-1"}),
            "rootDirectory must be /",
        ),
        (on_efs(transitEncryptionPort=65_536), "transitEncryptionPort"),
        (on_efs(rootDirectory="/" * 4097), "rootDirectory"),
        ({"containerProperties": {"volumes": [{"name": "a b"}]}}, "name 'a b' is not legal"),
        ({"containerProperties": {"volumes": [{}]}}, "name None is not legal"),
        (
            {"containerProperties": {"ulimits": [{"name": "x", "softLimit": 1, "hardLimit": 1}]}},
            "the names are core",
        ),
        (linux(sharedMemorySize=0), "1 or more"),
        (linux(tmpfs=[{"containerPath": "t", "size": 1}]), "must be absolute"),
        (linux(tmpfs=[{"containerPath": "/t", "size": 0}]), "1 or more"),
        (
            linux(tmpfs=[{"containerPath": "/t", "size": 1, "mountOptions": ["cheese"]}]),
            "which is none",
        ),
        ({"platformCapabilities": ["FARGATE"]}, "EC2 only"),
        (
            {"nodeProperties": {"numNodes": 1, "mainNode": 0, "nodeRangeProperties": []}},
            "for multinode",
        ),
    ],
    ids=str,
)
@proves("conditions of exits")
@proves("mounts")
def test_register_job_definition(world: Any, changes: dict[str, Any], says: str) -> None:
    assert says in refused(lambda: world.definition("bad", **changes))
    assert "bad" not in world.sandbox.app.batch().store.definitions


@proves("types exist")
@proves("no GPU mix")
@proves("images fit")
@proves("retired images")
@proves("bid is for spot")
@proves("best fit needs a fleet role")
@proves("launch templates")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"instanceTypes": ["c6g.tiny"]}, "not a valid instance type"),
        ({"instanceTypes": ["c6g.medium", "c5.large"]}, "one architecture"),
        ({"instanceTypes": ["g4dn.xlarge", "c5.large"]}, "can't be mixed"),
        ({"instanceTypes": ["a1.medium"]}, "image of your own"),
        ({"instanceTypes": ["g5g.xlarge"]}, "image of your own"),
        ({"instanceTypes": ["p3.2xlarge"]}, "image of your own"),
        ({"instanceTypes": ["g4dn.xlarge"]}, "ECS_AL2023_NVIDIA"),
        ({"ec2Configuration": [{"imageType": "ECS_AL2"}]}, "no longer supported"),
        ({"ec2Configuration": [{"imageType": "ECS_AL2023_NVIDIA"}]}, "ECS_AL2023"),
        ({"ec2Configuration": [{"imageType": "ECS_AL2023"}] * 3}, "two items"),
        ({"maxvCpus": 0}, "maxvCpus"),
        ({"minvCpus": 17}, "minvCpus"),
        ({"desiredvCpus": 17}, "desiredvCpus"),
        ({"bidPercentage": 101}, "bidPercentage"),
        ({"type": "EC2", "bidPercentage": 50}, "SPOT"),
        ({"type": "EC2"}, "SPOT compute resources"),
        ({"allocationStrategy": "BEST_FIT"}, "spotIamFleetRole"),
        ({"type": "FARGATE"}, "FARGATE"),
        ({"scalingPolicy": {"minScaleDownDelayMinutes": 19}}, "minScaleDownDelayMinutes"),
        ({"subnets": []}, "subnets"),
        ({"securityGroupIds": None}, "securityGroupIds or launchTemplate"),
        ({"capacityTags": {"a": "b"}}, "ECS_MANAGED_INSTANCES"),
        ({"launchTemplate": {"version": "1"}}, "one of launchTemplateId"),
        ({"launchTemplate": BY_ID | {"launchTemplateName": "b"}}, "one of launchTemplateId"),
        ({"launchTemplate": BY_ID | {"userdataType": "EKS_NODEADM"}}, "for EKS"),
        ({"launchTemplate": overrides(["c5.large"])}, "not among the instanceTypes"),
        ({"launchTemplate": overrides(["default_arm64"])}, "can't be default_arm64"),
        ({"launchTemplate": overrides([])}, "needs targetInstanceTypes"),
        ({"launchTemplate": overrides(["c6g.medium"], ["c6g.medium"])}, "overlap at c6g.medium"),
        ({"launchTemplate": overrides(*[["c6g.medium"]] * 11)}, "overrides of a launch template"),
        ({"instanceRole": None}, "instanceRole"),
    ],
    ids=str,
)
def test_create_compute_environment(world: Any, changes: dict[str, Any], says: str) -> None:
    message = refused(
        lambda: world.batch.create_compute_environment(
            computeEnvironmentName="bad",
            type="MANAGED",
            computeResources=world.resources(**changes),
        )
    )
    assert says in message
    assert world.environment_detail("bad") is None


@proves("invalid with a reason")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"instanceRole": "nobody"}, "the instance profile nobody does not exist"),
        ({"subnets": ["subnet-0"]}, "the subnet subnet-0 does not exist"),
        ({"securityGroupIds": ["sg-0"]}, "the security group sg-0 does not exist"),
        (
            {"launchTemplate": {"launchTemplateId": "lt-0"}},
            "the launch template lt-0 does not exist",
        ),
    ],
    ids=str,
)
def test_what_aws_finds_later_makes_the_environment_invalid(
    world: Any, changes: dict[str, Any], says: str
) -> None:
    name = "later-" + next(iter(changes))
    world.batch.create_compute_environment(
        computeEnvironmentName=name,
        type="MANAGED",
        computeResources=world.resources(**changes),
    )
    detail = world.environment_detail(name)
    while detail["status"] == "CREATING":
        detail = world.environment_detail(name)
    assert detail["status"] == "INVALID"
    assert says in detail["statusReason"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"type": "UNMANAGED"}, "serviceRole"),
        ({"type": "UNMANAGED", "serviceRole": "r", "unmanagedvCpus": -1}, "0 or more"),
        ({"type": "UNMANAGED", "serviceRole": "r", "computeResources": {}}, "for MANAGED"),
        ({"type": "MANAGED", "computeResources": {}, "unmanagedvCpus": 1}, "for UNMANAGED"),
        ({"type": "MANAGED"}, "computeResources must be provided"),
        ({"type": "MANAGED", "computeResources": {}, "state": "DISABLED"}, "in the ENABLED state"),
    ],
    ids=str,
)
@proves("created enabled")
def test_each_kind_of_environment_has_its_members(
    world: Any, request_: dict[str, Any], says: str
) -> None:
    if "computeResources" in request_:
        request_ = request_ | {"computeResources": world.resources()}
    message = refused(
        lambda: world.batch.create_compute_environment(computeEnvironmentName="bad", **request_)
    )
    assert says in message


def test_an_unmanaged_environment_has_no_instances_of_its_own(world: Any) -> None:
    """What it runs on is the customer's; none registers here, so jobs wait."""
    world.iam.create_role(RoleName="own", AssumeRolePolicyDocument=trust("batch.amazonaws.com"))
    role = "arn:aws:iam::123456789012:role/own"
    world.batch.create_compute_environment(
        computeEnvironmentName="own", type="UNMANAGED", serviceRole=role, unmanagedvCpus=4
    )
    until(lambda: world.environment_detail("own")["status"] == "VALID")
    assert world.environment_detail("own")["unmanagedvCpus"] == 4
    world.queue("own", "own")
    job_id = world.submit("true", jobQueue="own")
    until(lambda: world.job(job_id)["status"] == "RUNNABLE")
    world.batch.update_compute_environment(computeEnvironment="own", unmanagedvCpus=8)
    until(lambda: world.environment_detail("own")["status"] == "VALID")
    assert world.environment_detail("own")["unmanagedvCpus"] == 8
    world.batch.terminate_job(jobId=job_id, reason="r")
    world.over(job_id)


def test_maxvcpus_may_go_below_what_is_up(world: Any) -> None:
    world.environment("shrinks", maxvCpus=4, minvCpus=3)
    world.batch.update_compute_environment(
        computeEnvironment="shrinks",
        computeResources={"minvCpus": 1, "maxvCpus": 2, "updateToLatestImageVersion": True},
    )
    until(lambda: world.environment_detail("shrinks")["status"] == "VALID")
    assert world.environment_detail("shrinks")["computeResources"]["maxvCpus"] == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"priority": 1001}, "priority"),
        ({"computeEnvironmentOrder": []}, "compute environments per job queue"),
        (
            {
                "computeEnvironmentOrder": [
                    {"order": n, "computeEnvironment": "ce"} for n in range(4)
                ]
            },
            "compute environments per job queue",
        ),
        (
            {"computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "ce"}] * 2},
            "an order twice",
        ),
        ({"computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "no"}]}, "does not exist"),
        (
            {"computeEnvironmentOrder": [{"order": n, "computeEnvironment": "ce"} for n in (1, 2)]},
            "a compute environment twice",
        ),
        ({"schedulingPolicyArn": "arn:x"}, "arn:x does not exist"),
        (
            {
                "jobStateTimeLimitActions": [
                    {
                        "reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
                        "state": "RUNNABLE",
                        "maxTimeSeconds": 600,
                        "action": "TERMINATE",
                    }
                ]
            },
            "CANCEL only",
        ),
        (
            {
                "jobStateTimeLimitActions": [
                    {
                        "reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
                        "state": "RUNNABLE",
                        "maxTimeSeconds": 599,
                        "action": "CANCEL",
                    }
                ]
            },
            "maxTimeSeconds",
        ),
        (
            {
                "jobStateTimeLimitActions": [
                    {
                        "reason": "BOREDOM",
                        "state": "RUNNABLE",
                        "maxTimeSeconds": 600,
                        "action": "CANCEL",
                    }
                ]
            },
            "BOREDOM",
        ),
    ],
    ids=str,
)
@proves("cancel only")
def test_create_job_queue(world: Any, changes: dict[str, Any], says: str) -> None:
    request = {
        "jobQueueName": "bad",
        "priority": 1,
        "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "ce"}],
    } | changes
    assert says in refused(lambda: world.batch.create_job_queue(**request))
    assert world.queue_detail("bad") is None


def test_fifty_queues_and_fifty_environments(world: Any) -> None:
    """Service quotas: 50 and 50 per Region; they can't be raised."""
    store = world.sandbox.app.batch().store
    for number in range(50 - len(store.environments)):
        world.batch.create_compute_environment(
            computeEnvironmentName=f"many-{number}",
            type="MANAGED",
            computeResources=world.resources(),
        )
    for number in range(50 - len(store.queues)):
        world.batch.create_job_queue(
            jobQueueName=f"many-{number}",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "ce"}],
        )
    assert "50" in refused(
        lambda: world.batch.create_compute_environment(
            computeEnvironmentName="one-more",
            type="MANAGED",
            computeResources=world.resources(),
        )
    )
    assert "50" in refused(
        lambda: world.batch.create_job_queue(
            jobQueueName="one-more",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "ce"}],
        )
    )


def test_calls_with_too_many_ids(world: Any) -> None:
    assert "DescribeJobs" in refused(lambda: world.batch.describe_jobs(jobs=["x"] * 101))
    assert "bulk" in refused(lambda: world.batch.terminate_jobs(jobs=["x"] * 51, reason="r"))
    describe = world.batch.describe_job_definitions
    assert "per call" in refused(lambda: describe(jobDefinitions=["d:1"] * 101))
    assert "other parameters" in refused(
        lambda: describe(jobDefinitions=["d:1"], jobDefinitionName="d")
    )


@proves("mounts")
def test_volumes_that_aws_takes(world: Any) -> None:
    efs = {
        "fileSystemId": "fs-1",
        "rootDirectory": "/",
        "transitEncryption": "ENABLED",
        "transitEncryptionPort": 2999,
        "authorizationConfig": {"accessPointId": "fsap-1", "iam": "ENABLED"},
    }
    tmpfs = {"containerPath": "/t", "size": 1, "mountOptions": ["noexec", "mode=1777"]}
    container = {
        "jobRoleArn": "arn:aws:iam::123456789012:role/r",
        "volumes": [{"name": "v_1-a", "efsVolumeConfiguration": efs}],
        "mountPoints": [{"sourceVolume": "v_1-a", "containerPath": "/v"}],
        "linuxParameters": {"tmpfs": [tmpfs], "sharedMemorySize": 1},
    }
    assert world.definition("mounts", containerProperties=container)


@proves("arns")
def test_an_arn_is_of_one_kind_account_and_region(world: Any) -> None:
    """Else it is the ARN of something that is not here."""
    arns = {
        "queue": world.queue_detail("q")["jobQueueArn"],
        "definition": world.definition("arns"),
        "environment": world.environment_detail("ce")["computeEnvironmentArn"],
        "job": world.job(world.submit("true"))["jobArn"],
    }
    store = world.sandbox.app.batch().store
    find = {
        "queue": store.queue,
        "definition": store.find_definition,
        "environment": store.environment,
        "job": store.look_at,
    }
    for kind, arn in arns.items():
        assert find[kind](arn)
        name = arn.rpartition("/")[2]
        others = [other for what, other in arns.items() if what != kind]
        foreign = [f"{other.rpartition('/')[0]}/{name}" for other in others]
        foreign += [arn.replace("us-east-1", "eu-west-1"), arn.replace("123456789012", "1" * 12)]
        for wrong in [*foreign, f"arn:x/{name}", f"x/{name}"]:
            assert find[kind](wrong) is None, wrong
    assert "not found" in refused(
        lambda: world.submit(jobQueue=arns["queue"].replace("us-east-1", "eu-west-1"))
    )
    for revision in ("", "0", "01", "1:1", "99", "x"):
        assert "not found" in refused(lambda end=revision: world.submit(jobDefinition=f"d:{end}"))


def test_a_reason_has_its_length(world: Any) -> None:
    job_id = world.submit("sleep", "60")
    batch, long = world.batch, "r" * 1025
    for call in (batch.cancel_job, batch.terminate_job):
        assert "of a reason" in refused(lambda call=call: call(jobId=job_id, reason=long))
    for call in (batch.cancel_jobs, batch.terminate_jobs):
        assert "of a reason" in refused(lambda call=call: call(jobs=[job_id], reason=long))
    batch.terminate_job(jobId=job_id, reason=long[1:])
    assert world.over(job_id)["statusReason"] == long[1:]


@proves("conditions of exits")
def test_an_action_on_exit_comes_in_either_case(world: Any) -> None:
    """So does Terraform's provider send it, in lower case (API Reference, EvaluateOnExit)."""
    rule = {"onReason": "CannotPull: a.b*", "action": "retry"}
    arn = world.definition("lower", retryStrategy={"attempts": 2, "evaluateOnExit": [rule]})
    found = world.batch.describe_job_definitions(jobDefinitions=[arn])["jobDefinitions"][0]
    assert found["retryStrategy"]["evaluateOnExit"] == [rule]
    world.over(world.submit("true", jobDefinition=arn))


@proves("reserved tags")
def test_tags_that_aws_keeps_for_itself(world: Any) -> None:
    arn = world.queue_detail("q")["jobQueueArn"]
    tag = world.batch.tag_resource
    assert "keeps for itself" in refused(lambda: tag(resourceArn=arn, tags={"aws:x": "1"}))
    assert "keeps for itself" in refused(lambda: world.submit("true", tags={"AWS:x": "1"}))


def test_list_jobs_needs_one_place_to_look_and_one_filter(world: Any) -> None:
    assert "one of jobQueue" in refused(world.batch.list_jobs)
    filters = [{"name": "JOB_NAME", "values": ["a"]}] * 2
    assert "one filter" in refused(lambda: world.batch.list_jobs(jobQueue="q", filters=filters))
    assert "maxResults" in refused(lambda: world.batch.list_jobs(jobQueue="q", maxResults=0))
    assert "nextToken" in refused(lambda: world.batch.list_jobs(jobQueue="q", nextToken="x"))
