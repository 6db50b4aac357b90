"""Each limit of AWS Batch that the sandbox enforces: at its edge taken, beyond it refused."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.batch.errors import ClientError as Refused
from tests.sandbox.batch.ruling import LIMITS, cases, proves, refused
from tests.sandbox.conftest import World, trust, until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", LIMITS)
def test_every_row_has_a_source_and_both_edges(name: str) -> None:
    row = LIMITS[name]
    assert row.source
    row.check(row.at_least)
    row.check(row.at_most)
    for outside in (row.at_least - 1, row.at_most + 1):
        with pytest.raises(Refused, match=str(outside)):
            row.check(outside)


REQUIREMENTS = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}]


@cases(
    ("array size", {"arrayProperties": {"size": 1}}, "array size"),
    ("array size", {"arrayProperties": {"size": 10_001}}, "array size"),
    ("array size", {"arrayProperties": {}}, "array size"),
    ("legal names", {"jobName": "a b"}, "Job name should match valid pattern"),
    ("legal names", {"jobName": "-a"}, "Job name"),
    ("legal names", {"jobName": "a" * 129}, "Job name"),
    ("what is named exists", {"jobQueue": "nope"}, "not found"),
    (
        "what is named exists",
        {"jobDefinition": "nope"},
        "name nope does not exist or is not in ACTIVE",
    ),
    ("what is named exists", {"jobDefinition": "d:9"}, "not found"),
    ("retry attempts", {"retryStrategy": {"attempts": 11}}, "retry attempts"),
    (
        "attemptDurationSeconds",
        {"timeout": {"attemptDurationSeconds": 59}},
        "attemptDurationSeconds",
    ),
    ("service model", {"tags": {f"k{n}": "v" for n in range(51)}}, ""),
    ("what is named exists", {"dependsOn": [{"jobId": "nope"}]}, "does not exist"),
    ("kinds of overrides", {"nodeOverrides": {"numNodes": 2}}, "for multi-node jobs"),
    ("shares", {"shareIdentifier": "a"}, "with fair share scheduling policy"),
    ("attempts given", {"retryStrategy": {}}, "RetryAttempts must be provided with retry strategy"),
    ("parameters", {"containerOverrides": {"command": ["echo", "Ref::x"]}}, "reference x"),
    (
        "reserved variables",
        {"containerOverrides": {"environment": [{"name": "AWS_BATCH_X"}]}},
        "reserved",
    ),
    ("no empty words", {"containerOverrides": {"command": [""]}}, "empty"),
    (
        "GPUs",
        {"containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "0"}]}},
        "GPUs",
    ),
    (
        "vCPUs",
        {"containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "0"}]}},
        "vCPUs",
    ),
    ("schedulingPriority", {"schedulingPriorityOverride": 10_000}, "schedulingPriority"),
    (
        "resource requirements",
        {"containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "0.5"}]}},
        "whole",
    ),
    (
        "SubmitJob payload in bytes",
        {"containerOverrides": {"environment": [{"name": "A", "value": "x" * 31_000}]}},
        "payload",
    ),
)
def test_submit_job(world: Any, rule: str | None, change: Any, says: str) -> None:
    before = len(world.sandbox.app.batch().store.jobs)
    assert says in refused(rule, lambda: world.submit(**change))
    assert len(world.sandbox.app.batch().store.jobs) == before


@cases(
    ("retry attempts", {"retryStrategy": {"attempts": 0}}, "retry attempts"),
    (
        "evaluateOnExit rules",
        {
            "retryStrategy": {
                "attempts": 1,
                "evaluateOnExit": [{"onReason": "*", "action": "EXIT"}] * 6,
            }
        },
        "evaluateOnExit",
    ),
    (
        "retry rules",
        {"retryStrategy": {"attempts": 1, "evaluateOnExit": [{"action": "EXIT"}]}},
        "condition",
    ),
    (
        "retry rules",
        {
            "retryStrategy": {
                "attempts": 1,
                "evaluateOnExit": [{"onReason": "a*b", "action": "EXIT"}],
            }
        },
        "may only end it",
    ),
    (
        "service model",
        {"retryStrategy": {"attempts": 1, "evaluateOnExit": [{"onReason": "*", "action": "STAY"}]}},
        "RETRY, EXIT",
    ),
    (
        "attemptDurationSeconds",
        {"timeout": {"attemptDurationSeconds": 1}},
        "attemptDurationSeconds",
    ),
    ("image and resources", {"containerProperties": {"resourceRequirements": []}}, "needs VCPU"),
    (
        "image and resources",
        {"containerProperties": {"resourceRequirements": REQUIREMENTS[:1]}},
        "needs MEMORY",
    ),
    (
        "memory in MiB",
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
        "resource requirements",
        {"containerProperties": {"resourceRequirements": REQUIREMENTS + REQUIREMENTS[:1]}},
        "twice",
    ),
    ("roles are ARNs", {"containerProperties": {"jobRoleArn": "role"}}, "ARN"),
    (
        "secrets need a role",
        {"containerProperties": {"secrets": [{"name": "A", "valueFrom": "arn:x"}]}},
        "executionRoleArn",
    ),
    (
        "job definition size in bytes",
        {"containerProperties": {"command": ["sh", "-c", "x" * 25_000]}},
        "size in bytes",
    ),
    ("not on EC2", {"containerProperties": {"ephemeralStorage": {"sizeInGiB": 30}}}, "for Fargate"),
    (
        "kinds of definitions",
        {"containerProperties": {"instanceType": "c6g.medium"}},
        "for multinode",
    ),
    (
        "volumes",
        {"containerProperties": {"mountPoints": [{"sourceVolume": "x"}]}},
        "no volume",
    ),
    (
        "volumes",
        {"containerProperties": {"volumes": [{"name": "x"}, {"name": "x"}]}},
        "a name twice",
    ),
    (
        "ulimits",
        {"containerProperties": {"ulimits": [{"name": "nofile", "softLimit": 2, "hardLimit": 1}]}},
        "above its hard limit",
    ),
    (
        "swap",
        {"containerProperties": {"linuxParameters": {"swappiness": 101}}},
        "between 0 and 100",
    ),
    (None, {"platformCapabilities": ["FARGATE"]}, "but EC2"),
    (
        "kinds of definitions",
        {"nodeProperties": {"numNodes": 1, "mainNode": 0, "nodeRangeProperties": []}},
        "for multinode",
    ),
)
def test_register_job_definition(world: Any, rule: str | None, change: Any, says: str) -> None:
    assert says in refused(rule, lambda: world.definition("bad", **change))
    assert "bad" not in world.sandbox.app.batch().store.definitions


@cases(
    ("types exist", {"instanceTypes": ["c6g.tiny"]}, "not a valid instance type"),
    ("types of Batch", {"instanceTypes": ["t3.large"]}, "Instance type can only be one of"),
    ("types of Batch", {"instanceTypes": ["t4g"]}, "Instance type can only be one of"),
    ("types of Batch", {"instanceTypes": ["m1.small"]}, "Instance type can only be one of"),
    ("one architecture", {"instanceTypes": ["c6g.medium", "c5.large"]}, "one architecture"),
    ("no GPU mix", {"instanceTypes": ["g4dn.xlarge", "c5.large"]}, "can't be mixed"),
    ("images fit", {"instanceTypes": ["a1.medium"]}, "image of your own"),
    ("images fit", {"instanceTypes": ["g5g.xlarge"]}, "image of your own"),
    ("images fit", {"instanceTypes": ["p3.2xlarge"]}, "image of your own"),
    ("images fit", {"instanceTypes": ["g4dn.xlarge"]}, "ECS_AL2023_NVIDIA"),
    ("retired images", {"ec2Configuration": [{"imageType": "ECS_AL2"}]}, "no longer supported"),
    ("images fit", {"ec2Configuration": [{"imageType": "ECS_AL2023_NVIDIA"}]}, "ECS_AL2023"),
    (
        "items of ec2Configuration",
        {"ec2Configuration": [{"imageType": "ECS_AL2023"}] * 3},
        "ec2Configuration is 3",
    ),
    ("sizes", {"maxvCpus": 0}, "maxvCpus"),
    ("sizes", {"minvCpus": 17}, "minvCpus"),
    ("sizes", {"desiredvCpus": 17}, "desiredvCpus"),
    ("bidPercentage", {"bidPercentage": 101}, "bidPercentage"),
    ("bid is for spot", {"type": "EC2", "bidPercentage": 50}, "SPOT"),
    ("bid is for spot", {"type": "EC2"}, "SPOT compute resources"),
    ("best fit needs a fleet role", {"allocationStrategy": "BEST_FIT"}, "spotIamFleetRole"),
    (None, {"type": "FARGATE"}, "FARGATE"),
    (
        "minScaleDownDelayMinutes",
        {"scalingPolicy": {"minScaleDownDelayMinutes": 19}},
        "minScaleDownDelayMinutes",
    ),
    ("resources", {"subnets": []}, "subnets"),
    ("resources", {"securityGroupIds": None}, "securityGroupIds"),
    ("resources", {"instanceRole": None}, "Instance role is required"),
    ("resources", {"minvCpus": None}, "Resource minvCpus is required"),
)
def test_create_compute_environment(world: Any, rule: str | None, change: Any, says: str) -> None:
    message = refused(
        rule,
        lambda: world.batch.create_compute_environment(
            computeEnvironmentName="bad",
            type="MANAGED",
            computeResources=world.resources(**change),
        ),
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


@cases(
    ("kinds of environments", {"type": "UNMANAGED"}, "serviceRole"),
    (
        "kinds of environments",
        {"type": "UNMANAGED", "serviceRole": "r", "unmanagedvCpus": -1},
        "0 or more",
    ),
    (
        "kinds of environments",
        {"type": "UNMANAGED", "serviceRole": "r", "computeResources": {}},
        "for MANAGED",
    ),
    (
        "kinds of environments",
        {"type": "MANAGED", "computeResources": {}, "unmanagedvCpus": 1},
        "for UNMANAGED",
    ),
    ("kinds of environments", {"type": "MANAGED"}, "computeResources must be provided"),
)
def test_each_kind_of_environment_has_its_members(
    world: Any, rule: str | None, change: Any, says: str
) -> None:
    if "computeResources" in change:
        change = change | {"computeResources": world.resources()}
    message = refused(
        rule, lambda: world.batch.create_compute_environment(computeEnvironmentName="bad", **change)
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


@cases(
    ("job queue priority", {"priority": 1001}, "priority"),
    (
        "compute environments per job queue",
        {"computeEnvironmentOrder": []},
        "compute environments per job queue",
    ),
    (
        "compute environments per job queue",
        {"computeEnvironmentOrder": [{"order": n, "computeEnvironment": "ce"} for n in range(4)]},
        "compute environments per job queue",
    ),
    (
        "environments of a queue",
        {"computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "ce"}] * 2},
        "an order twice",
    ),
    (
        "what is named exists",
        {"computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "no"}]},
        "does not exist",
    ),
    ("what is named exists", {"schedulingPolicyArn": "arn:x"}, "arn:x does not exist"),
    (
        "jobStateTimeLimitActions.maxTimeSeconds",
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
        "time limits",
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
)
def test_create_job_queue(world: Any, rule: str | None, change: Any, says: str) -> None:
    request = {
        "jobQueueName": "bad",
        "priority": 1,
        "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "ce"}],
    } | change
    assert says in refused(rule, lambda: world.batch.create_job_queue(**request))
    assert world.queue_detail("bad") is None


@proves("jobs per DescribeJobs call", "jobs per bulk call")
def test_calls_with_too_many_ids(world: Any) -> None:
    ids = ["x"] * 101
    refused("jobs per DescribeJobs call", lambda: world.batch.describe_jobs(jobs=ids))
    assert world.batch.describe_jobs(jobs=ids[:100])["jobs"] == []
    for call in (world.batch.terminate_jobs, world.batch.cancel_jobs):
        refused("jobs per bulk call", lambda call=call: call(jobs=ids[:51], reason="r"))
        assert len(call(jobs=ids[:50], reason="r")["errors"]) == 50


@proves(
    "listing", "pages", "ListJobs maxResults", "ListJobs maxResults with a filter", "maxResults"
)
def test_what_lists_take(world: Any) -> None:
    batch = world.batch
    filters = [{"name": "JOB_NAME", "values": ["a"]}]
    for rule, call in (
        ("listing", batch.list_jobs),
        ("listing", lambda: batch.list_jobs(jobQueue="q", filters=filters * 2)),
        ("ListJobs maxResults", lambda: batch.list_jobs(jobQueue="q", maxResults=1001)),
        (
            "ListJobs maxResults with a filter",
            lambda: batch.list_jobs(jobQueue="q", filters=filters, maxResults=101),
        ),
        ("pages", lambda: batch.list_jobs(jobQueue="q", nextToken="x")),
        ("maxResults", lambda: batch.describe_job_definitions(maxResults=101)),
        ("maxResults", lambda: batch.describe_job_queues(maxResults=0)),
        ("pages", lambda: batch.describe_job_queues(jobQueues=["q"], maxResults=1)),
        ("pages", lambda: batch.describe_job_definitions(jobDefinitions=["d:1"], maxResults=1)),
        (
            "pages",
            lambda: batch.describe_compute_environments(computeEnvironments=["ce"], maxResults=1),
        ),
    ):
        refused(rule, call)


def test_what_is_not_here_says_so(world: Any) -> None:
    """Never under the name of a rule of AWS."""
    refused(
        None,
        lambda: world.batch.create_service_environment(
            serviceEnvironmentName="s",
            serviceEnvironmentType="SAGEMAKER_TRAINING",
            capacityLimits=[{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
        ),
    )


@proves("service model")
def test_what_the_model_does_not_have(world: Any) -> None:
    """As a client would send it that does not know the model."""
    for body in (
        b"no JSON",
        b"[]",
        b"{}",
        b'{"jobs": "a"}',
        b'{"jobs": [1]}',
        b'{"jobs": ["a"], "more": 1}',
    ):
        answer = world.sandbox.app.batch().handle("POST", "/v1/describejobs", {}, body)
        assert (answer.status, answer.headers["x-sandbox-rule"]) == (400, "service model")
    answer = world.sandbox.app.batch().handle("POST", "/v1/nothing", {}, b"{}")
    assert (answer.status, answer.headers["x-sandbox-rule"]) == (400, "service model")


@cases(
    ("legal names", {"name": "a b"}, "not a legal name"),
    ("shareDecaySeconds", {"fairsharePolicy": {"shareDecaySeconds": 604_801}}, "shareDecay"),
    ("computeReservation", {"fairsharePolicy": {"computeReservation": 100}}, "computeReservation"),
    (
        "shares of a scheduling policy",
        {"fairsharePolicy": {"shareDistribution": [{"shareIdentifier": f"a{n}"} for n in range(501)]}},
        "500",
    ),
    (
        "share identifiers",
        {"fairsharePolicy": {"shareDistribution": [{"shareIdentifier": "a-b"}]}},
        "not legal",
    ),
    (
        "share identifiers",
        {"fairsharePolicy": {"shareDistribution": [{"shareIdentifier": "a", "weightFactor": 0.0}]}},
        "weightFactor",
    ),
)  # fmt: skip
def test_create_scheduling_policy(world: Any, rule: str | None, change: Any, says: str) -> None:
    request = {"name": "bad"} | change
    assert says in refused(rule, lambda: world.batch.create_scheduling_policy(**request))
    assert world.batch.list_scheduling_policies()["schedulingPolicies"] == []


@proves("one of a name")
def test_a_name_is_taken_once(world: World) -> None:
    order = [{"order": 1, "computeEnvironment": "ce"}]
    batch = world.batch
    arn = batch.create_scheduling_policy(name="taken")["arn"]
    for call in (
        lambda: batch.create_compute_environment(
            computeEnvironmentName="ce", type="MANAGED", computeResources=world.resources()
        ),
        lambda: batch.create_job_queue(jobQueueName="q", priority=1, computeEnvironmentOrder=order),
        lambda: batch.create_scheduling_policy(name="taken"),
    ):
        assert "already exists" in refused("one of a name", call)
    batch.delete_scheduling_policy(arn=arn)


@proves("legal names", "revision to deregister")
def test_names_are_legal_and_a_revision_is_named(world: World) -> None:
    order = [{"order": 1, "computeEnvironment": "ce"}]
    batch = world.batch
    for name in ("-a", "a b", "ä", "a" * 129):
        refused("legal names", lambda name=name: world.definition(name))
        refused(
            "legal names",
            lambda name=name: batch.create_job_queue(
                jobQueueName=name, priority=1, computeEnvironmentOrder=order
            ),
        )
        refused(
            "legal names",
            lambda name=name: batch.create_compute_environment(
                computeEnvironmentName=name, type="MANAGED", computeResources=world.resources()
            ),
        )
    refused(
        "revision to deregister", lambda: batch.deregister_job_definition(jobDefinition="sleeper")
    )


@proves("something to update")
def test_an_update_says_what_is_to_change(world: World) -> None:
    refused(
        "something to update",
        lambda: world.batch.update_compute_environment(computeEnvironment="ce"),
    )


@proves("service-linked for good")
def test_the_service_linked_role_stays(world: World) -> None:
    world.environment("linked")
    role = "arn:aws:iam::123456789012:role/own"
    refused(
        "service-linked for good",
        lambda: world.batch.update_compute_environment(
            computeEnvironment="linked", serviceRole=role
        ),
    )


@proves("tags per resource")
def test_tags_are_counted_with_those_that_are_there(world: World) -> None:
    arn = world.queue_detail("q")["jobQueueArn"]
    world.batch.tag_resource(resourceArn=arn, tags={f"k{n}": "" for n in range(30)})
    more = {f"more{n}": "" for n in range(21)}
    refused("tags per resource", lambda: world.batch.tag_resource(resourceArn=arn, tags=more))
    more.popitem()
    world.batch.tag_resource(resourceArn=arn, tags=more)
    assert len(world.batch.list_tags_for_resource(resourceArn=arn)["tags"]) == 50
    world.batch.untag_resource(resourceArn=arn, tagKeys=[*more, *(f"k{n}" for n in range(30))])


@proves("jobs in a queue's snapshot")
def test_a_snapshot_shows_a_hundred(world: World) -> None:
    world.environment("small", maxvCpus=1)
    world.queue("small", "small")
    array = world.submit("sleep", "60", jobQueue="small", arrayProperties={"size": 150})

    def front() -> int:
        found: Any = world.batch.get_job_queue_snapshot(jobQueue="small")
        return len(found["frontOfQueue"]["jobs"])

    until(lambda: front() == 100)
    world.batch.terminate_job(jobId=array, reason="r")
    world.over(array)
