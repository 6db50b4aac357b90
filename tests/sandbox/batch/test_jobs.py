"""Jobs that really run, as a client of AWS Batch sees them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.batch.ruling import proves
from tests.sandbox.conftest import World, trust, until

pytestmark = pytest.mark.slow


def test_a_job_that_succeeds(world: Any) -> None:
    job = world.over(world.submit("sh", "-c", "echo hello; echo there >&2"))
    assert job["status"] == "SUCCEEDED"
    assert job["container"]["exitCode"] == 0
    assert job["statusReason"] == "Essential container in task exited"
    assert job["createdAt"] <= job["startedAt"] <= job["stoppedAt"]
    assert sorted(world.lines(job)) == ["hello", "there"]
    assert len(job["attempts"]) == 1
    stream = job["container"]["logStreamName"]
    assert stream.startswith("d/default/")
    assert job["attempts"][0]["container"]["logStreamName"] == stream


@proves("exit codes")
def test_a_job_that_fails_has_its_exit_code(world: Any) -> None:
    job = world.over(world.submit("sh", "-c", "exit 37"))
    assert (job["status"], job["container"]["exitCode"]) == ("FAILED", 37)


def test_a_program_that_is_not_there(world: Any) -> None:
    job = world.over(world.submit("no-such-program"))
    assert job["status"] == "FAILED"
    assert "exitCode" not in job["container"]
    assert job["container"]["reason"].startswith("CannotStartContainerError")
    assert job["startedAt"] == 0


@proves("variables")
@proves("exit codes")
def test_a_process_killed_by_a_signal_exits_with_128_and_its_number(world: Any) -> None:
    job = world.over(world.submit("sh", "-c", "kill -9 $$"))
    assert job["container"]["exitCode"] == 137


def test_the_environment_is_the_jobs_own(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS's variables, the definition's and the request's; none of the sandbox's."""
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    world.definition("e", "env", containerProperties={"environment": [{"name": "A", "value": "1"}]})
    job = world.over(
        world.submit(
            jobDefinition="e",
            containerOverrides={"environment": [{"name": "B", "value": "two\nlines"}]},
        )
    )
    names = {line.partition("=")[0] for line in world.lines(job) if "=" in line}
    assert {"A", "B", "AWS_BATCH_JOB_ID", "AWS_BATCH_JOB_ATTEMPT", "AWS_BATCH_CE_NAME"} <= names
    assert {"AWS_BATCH_JQ_NAME", "PATH", "HOME"} <= names
    assert not names & {"SECRET_OF_THE_HOST", "AWS_SECRET_ACCESS_KEY", "AWS_BATCH_JOB_ARRAY_INDEX"}
    lines = world.lines(job)
    assert lines[lines.index("B=two") + 1] == "lines"


def test_array_children_have_indexes_and_the_parent_counts_them(world: Any) -> None:
    parent = world.over(
        world.submit(
            "sh",
            "-c",
            "echo $AWS_BATCH_JOB_ARRAY_INDEX of $AWS_BATCH_JOB_ARRAY_SIZE",
            arrayProperties={"size": 5},
        )
    )
    assert parent["status"] == "SUCCEEDED"
    assert parent["arrayProperties"]["size"] == 5
    assert parent["arrayProperties"]["statusSummary"]["SUCCEEDED"] == 5
    for index in range(5):
        child = world.job(f"{parent['jobId']}:{index}")
        assert child["arrayProperties"]["index"] == index
        assert world.lines(child) == [f"{index} of 5"]
    summaries = world.batch.list_jobs(arrayJobId=parent["jobId"], jobStatus="SUCCEEDED")
    assert len(summaries["jobSummaryList"]) == 5


@proves("a child fails")
def test_one_failed_child_fails_the_array(world: Any) -> None:
    parent = world.over(
        world.submit("sh", "-c", "exit $AWS_BATCH_JOB_ARRAY_INDEX", arrayProperties={"size": 3})
    )
    summary = parent["arrayProperties"]["statusSummary"]
    assert (parent["status"], summary["SUCCEEDED"], summary["FAILED"]) == ("FAILED", 1, 2)


def test_many_failing_children_leave_nothing_behind(world: World) -> None:
    """No process, thread or open file is left of three hundred."""
    import psutil  # noqa: PLC0415 # only here

    me = psutil.Process()
    world.over(world.submit("false"))
    before = me.num_fds(), me.num_threads(), len(me.children(recursive=True))
    job = world.over(world.submit("false", arrayProperties={"size": 300}))
    assert job["arrayProperties"]["statusSummary"]["FAILED"] == 300
    until(
        lambda: all(
            now <= then + 4  # the connection that asks, and what just ends
            for now, then in zip(
                (me.num_fds(), me.num_threads(), len(me.children(recursive=True))),
                before,
                strict=True,
            )
        )
    )


def test_never_more_at_a_time_than_slots(world: Any) -> None:
    job_id = world.submit("sleep", "0.2", arrayProperties={"size": 12})
    most = 0
    while (parent := world.job(job_id))["status"] not in {"SUCCEEDED", "FAILED"}:
        summary = parent["arrayProperties"]["statusSummary"]
        assert sum(summary.values()) == 12
        most = max(most, summary["STARTING"] + summary["RUNNING"])
    assert most == 4


def test_what_the_job_leaves_behind_is_ended_with_it(world: Any) -> None:
    job = world.over(world.submit("sh", "-c", "sleep 300 & echo $!"))
    pid = world.lines(job)[0]
    until(
        lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text()
    )


@proves("TERM, then KILL")
@proves("terminate")
def test_terminate_a_running_job(world: Any) -> None:
    job_id = world.submit("sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; sleep 60 & wait")
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    until(lambda: world.lines(world.job(job_id)))
    world.batch.terminate_job(jobId=job_id, reason="enough")
    job = world.over(job_id)
    assert (job["status"], job["statusReason"], job["isTerminated"]) == ("FAILED", "enough", True)
    assert world.lines(job)[-1] == "bye"


def test_a_job_that_ignores_sigterm_is_killed(world: Any) -> None:
    job_id = world.submit("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
    until(lambda: world.job(job_id)["status"] == "RUNNING" and world.lines(world.job(job_id)))
    world.batch.terminate_job(jobId=job_id, reason="enough")
    assert world.over(job_id)["container"]["exitCode"] == 137


@proves("cancel")
def test_cancel_leaves_alone_what_runs(world: Any) -> None:
    """CancelJob on a running job succeeds and does nothing."""
    job_id = world.submit("sleep", "0.5")
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    world.batch.cancel_job(jobId=job_id, reason="no")
    assert world.over(job_id)["status"] == "SUCCEEDED"


def test_cancel_what_waits(world: Any) -> None:
    busy = world.submit("sleep", "30", arrayProperties={"size": 4})
    waiting = world.submit("true")
    array = world.submit("true", arrayProperties={"size": 3})
    until(lambda: world.job(busy)["arrayProperties"]["statusSummary"]["RUNNING"] == 4)
    for job_id in (waiting, array):
        world.batch.cancel_job(jobId=job_id, reason="no")
    job = world.over(waiting)
    assert (job["status"], job["statusReason"], job["isCancelled"]) == ("FAILED", "no", True)
    assert world.over(array)["arrayProperties"]["statusSummary"]["FAILED"] == 3
    world.batch.terminate_jobs(jobs=[busy], reason="done")
    assert world.over(busy)["status"] == "FAILED"


@proves("bulk")
def test_bulk_calls_tell_each_fault_by_itself(world: Any) -> None:
    job_id = world.submit("sleep", "30")
    answer = world.batch.terminate_jobs(jobs=[job_id, "nope"], reason="r")
    assert answer["successful"] == [job_id]
    assert [item["job"] for item in answer["errors"]] == ["nope"]
    world.over(job_id)


RETRY_LOST = {
    "attempts": 3,
    "evaluateOnExit": [
        {"onStatusReason": "Host EC2*", "action": "RETRY"},
        {"onReason": "*", "action": "EXIT"},
    ],
}


@proves("lost host")
def test_a_lost_instance_is_retried_and_a_bug_is_not(world: Any) -> None:
    job_id = world.submit(
        "sh", "-c", "[ $AWS_BATCH_JOB_ATTEMPT = 2 ] || sleep 60", retryStrategy=RETRY_LOST
    )
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    world.sandbox.interrupt(job_id)
    job = world.over(job_id)
    assert job["status"] == "SUCCEEDED"
    first, second = job["attempts"]
    assert first["statusReason"].startswith("Host EC2 (instance i-")
    assert "exitCode" not in first["container"]
    assert second["container"]["exitCode"] == 0
    assert first["container"]["logStreamName"] != second["container"]["logStreamName"]
    bug = world.over(world.submit("false", retryStrategy=RETRY_LOST))
    assert (bug["status"], len(bug["attempts"])) == ("FAILED", 1)


def test_a_lost_child_is_retried(world: Any) -> None:
    job_id = world.submit(
        "sh",
        "-c",
        "[ $AWS_BATCH_JOB_ATTEMPT = 2 ] || sleep 60",
        retryStrategy=RETRY_LOST,
        arrayProperties={"size": 2},
    )
    until(lambda: world.job(f"{job_id}:1")["status"] == "RUNNING")
    until(lambda: world.job(f"{job_id}:0")["status"] == "RUNNING")
    for index in (0, 1):
        world.sandbox.interrupt(f"{job_id}:{index}")
    job = world.over(job_id)
    assert job["arrayProperties"]["statusSummary"]["SUCCEEDED"] == 2
    assert len(world.job(f"{job_id}:0")["attempts"]) == 2


@proves("no match retries")
def test_without_a_rule_that_matches_everything_is_retried(world: Any) -> None:
    job = world.over(world.submit("false", retryStrategy={"attempts": 2}))
    assert (job["status"], len(job["attempts"])) == ("FAILED", 2)


@proves("late overrides", "characters of container overrides")
def test_overrides_that_ecs_refuses_fail_the_job_after_it_was_taken(world: Any) -> None:
    """8,192 characters: SubmitJob takes more, the job fails."""
    overrides = {"environment": [{"name": "A", "value": "x" * 8192}]}
    job = world.over(world.submit(containerOverrides=overrides))
    assert job["status"] == "FAILED"
    assert job["statusReason"] == "Container Overrides length must be at most 8192"


@proves("stuck")
def test_a_job_that_can_never_fit_stays_runnable_and_says_why(world: Any) -> None:
    """c6g.medium has 2 GiB nominally; an instance never registers all of it."""
    resources = [{"type": "MEMORY", "value": "2048"}]
    job_id = world.submit(containerOverrides={"resourceRequirements": resources})
    job = until(lambda: (j := world.job(job_id)).get("statusReason") and j)
    assert job["status"] == "RUNNABLE"
    assert job["statusReason"].startswith("MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT")
    after = world.over(world.submit("true"))
    assert after["status"] == "SUCCEEDED"
    world.batch.terminate_job(jobId=job_id, reason="r")
    assert world.over(job_id)["status"] == "FAILED"


def test_dependencies(world: Any) -> None:
    first = world.submit("sleep", "0.3")
    second = world.submit("true", dependsOn=[{"jobId": first}])
    bad = world.submit("false")
    third = world.submit("true", dependsOn=[{"jobId": bad}])
    array = world.submit("true", dependsOn=[{"jobId": first}], arrayProperties={"size": 2})
    assert world.over(second)["startedAt"] >= world.job(first)["stoppedAt"]
    assert world.over(third)["statusReason"] == "Dependent Job failed"
    assert world.over(array)["status"] == "SUCCEEDED"


def reading(source: str) -> dict[str, Any]:
    """A container with a secret from there."""
    return {
        "secrets": [{"name": "KEY", "valueFrom": source}],
        "executionRoleArn": "arn:aws:iam::123456789012:role/execution",
    }


@proves("secrets of the role")
def test_secrets_come_from_secrets_manager(world: Any) -> None:
    arn = world.sandbox.client("secretsmanager").create_secret(Name="key", SecretString="s3cret")[
        "ARN"
    ]
    world.iam.create_role(
        RoleName="execution", AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com")
    )
    world.definition("early", containerProperties=reading(arn))
    refused = world.over(world.submit(jobDefinition="early"))
    assert "secretsmanager:GetSecretValue" in refused["container"]["reason"]
    statement = {"Effect": "Allow", "Action": "secretsmanager:Get*", "Resource": arn + "*"}
    world.iam.put_role_policy(
        RoleName="execution",
        PolicyName="read",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    for name, source in (("s", arn), ("missing", arn + "x")):
        world.definition(
            name,
            "sh",
            "-c",
            "[ ${#KEY} = 6 ]",
            containerProperties=reading(source),
        )
    job = world.over(world.submit(jobDefinition="s"))
    assert job["status"] == "SUCCEEDED"
    assert "s3cret" not in json.dumps(job)
    lost = world.over(world.submit(jobDefinition="missing"))
    assert "ResourceInitializationError" in lost["container"]["reason"]


def test_a_secrets_json_has_members_and_parameters_are_secrets_too(world: Any) -> None:
    world.iam.create_role(
        RoleName="reader", AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com")
    )
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": statement})
    world.iam.put_role_policy(RoleName="reader", PolicyName="all", PolicyDocument=document)
    secret = world.sandbox.client("secretsmanager").create_secret(
        Name="json", SecretString='{"password": "p1"}'
    )
    ssm = world.sandbox.client("ssm")
    ssm.put_parameter(Name="/deep/one", Value="p2", Type="SecureString")
    ssm.put_parameter(Name="flat", Value="p3", Type="String")
    sources = {
        "A": secret["ARN"] + ":password::",
        "B": "arn:aws:ssm:us-east-1:123456789012:parameter/deep/one",
        "C": "flat",
    }
    container = reading("")
    container["executionRoleArn"] = "arn:aws:iam::123456789012:role/reader"
    container["secrets"] = [{"name": n, "valueFrom": v} for n, v in sources.items()]
    world.definition("members", "sh", "-c", "echo $A $B $C", containerProperties=container)
    assert world.lines(world.over(world.submit(jobDefinition="members"))) == ["p1 p2 p3"]


def test_a_role_that_ecs_cannot_assume(world: Any) -> None:
    world.iam.create_role(RoleName="batch", AssumeRolePolicyDocument=trust("batch.amazonaws.com"))
    for name in ("batch", "nobody"):
        role = {"jobRoleArn": f"arn:aws:iam::123456789012:role/{name}"}
        world.definition(f"role-{name}", containerProperties=role)
        job = world.over(world.submit(jobDefinition=f"role-{name}"))
        assert job["container"]["reason"].startswith("ECS was unable to assume the role")


@proves("log streams")
@proves("log group")
def test_the_log_group_must_exist(world: Any) -> None:
    """The awslogs driver makes no group; Batch makes its default group only."""
    options = {"logDriver": "awslogs", "options": {"awslogs-group": "/runfleet/none"}}
    world.definition("g", containerProperties={"logConfiguration": options})
    job = world.over(world.submit(jobDefinition="g"))
    assert "log group does not exist" in job["container"]["reason"]
    world.logs.create_log_group(logGroupName="/runfleet/none")
    assert world.over(world.submit("echo", "x", jobDefinition="g"))["status"] == "SUCCEEDED"


def test_lines_are_in_the_log_while_the_job_runs(world: Any) -> None:
    job_id = world.submit("sh", "-c", "echo early; sleep 30")
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    until(lambda: world.lines(world.job(job_id)) == ["early"])
    world.batch.terminate_job(jobId=job_id, reason="r")
    world.over(job_id)


def test_a_definition_that_is_inactive_takes_no_jobs(world: Any) -> None:
    arn = world.definition("old")
    newer = world.definition("old")
    assert newer.endswith(":2")
    world.batch.deregister_job_definition(jobDefinition=newer)
    found = world.batch.describe_job_definitions(jobDefinitionName="old", status="ACTIVE")
    assert [d["jobDefinitionArn"] for d in found["jobDefinitions"]] == [arn]
    job = world.over(world.submit(jobDefinition="old"))
    assert job["jobDefinition"] == arn


def test_finding_jobs_by_name(world: Any) -> None:
    """JOB_NAME: case-insensitive, `*` at the end, whatever the state, no children."""
    ids = [world.submit("true", jobName=f"Exp-7-{n}") for n in range(3)]
    ids.append(world.submit("true", jobName="exp-7-3", arrayProperties={"size": 2}))
    found = world.batch.list_jobs(
        jobQueue="q", filters=[{"name": "JOB_NAME", "values": ["exp-7-*"]}]
    )["jobSummaryList"]
    assert {job["jobId"] for job in found} == set(ids)
    for job_id in ids:
        world.over(job_id)


def test_listing_is_paged_newest_first(world: Any) -> None:
    ids = [world.submit("false", jobName=f"page-{n}") for n in range(5)]
    for job_id in ids:
        world.over(job_id)
    pages = world.batch.get_paginator("list_jobs").paginate(
        jobQueue="q", jobStatus="FAILED", PaginationConfig={"PageSize": 2}
    )
    listed = [job["jobId"] for page in pages for job in page["jobSummaryList"]]
    assert [job_id for job_id in listed if job_id in ids] == ids[::-1]


@proves("queue delete order")
@proves("disabled queue")
def test_a_disabled_queue_takes_no_jobs_and_its_deletion_ends_them(world: Any) -> None:
    world.queue("going", "ce")
    running_id = world.submit("sleep", "60", jobQueue="going")
    waiting_id = world.submit("sleep", "60", jobQueue="going", arrayProperties={"size": 9})
    until(lambda: world.job(running_id)["status"] == "RUNNING")
    with pytest.raises(world.batch.exceptions.ClientException, match="must be DISABLED"):
        world.batch.delete_job_queue(jobQueue="going")
    world.batch.update_job_queue(jobQueue="going", state="DISABLED")
    until(lambda: world.queue_detail("going")["status"] == "VALID")
    with pytest.raises(world.batch.exceptions.ClientException, match="not ENABLED"):
        world.submit("true", jobQueue="going")
    world.batch.delete_job_queue(jobQueue="going")
    until(lambda: world.queue_detail("going") is None)
    assert {world.job(j)["status"] for j in (running_id, waiting_id)} == {"FAILED"}


@proves("environment delete order")
def test_an_environment_goes_only_when_disabled_and_unused(world: Any) -> None:
    world.environment("late")
    world.queue("late", "late")
    refusal = world.batch.exceptions.ClientException
    with pytest.raises(refusal, match="must be DISABLED"):
        world.batch.delete_compute_environment(computeEnvironment="late")
    world.batch.update_compute_environment(computeEnvironment="late", state="DISABLED")
    until(lambda: world.environment_detail("late")["status"] == "VALID")
    with pytest.raises(refusal, match="JobQueue relationship"):
        world.batch.delete_compute_environment(computeEnvironment="late")
    world.batch.update_job_queue(jobQueue="late", state="DISABLED")
    until(lambda: world.queue_detail("late")["status"] == "VALID")
    world.batch.delete_job_queue(jobQueue="late")
    until(lambda: world.queue_detail("late") is None)
    world.batch.delete_compute_environment(computeEnvironment="late")
    until(lambda: world.environment_detail("late") is None)


@proves("update in place")
@pytest.mark.parametrize(
    ("strategy", "change", "allowed"),
    [
        ("SPOT_PRICE_CAPACITY_OPTIMIZED", {"maxvCpus": 8}, True),
        ("SPOT_PRICE_CAPACITY_OPTIMIZED", {"instanceTypes": ["c7g.medium"]}, True),
        ("BEST_FIT", {"maxvCpus": 8}, True),
        ("BEST_FIT", {"instanceTypes": ["c7g.medium"]}, False),
    ],
)
def test_what_can_be_updated_in_place(
    world: Any, strategy: str, change: dict[str, Any], allowed: object
) -> None:
    name = f"up-{strategy}-{next(iter(change))}"
    world.iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust("spotfleet.amazonaws.com"))
    fleet_role = {"spotIamFleetRole": f"arn:aws:iam::123456789012:role/{name}"}
    world.environment(name, allocationStrategy=strategy, **fleet_role)
    request = {"computeEnvironment": name, "computeResources": change}
    if allowed:
        world.batch.update_compute_environment(**request)
        until(lambda: world.environment_detail(name)["status"] == "VALID")
        key, value = next(iter(change.items()))
        assert world.environment_detail(name)["computeResources"][key] == value
    else:
        with pytest.raises(world.batch.exceptions.ClientException, match="can't be updated"):
            world.batch.update_compute_environment(**request)


def test_tags(world: Any) -> None:
    arn = world.queue_detail("q")["jobQueueArn"]
    world.batch.tag_resource(resourceArn=arn, tags={"team": "rl", "x": "y"})
    world.batch.untag_resource(resourceArn=arn, tagKeys=["x"])
    assert world.batch.list_tags_for_resource(resourceArn=arn)["tags"] == {"team": "rl"}
    assert world.queue_detail("q")["tags"] == {"team": "rl"}


@proves("tags propagate")
def test_definition_tags_come_to_jobs_that_propagate(world: Any) -> None:
    world.definition("t", tags={"team": "rl"}, propagateTags=True)
    job = world.over(world.submit(jobDefinition="t", tags={"who": "ada"}))
    assert job["tags"] == {"team": "rl", "who": "ada"}


@proves("too many tags")
def test_too_many_tags_to_propagate_fail_the_job_after_it_was_taken(world: Any) -> None:
    """50, the definition's and the job's together."""
    world.definition("many", tags={f"d{n}": "v" for n in range(26)}, propagateTags=True)
    for count, status in ((24, "SUCCEEDED"), (25, "FAILED")):
        tags = {f"j{n}": "v" for n in range(count)}
        assert world.over(world.submit(jobDefinition="many", tags=tags))["status"] == status


def test_time_stamps_are_milliseconds(world: Any) -> None:
    job = world.over(world.submit("true"))
    assert abs(job["createdAt"] / 1000 - time.time()) < 60
