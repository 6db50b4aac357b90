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


BY_ID = {"launchTemplateId": "lt-1"}


def overrides(*targets: list[str]) -> dict[str, Any]:
    """A launch template with an override for each of the lists of types."""
    return BY_ID | {"overrides": [BY_ID | {"targetInstanceTypes": types} for types in targets]}


@cases(
    ("array size", {"arrayProperties": {"size": 1}}, "array size"),
    ("array size", {"arrayProperties": {"size": 10_001}}, "array size"),
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


@proves("empty is none")
def test_empty_members_are_none(world: Any) -> None:
    members = ("arrayProperties", "containerOverrides", "nodeOverrides", "timeout", "tags")
    empty: dict[str, Any] = {member: {} for member in members}
    job = world.over(world.submit(**empty, dependsOn=[]))
    assert job["status"] == "SUCCEEDED"
    assert "arrayProperties" not in job


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
    ("resources", {"securityGroupIds": None}, "securityGroupIds or launchTemplate"),
    ("resources", {"capacityTags": {"a": "b"}}, "ECS_MANAGED_INSTANCES"),
    ("launch templates", {"launchTemplate": {"version": "1"}}, "one of launchTemplateId"),
    (
        "launch templates",
        {"launchTemplate": BY_ID | {"launchTemplateName": "b"}},
        "one of launchTemplateId",
    ),
    ("launch templates", {"launchTemplate": BY_ID | {"userdataType": "EKS_NODEADM"}}, "for EKS"),
    (
        "launch templates",
        {"launchTemplate": overrides(["c5.large"])},
        "not among the instanceTypes",
    ),
    (
        "launch templates",
        {"launchTemplate": overrides(["default_arm64"])},
        "can't be default_arm64",
    ),
    ("launch templates", {"launchTemplate": overrides([])}, "needs targetInstanceTypes"),
    (
        "launch templates",
        {"launchTemplate": overrides(["c6g.medium"], ["c6g.medium"])},
        "overlap at c6g.medium",
    ),
    (
        "overrides of a launch template",
        {"launchTemplate": overrides(*[["c6g.medium"]] * 11)},
        "overrides of a launch template",
    ),
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
    (
        "created enabled",
        {"type": "MANAGED", "computeResources": {}, "state": "DISABLED"},
        "in the ENABLED state",
    ),
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
        "environments of a queue",
        {"computeEnvironmentOrder": [{"order": n, "computeEnvironment": "ce"} for n in (1, 2)]},
        "a compute environment twice",
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
        "cancel only",
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


@proves("jobs per DescribeJobs call", "jobs per bulk call", "job definitions per call")
def test_calls_with_too_many_ids(world: Any) -> None:
    ids = ["x"] * 101
    refused("jobs per DescribeJobs call", lambda: world.batch.describe_jobs(jobs=ids))
    assert world.batch.describe_jobs(jobs=ids[:100])["jobs"] == []
    for call in (world.batch.terminate_jobs, world.batch.cancel_jobs):
        refused("jobs per bulk call", lambda call=call: call(jobs=ids[:51], reason="r"))
        assert len(call(jobs=ids[:50], reason="r")["errors"]) == 50
    describe = world.batch.describe_job_definitions
    refused("job definitions per call", lambda: describe(jobDefinitions=ids))
    assert describe(jobDefinitions=ids[:100])["jobDefinitions"] == []


@proves(
    "listing", "pages", "ListJobs maxResults", "ListJobs maxResults with a filter", "maxResults"
)
def test_what_lists_take(world: Any) -> None:
    batch = world.batch
    filters = [{"name": "JOB_NAME", "values": ["a"]}]
    describe = batch.describe_job_definitions
    for rule, call in (
        ("listing", batch.list_jobs),
        ("listing", lambda: batch.list_jobs(jobQueue="q", filters=filters * 2)),
        ("ListJobs maxResults", lambda: batch.list_jobs(jobQueue="q", maxResults=0)),
        (
            "ListJobs maxResults with a filter",
            lambda: batch.list_jobs(jobQueue="q", filters=filters, maxResults=0),
        ),
        ("pages", lambda: batch.list_jobs(jobQueue="q", nextToken="x")),
        ("maxResults", lambda: describe(maxResults=101)),
        ("maxResults", lambda: batch.describe_job_queues(maxResults=0)),
        ("pages", lambda: batch.describe_job_queues(jobQueues=["q"], maxResults=1)),
        ("pages", lambda: describe(jobDefinitions=["d:1"], maxResults=1)),
        ("pages", lambda: describe(jobDefinitions=["d:1"], jobDefinitionName="d")),
        (
            "pages",
            lambda: batch.describe_compute_environments(computeEnvironments=["ce"], maxResults=1),
        ),
    ):
        refused(rule, call)


@proves("characters of a reason")
def test_a_reason_has_its_length(world: Any) -> None:
    job_id = world.submit("sleep", "60")
    batch, long = world.batch, "r" * 1025
    for call in (batch.cancel_job, batch.terminate_job):
        refused("characters of a reason", lambda call=call: call(jobId=job_id, reason=long))
    for call in (batch.cancel_jobs, batch.terminate_jobs):
        refused("characters of a reason", lambda call=call: call(jobs=[job_id], reason=long))
    batch.terminate_job(jobId=job_id, reason=long[1:])
    assert world.over(job_id)["statusReason"] == long[1:]


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
    elsewhere = arns["queue"].replace("us-east-1", "eu-west-1")
    refused("what is named exists", lambda: world.submit(jobQueue=elsewhere))
    for revision in ("", "0", "01", "1:1", "99", "x"):
        refused("what is named exists", lambda end=revision: world.submit(jobDefinition=f"d:{end}"))


@proves("reserved tags")
def test_tags_that_aws_keeps_for_itself(world: Any) -> None:
    arn = world.queue_detail("q")["jobQueueArn"]
    tag = world.batch.tag_resource
    refused("reserved tags", lambda: tag(resourceArn=arn, tags={"aws:x": "1"}))
    refused("reserved tags", lambda: world.submit("true", tags={"AWS:x": "1"}))


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
