"""Rules of AWS Batch that have no test elsewhere; and that each rule has one."""

from __future__ import annotations

import ast
import importlib
import time
from pathlib import Path
from typing import Any

import pytest

from sandbox.batch import rules
from sandbox.batch.rules import RULES
from tests.sandbox.batch.ruling import LIMITS, PROOFS, proves, refused
from tests.sandbox.conftest import World, trust, until

pytestmark = pytest.mark.slow
DAY_S = 86_400


def test_each_rule_has_a_source_and_its_test() -> None:
    for path in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"tests.sandbox.batch.{path.stem}")
    assert not RULES.keys() & LIMITS.keys()
    assert sorted(PROOFS) == sorted([*RULES, *LIMITS])
    assert all(rule.says and rule.source for rule in RULES.values())


def test_nothing_is_refused_but_by_a_row_of_the_tables() -> None:
    """Errors are made in the tables alone, and each rule that is named there is in one."""
    folder = Path(rules.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id == "ClientError":
                assert path.name in {"rules.py", "limits.py"}, f"{path.name}:{node.lineno}"
            if node.func.id == "refusal":
                assert isinstance(node.args[0], ast.Constant)
                assert node.args[0].value in RULES


@proves("one architecture")
def test_a_queue_has_one_architecture(world: World) -> None:
    world.environment("x86", instanceTypes=["c5.large"])
    order = [{"order": n, "computeEnvironment": e} for n, e in enumerate(("ce", "x86"))]
    assert "one architecture" in refused(
        "one architecture",
        lambda: world.batch.create_job_queue(
            jobQueueName="mixed", priority=1, computeEnvironmentOrder=order
        ),
    )
    assert "one architecture" in refused(
        "one architecture",
        lambda: world.batch.update_job_queue(jobQueue="q", computeEnvironmentOrder=order),
    )


@proves("trust")
@pytest.mark.parametrize(
    ("member", "service"), [("spotIamFleetRole", "spotfleet"), ("serviceRole", "batch")]
)
def test_a_role_must_trust_its_service(world: World, member: str, service: str) -> None:
    role = f"wrong-{service}"
    world.iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    arn = f"arn:aws:iam::123456789012:role/{role}"
    fleet = {"spotIamFleetRole": arn} if member == "spotIamFleetRole" else {}
    own = {"serviceRole": arn} if member == "serviceRole" else {}
    world.batch.create_compute_environment(
        computeEnvironmentName=role,
        type="MANAGED",
        computeResources=world.resources(**fleet),
        **own,
    )
    until(lambda: world.environment_detail(role)["status"] == "INVALID")
    assert (
        f"does not trust {service}.amazonaws.com" in world.environment_detail(role)["statusReason"]
    )
    order = [{"order": 1, "computeEnvironment": role}]
    assert "is not VALID" in refused(
        "environments of a queue",
        lambda: world.batch.create_job_queue(
            jobQueueName="no", priority=1, computeEnvironmentOrder=order
        ),
    )


@proves("no scaling down by hand")
def test_desired_vcpus_are_not_lowered(world: World) -> None:
    world.environment("desired", minvCpus=1)
    change = {"minvCpus": 0, "desiredvCpus": 0}
    assert "scaling down" in refused(
        "no scaling down by hand",
        lambda: world.batch.update_compute_environment(
            computeEnvironment="desired", computeResources=change
        ),
    )


@proves("infrastructure update")
@pytest.mark.parametrize("terminate", [True, False])
def test_an_update_of_the_machines_ends_what_runs_on_the_old_ones(
    world: World, tmp_path: Path, *, terminate: bool
) -> None:
    """At once, or after the minutes that the policy grants; the job gets its next attempt."""
    name = f"renewed-{terminate}".lower()
    world.environment(name)
    world.queue(name, name)
    script = f"test -e {tmp_path}/seen && exit 0; touch {tmp_path}/seen; sleep 60"
    job_id = world.submit("sh", "-c", script, jobQueue=name, retryStrategy={"attempts": 2})
    until((tmp_path / "seen").exists)
    world.batch.update_compute_environment(
        computeEnvironment=name,
        computeResources={"maxvCpus": 8, "instanceTypes": ["c7g.medium"]},
        updatePolicy={"terminateJobsOnUpdate": terminate, "jobExecutionTimeoutMinutes": 30},
    )
    until(lambda: world.environment_detail(name)["status"] == "VALID")
    if not terminate:
        world.sandbox.advance(29 * 60)
        time.sleep(0.6)  # two ticks
        assert world.job(job_id)["status"] == "RUNNING"
        world.sandbox.advance(2 * 60)
    job = world.over(job_id)
    assert job["status"] == "SUCCEEDED"
    assert [a["statusReason"][:18] for a in job["attempts"]] == [
        "Host EC2 (instance",
        "Essential containe",
    ]


@proves("one change at a time")
def test_what_is_being_changed_takes_no_other_change(world: World) -> None:
    store = world.sandbox.app.batch().store
    with store.lock:  # no tick comes between
        batch = world.sandbox.app.batch()
        detail = store.environments["ce"].detail
        detail["status"] = "UPDATING"
        answer = batch.handle(
            "POST",
            "/v1/updatecomputeenvironment",
            {},
            b'{"computeEnvironment": "ce", "state": "ENABLED"}',
        )
        detail["status"] = "VALID"
    assert (answer.status, b"being modified" in answer.body) == (400, True)


@proves("roles outlive")
def test_an_environment_without_its_profile_does_not_go(world: World) -> None:
    world.iam.create_role(RoleName="gone", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    world.iam.create_instance_profile(InstanceProfileName="gone")
    world.iam.add_role_to_instance_profile(InstanceProfileName="gone", RoleName="gone")
    world.environment("stays", instanceRole="gone")
    world.batch.update_compute_environment(computeEnvironment="stays", state="DISABLED")
    until(lambda: world.environment_detail("stays")["status"] == "VALID")
    world.iam.remove_role_from_instance_profile(InstanceProfileName="gone", RoleName="gone")
    world.batch.delete_compute_environment(computeEnvironment="stays")
    until(lambda: world.environment_detail("stays")["status"] == "INVALID")
    assert "gone has no role" in world.environment_detail("stays")["statusReason"]


@proves("policy from the start")
def test_a_policy_is_a_queues_from_the_start(world: World) -> None:
    arns = [world.batch.create_scheduling_policy(name=name)["arn"] for name in ("one", "two")]
    assert "can't get one" in refused(
        "policy from the start",
        lambda: world.batch.update_job_queue(jobQueue="q", schedulingPolicyArn=arns[0]),
    )
    world.queue("fair", "ce", schedulingPolicyArn=arns[0])
    assert "is used by" in refused(
        "policy from the start", lambda: world.batch.delete_scheduling_policy(arn=arns[0])
    )
    world.batch.update_job_queue(jobQueue="fair", schedulingPolicyArn=arns[1])
    world.batch.delete_scheduling_policy(arn=arns[0])


@proves("shares")
def test_a_share_where_there_are_shares(world: World) -> None:
    arn = world.batch.create_scheduling_policy(name="shares")["arn"]
    world.queue("shared", "ce", schedulingPolicyArn=arn)
    assert "must be specified" in refused("shares", lambda: world.submit("true", jobQueue="shared"))
    job = world.over(world.submit("true", jobQueue="shared", shareIdentifier="a"))
    assert (job["status"], job["shareIdentifier"]) == ("SUCCEEDED", "a")
    assert "scheduling policy" in refused(
        "shares", lambda: world.submit("true", shareIdentifier="a")
    )


@proves("usable memory")
def test_a_job_that_asks_for_the_nominal_memory_waits_for_ever(world: World) -> None:
    """A c6g.medium has 2048 MiB, of which 97 % at most are for jobs."""

    def submit(memory: int) -> str:
        wanted = [{"type": "MEMORY", "value": str(memory)}]
        return world.submit("true", containerOverrides={"resourceRequirements": wanted})

    nominal = submit(2048)
    assert world.over(submit(1900))["status"] == "SUCCEEDED"
    job = world.job(nominal)
    assert job["status"] == "RUNNABLE"
    assert job["statusReason"].startswith("MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT")
    world.batch.terminate_job(jobId=nominal, reason="r")


@proves("new revisions")
@proves("latest active")
def test_revisions_count_up_and_the_latest_active_one_is_meant(world: World) -> None:
    first, second = world.definition("rev"), world.definition("rev")
    assert [arn.rpartition(":")[2] for arn in (first, second)] == ["1", "2"]
    assert world.over(world.submit(jobDefinition="rev"))["jobDefinition"] == second
    world.batch.deregister_job_definition(jobDefinition=second)
    assert world.over(world.submit(jobDefinition="rev"))["jobDefinition"] == first
    assert "not ACTIVE" in refused("latest active", lambda: world.submit(jobDefinition="rev:2"))


@proves("old overrides")
def test_old_overrides_count_where_the_definition_is_old_too(world: World) -> None:
    old = {"vcpus": 1, "memory": 100, "resourceRequirements": []}
    world.definition("old-way", containerProperties=old)
    for definition, shown in (("old-way", (2, 200)), ("d", (None, None))):
        overrides = {"vcpus": 2, "memory": 200}
        job_id = world.submit("true", jobDefinition=definition, containerOverrides=overrides)
        container = world.job(job_id)["container"]
        assert (container.get("vcpus"), container.get("memory")) == shown
        world.batch.terminate_job(jobId=job_id, reason="r")
    job = world.over(world.submit(containerOverrides={"vcpus": 99, "memory": 99_999}))
    assert job["status"] == "SUCCEEDED"


@proves("array parent")
def test_an_arrays_parent_waits_while_its_children_run(world: World) -> None:
    job_id = world.submit("sleep", "60", arrayProperties={"size": 2})
    until(lambda: world.job(job_id)["arrayProperties"]["statusSummary"]["RUNNING"] == 2)
    assert world.job(job_id)["status"] == "PENDING"
    assert world.job(f"{job_id}:1")["status"] == "RUNNING"
    world.batch.terminate_job(jobId=job_id, reason="r")
    world.over(job_id)


@proves("listing")
def test_listing_tells_what_runs_unless_it_is_asked(world: World) -> None:
    done = world.submit("true", jobName="rule-done", arrayProperties={"size": 2})
    world.over(done)
    runs = world.submit("sleep", "60", jobName="rule-runs")
    until(lambda: world.job(runs)["status"] == "RUNNING")

    def names(**request: Any) -> list[str]:
        jobs = world.batch.list_jobs(**request)["jobSummaryList"]
        return [job["jobName"] for job in jobs if job["jobName"].startswith("rule-")]

    named = [{"name": "JOB_NAME", "values": ["rule-*"]}]
    assert names(jobQueue="q") == ["rule-runs"]
    assert names(jobQueue="q", jobStatus="SUCCEEDED") == ["rule-done"]
    assert names(jobQueue="q", jobStatus="FAILED", filters=named) == ["rule-runs", "rule-done"]
    assert names(arrayJobId=done) == []
    assert names(arrayJobId=done, jobStatus="SUCCEEDED") == ["rule-done"] * 2
    assert names(arrayJobId=done, jobStatus="SUCCEEDED", filters=named) == ["rule-done"] * 2
    world.batch.terminate_job(jobId=runs, reason="r")
    world.over(runs)


@proves("inactive vanish")
def test_inactive_revisions_vanish_after_180_days(world: World) -> None:
    world.definition("fades")
    kept = world.definition("fades")
    world.batch.deregister_job_definition(jobDefinition="fades:1")

    def revisions() -> list[int]:
        found = world.batch.describe_job_definitions(jobDefinitionName="fades")
        return [definition["revision"] for definition in found["jobDefinitions"]]

    world.sandbox.advance(179 * DAY_S)
    time.sleep(0.6)  # two ticks
    assert revisions() == [2, 1]
    world.sandbox.advance(2 * DAY_S)
    until(lambda: revisions() == [2])
    assert "not found" in refused(
        "what is named exists",
        lambda: world.batch.deregister_job_definition(jobDefinition="fades:1"),
    )
    world.batch.deregister_job_definition(jobDefinition=kept)
    world.sandbox.advance(181 * DAY_S)
    until(lambda: revisions() == [])
    assert world.definition("fades").endswith(":3")
