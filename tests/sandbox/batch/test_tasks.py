"""Jobs of several containers: what is refused, in which order they run, how the job ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.batch.ruling import cases, proves, refused
from tests.sandbox.conftest import World, trust, until

pytestmark = pytest.mark.slow


def container(name: str, *command: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": "busybox",
        "command": list(command) or ["true"],
        "resourceRequirements": [
            {"type": "VCPU", "value": "1"},
            {"type": "MEMORY", "value": "100"},
        ],
    } | changes


def sh(name: str, script: str, **changes: Any) -> dict[str, Any]:
    return container(name, "sh", "-c", script, **changes)


def after(name: str, condition: str) -> dict[str, Any]:
    return {"dependsOn": [{"containerName": name, "condition": condition}]}


def register(world: World, *containers: Any, name: str = "task", **task: Any) -> str:
    answer = world.batch.register_job_definition(
        jobDefinitionName=name,
        type="container",
        ecsProperties={"taskProperties": [{"containers": list(containers), **task}]},
    )
    return str(answer["jobDefinitionArn"])


def run(world: World, *containers: Any, **request: Any) -> tuple[Any, dict[str, Any]]:
    """The job, once it is over, and its containers by name."""
    definition = register(world, *containers)
    job_id = world.batch.submit_job(
        jobName="j", jobQueue="wide", jobDefinition=definition, **request
    )["jobId"]
    job = world.over(job_id)
    (task,) = job["ecsProperties"]["taskProperties"]
    return job, {one["name"]: one for one in task["containers"]}


def lines(world: World, one: dict[str, Any]) -> list[str]:
    return world.lines({"container": one})


@pytest.fixture(scope="module", autouse=True)
def wide(world: World) -> None:
    """A queue whose instances hold several containers."""
    world.environment("wide", instanceTypes=["c6g.2xlarge"])
    world.queue("wide", "wide")


SIDE = {"essential": False}


@cases(
    ("containers per task", ([], {}), "containers per task"),
    ("containers per task", ([container(f"c{n}") for n in range(11)], {}), "is 11"),
    ("containers of a task", ([container("a"), container("a")], {}), "a name of its own"),
    ("containers of a task", ([container("a b")], {}), "not legal"),
    ("containers of a task", ([container("a", **SIDE)], {}), "one container must be essential"),
    ("order of containers", ([container("a", **after("b", "START"))], {}), "which is not there"),
    (
        "order of containers",
        ([container("a"), container("b", **after("a", "HEALTHY"))], {}),
        "START, COMPLETE, SUCCESS",
    ),
    (
        "order of containers",
        ([container("a"), container("b", **after("a", "COMPLETE"))], {}),
        "essential container a",
    ),
    ("order of containers", ([container("a", **after("a", "START"))], {}), "depend on each other"),
    (
        "order of containers",
        ([container("a", **after("b", "START")), container("b", **after("a", "START"))], {}),
        "a, b depend on each other",
    ),
    ("image and resources", ([container("a", resourceRequirements=[])], {}), "needs VCPU"),
    ("image and resources", ([container("a", image="")], {}), "image must be provided"),
    ("startTimeout and stopTimeout", ([container("a", stopTimeout=1)], {}), "stopTimeout is 1"),
    ("modes", ([container("a")], {"ipcMode": "shared"}), "ipcMode"),
    ("modes", ([container("a")], {"pidMode": "shared"}), "pidMode"),
    ("not on EC2", ([container("a")], {"ephemeralStorage": {"sizeInGiB": 30}}), "not for EC2"),
    (
        "secrets need a role",
        ([container("a", secrets=[{"name": "S", "valueFrom": "arn:x"}])], {}),
        "executionRoleArn",
    ),
    ("volumes", ([container("a", mountPoints=[{"sourceVolume": "v"}])], {}), "no volume"),
)
def test_definitions_that_aws_refuses(
    world: World, rule: str | None, change: tuple[list[Any], dict[str, Any]], says: str
) -> None:
    containers, task = change
    assert says in refused(rule, lambda: register(world, *containers, name="bad", **task))
    assert "bad" not in world.sandbox.app.batch().store.definitions


@proves("tasks of ecsProperties", "kinds of definitions")
def test_a_definition_has_one_task_and_one_kind_of_properties(world: World) -> None:
    task = {"containers": [container("a")]}
    for tasks in ([], [task, task]):
        assert "tasks of ecsProperties" in refused(
            "tasks of ecsProperties",
            lambda tasks=tasks: world.batch.register_job_definition(
                jobDefinitionName="bad", type="container", ecsProperties={"taskProperties": tasks}
            ),
        )
    both = {"ecsProperties": {"taskProperties": [task]}}
    assert "exclude each other" in refused(
        "kinds of definitions", lambda: world.definition("bad", **both)
    )


@proves("kinds of overrides", "reserved variables")
def test_overrides_are_of_the_definitions_kind_and_name_its_containers(world: World) -> None:
    definition = register(world, container("a"))

    def submit(**request: Any) -> None:
        world.batch.submit_job(jobName="j", jobQueue="wide", jobDefinition=definition, **request)

    def override(*containers: Any) -> dict[str, Any]:
        return {"taskProperties": [{"containers": list(containers)}]}

    assert "containerProperties" in refused(
        "kinds of overrides", lambda: submit(containerOverrides={"command": ["x"]})
    )
    assert "'b'" in refused(
        "kinds of overrides", lambda: submit(ecsPropertiesOverride=override({"name": "b"}))
    )
    reserved = {"name": "a", "environment": [{"name": "AWS_BATCH_X", "value": "1"}]}
    assert "reserved" in refused(
        "reserved variables", lambda: submit(ecsPropertiesOverride=override(reserved))
    )
    assert "ecsProperties" in refused(
        "kinds of overrides",
        lambda: world.submit(ecsPropertiesOverride=override({"name": "default"})),
    )


def test_containers_begin_in_their_order_each_with_its_own_variables_and_log(world: World) -> None:
    job, found = run(
        world,
        sh("main", "echo main $WHO $AWS_BATCH_JOB_ATTEMPT", **after("prepare", "SUCCESS")),
        sh("prepare", "sleep 0.2; echo prepared", essential=False),
        ecsPropertiesOverride={
            "taskProperties": [
                {"containers": [{"name": "main", "environment": [{"name": "WHO", "value": "me"}]}]}
            ]
        },
    )
    assert job["status"] == "SUCCEEDED"
    assert [found[name]["exitCode"] for name in ("main", "prepare")] == [0, 0]
    assert lines(world, found["main"]) == ["main me 1"]
    assert lines(world, found["prepare"]) == ["prepared"]
    streams = {found[name]["logStreamName"] for name in found}
    task = job["ecsProperties"]["taskProperties"][0]["taskArn"].rpartition("/")[2]
    assert streams == {f"task/main/{task}", f"task/prepare/{task}"}
    (attempt,) = job["attempts"]
    assert [c["exitCode"] for c in attempt["taskProperties"][0]["containers"]] == [0, 0]
    assert "container" not in job


@proves("containers of a task")
def test_the_end_of_an_essential_container_ends_the_others(world: World) -> None:
    job, found = run(
        world,
        sh("main", "exit 3", **after("side", "START")),
        container("side", "sleep", "60", essential=False),
    )
    assert (job["status"], job["statusReason"]) == ("FAILED", "Essential container in task exited")
    assert (found["main"]["exitCode"], found["side"]["exitCode"]) == (3, 143)


def test_the_end_of_another_container_does_not_count(world: World) -> None:
    job, found = run(
        world,
        container("main", "true", **after("side", "COMPLETE")),
        container("side", "false", essential=False),
    )
    assert job["status"] == "SUCCEEDED"
    assert found["side"]["exitCode"] == 1


@pytest.mark.parametrize("side", [["false"], ["/no/such/program"]])
def test_what_waits_for_a_success_that_never_comes_does_not_start(
    world: World, side: list[str]
) -> None:
    job, found = run(
        world,
        container("main", "true", **after("side", "SUCCESS")),
        container("side", *side, essential=False),
    )
    assert (job["status"], job["statusReason"]) == ("FAILED", "Task failed to start")
    assert "side did not reach SUCCESS" in found["main"]["reason"]
    assert "exitCode" not in found["main"]


def test_a_container_gives_up_on_one_that_takes_too_long(world: World) -> None:
    job, found = run(
        world,
        container("main", "true", **after("side", "COMPLETE")),
        container("side", "sleep", "60", essential=False, startTimeout=2),
    )
    assert job["status"] == "FAILED"
    assert "side did not reach COMPLETE" in found["main"]["reason"]


def test_terminate_stops_what_runs_and_what_waits(world: World) -> None:
    definition = register(
        world,
        container("main", "true", **after("side", "COMPLETE")),
        container("side", "sleep", "60", essential=False),
    )
    job_id = world.batch.submit_job(jobName="j", jobQueue="wide", jobDefinition=definition)["jobId"]
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    world.batch.terminate_job(jobId=job_id, reason="enough")
    job = world.over(job_id)
    assert (job["status"], job["statusReason"]) == ("FAILED", "enough")
    assert len(job["attempts"]) == 1


def test_a_retry_looks_at_the_container_that_decided(world: World) -> None:
    rules = [{"onExitCode": "3", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]
    job, _ = run(
        world,
        sh("main", "exit 3"),
        retryStrategy={"attempts": 2, "evaluateOnExit": rules},
    )
    assert len(job["attempts"]) == 2


def test_what_the_containers_ask_for_is_added_up(world: World) -> None:
    """A c6g.2xlarge has eight vCPUs: two containers of five never fit, each alone would."""
    five = [{"type": "VCPU", "value": "5"}, {"type": "MEMORY", "value": "100"}]
    definition = register(
        world,
        container("a", resourceRequirements=five),
        container("b", resourceRequirements=five),
    )
    job_id = world.batch.submit_job(jobName="j", jobQueue="wide", jobDefinition=definition)["jobId"]
    until(lambda: "JOB_RESOURCE_REQUIREMENT" in world.job(job_id).get("statusReason", ""))
    world.batch.terminate_job(jobId=job_id, reason="r")


def test_secrets_go_to_the_container_that_names_them(world: World) -> None:
    secrets = world.sandbox.client("secretsmanager")
    arn = secrets.create_secret(Name="task-secret", SecretString="s3cret")["ARN"]
    world.iam.create_role(
        RoleName="execution", AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com")
    )
    statement = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": arn}
    world.iam.put_role_policy(
        RoleName="execution",
        PolicyName="read",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    definition = register(
        world,
        sh("main", 'echo "main ${TOKEN:-none}"', **after("side", "COMPLETE")),
        sh(
            "side",
            'echo "side $TOKEN"',
            essential=False,
            secrets=[{"name": "TOKEN", "valueFrom": arn}],
        ),
        executionRoleArn="arn:aws:iam::123456789012:role/execution",
    )
    job_id = world.batch.submit_job(jobName="j", jobQueue="wide", jobDefinition=definition)["jobId"]
    found = world.over(job_id)["ecsProperties"]["taskProperties"][0]["containers"]
    assert [lines(world, one) for one in found] == [["main none"], ["side s3cret"]]


def test_an_array_and_nodes_of_tasks(world: World) -> None:
    definition = register(world, sh("main", "exit $AWS_BATCH_JOB_ARRAY_INDEX"))
    job_id = world.batch.submit_job(
        jobName="j", jobQueue="wide", jobDefinition=definition, arrayProperties={"size": 2}
    )["jobId"]
    world.over(job_id)
    assert [world.job(f"{job_id}:{n}")["status"] for n in range(2)] == ["SUCCEEDED", "FAILED"]
    world.environment("own", type="EC2", allocationStrategy="BEST_FIT_PROGRESSIVE")
    world.queue("nodes", "own")
    small = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "10"}]
    task = {
        "containers": [sh("main", "echo $AWS_BATCH_JOB_NODE_INDEX", resourceRequirements=small)]
    }
    world.batch.register_job_definition(
        jobDefinitionName="nodes",
        type="multinode",
        nodeProperties={
            "numNodes": 2,
            "mainNode": 0,
            "nodeRangeProperties": [
                {"targetNodes": "0:", "ecsProperties": {"taskProperties": [task]}}
            ],
        },
    )
    job_id = world.batch.submit_job(jobName="j", jobQueue="nodes", jobDefinition="nodes")["jobId"]
    assert world.over(job_id)["status"] == "SUCCEEDED"
    (found,) = world.job(f"{job_id}#0")["ecsProperties"]["taskProperties"][0]["containers"]
    assert lines(world, found) == ["0"]
