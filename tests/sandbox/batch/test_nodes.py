"""Multi-node parallel jobs, as the User Guide describes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.testing import running
from tests.sandbox.batch.ruling import cases, proves, refused
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow
NEEDS = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running(slots=4, grace_s=0.5) as sandbox:
        world = World(sandbox)
        world.environment("ce", type="EC2", allocationStrategy="BEST_FIT_PROGRESSIVE")
        world.queue("q", "ce")
        world.environment("spot")
        world.queue("spot", "spot")
        yield world


def define(world: World, script: str, nodes: int = 3, **changes: Any) -> str:
    """A multi-node definition of one group whose nodes all run the script."""
    group = {
        "targetNodes": "0:",
        "container": {
            "image": "busybox",
            "command": ["sh", "-c", script],
            "resourceRequirements": NEEDS,
        },
    }
    properties = {"numNodes": nodes, "mainNode": 0, "nodeRangeProperties": [group]} | changes
    answer = world.batch.register_job_definition(
        jobDefinitionName="mnp", type="multinode", nodeProperties=properties
    )
    return str(answer["jobDefinitionArn"])


def submit(world: World, definition: str, **request: Any) -> str:
    whole = {"jobName": "mnp", "jobQueue": "q", "jobDefinition": definition} | request
    return str(world.batch.submit_job(**whole)["jobId"])


@proves("main node")
def test_nodes_know_each_other_and_the_main_nodes_end_is_the_jobs(world: World) -> None:
    go = world.sandbox.dir / "go"
    script = (
        "env | grep AWS_BATCH_JOB_ | sort; "
        f'[ "$AWS_BATCH_JOB_NODE_INDEX" = 0 ] || sleep 60; until [ -e {go} ]; do sleep 0.1; done'
    )
    job_id = submit(world, define(world, script))
    for index in (1, 2):
        until(lambda n=index: world.job(f"{job_id}#{n}")["status"] == "RUNNING")
        until(lambda n=index: world.lines(world.job(f"{job_id}#{n}")))
    go.touch()
    job = world.over(job_id)
    assert job["status"] == "SUCCEEDED"
    assert "container" not in job
    assert job["nodeProperties"]["numNodes"] == 3
    main, first, second = (world.job(f"{job['jobId']}#{index}") for index in range(3))
    assert main["nodeDetails"] == {"nodeIndex": 0, "isMainNode": True}
    assert first["nodeDetails"] == {"nodeIndex": 1, "isMainNode": False}
    assert "AWS_BATCH_JOB_NUM_NODES=3" in world.lines(main)
    assert f"AWS_BATCH_JOB_ID={job['jobId']}#0" in world.lines(main)
    assert not [line for line in world.lines(main) if "MAIN_NODE_PRIVATE_IPV4" in line]
    address = main["container"]["networkInterfaces"][0]["privateIpv4Address"]
    for node in (first, second):
        assert f"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS={address}" in world.lines(node)
        assert (node["status"], node["statusReason"]) == ("FAILED", "Main node exited")
        assert node["startedAt"] >= main["startedAt"]
    instances = {n["container"]["containerInstanceArn"] for n in (main, first, second)}
    assert len(instances) == 3


def test_the_main_nodes_address_can_be_connected_to(world: World) -> None:
    script = r"""
import os, socket, time
address = os.environ.get("AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS")
if address is None:
    server = socket.create_server(("", 0))
    open(os.path.join(os.environ["MEETING"], "port"), "w").write(str(server.getsockname()[1]))
    print(server.accept()[0].recv(100).decode())
else:
    path = os.path.join(os.environ["MEETING"], "port")
    while not os.path.exists(path) or not (port := open(path).read()):
        time.sleep(0.02)
    socket.create_connection((address, int(port))).sendall(b"hello from a node")
"""
    meeting = world.sandbox.dir / "meeting"
    meeting.mkdir()
    group = {
        "targetNodes": "0:",
        "container": {
            "image": "python",
            "command": ["python3", "-c", script],
            "resourceRequirements": NEEDS,
            "environment": [{"name": "MEETING", "value": str(meeting)}],
        },
    }
    definition = define(world, "", 2, nodeRangeProperties=[group])
    job = world.over(submit(world, definition))
    assert job["status"] == "SUCCEEDED"
    assert world.lines(world.job(f"{job['jobId']}#0")) == ["hello from a node"]


@proves("all nodes again")
def test_a_failed_main_node_fails_the_job_and_a_failed_child_does_not(world: World) -> None:
    definition = define(world, "exit $AWS_BATCH_JOB_NODE_INDEX", 2)
    assert world.over(submit(world, definition))["status"] == "SUCCEEDED"
    other = define(world, '[ "$AWS_BATCH_JOB_NODE_INDEX" != 0 ]', 2)
    assert world.over(submit(world, other))["status"] == "FAILED"


@proves("all nodes again")
def test_the_whole_job_is_retried(world: World) -> None:
    """Also when EC2 takes the machine of one node."""
    script = '[ "$AWS_BATCH_JOB_ATTEMPT" = 2 ] || sleep 60; sleep 0.1'
    job_id = submit(world, define(world, script, 2), retryStrategy={"attempts": 2})
    until(lambda: world.job(f"{job_id}#1")["status"] == "RUNNING")
    world.sandbox.interrupt(f"{job_id}#1")
    job = world.over(job_id)
    assert (job["status"], len(job["attempts"])) == ("SUCCEEDED", 2)
    assert job["attempts"][0]["statusReason"].startswith("Host EC2 (instance i-")
    assert len(world.job(f"{job_id}#0")["attempts"]) == 2


def test_terminate_ends_all_nodes(world: World) -> None:
    job_id = submit(world, define(world, "sleep 60", 2))
    until(lambda: world.job(f"{job_id}#1")["status"] == "RUNNING")
    listed = world.batch.list_jobs(multiNodeJobId=job_id)["jobSummaryList"]
    assert [job["nodeProperties"]["nodeIndex"] for job in listed] == [0, 1]
    world.batch.terminate_job(jobId=job_id, reason="enough")
    job = world.over(job_id)
    assert (job["status"], job["statusReason"]) == ("FAILED", "enough")
    assert {world.job(f"{job_id}#{n}")["status"] for n in (0, 1)} == {"FAILED"}


def test_more_nodes_than_slots_run_when_nothing_else_does(world: World) -> None:
    world.definition("d")
    busy = world.submit("sleep", "0.3", arrayProperties={"size": 2})
    job_id = submit(world, define(world, "sleep 0.1", 6))
    later = world.submit("true")
    assert world.over(job_id)["status"] == "SUCCEEDED"
    assert world.job(busy)["status"] == "SUCCEEDED"
    assert world.over(later)["startedAt"] >= world.job(job_id)["startedAt"]
    began = world.job(later)["startedAt"]
    ends = [world.job(f"{job_id}#{index}")["stoppedAt"] for index in range(6)]
    assert sum(end <= began for end in ends) >= 3  # of 4 slots; three nodes may still run beside it


@proves("no nodes on spot")
def test_never_on_spot(world: World) -> None:
    job_id = submit(world, define(world, "true", 2), jobQueue="spot")
    until(lambda: "SPOT" in world.job(job_id).get("statusReason", ""))
    assert world.job(job_id)["status"] == "RUNNABLE"
    world.batch.terminate_job(jobId=job_id, reason="r")
    assert world.job(f"{job_id}#1")["status"] == "FAILED"


def test_more_nodes_than_the_environment_has(world: World) -> None:
    job_id = submit(world, define(world, "true", 17))
    until(lambda: "MAX_RESOURCE" in world.job(job_id).get("statusReason", ""))
    world.batch.terminate_job(jobId=job_id, reason="r")
    world.over(job_id)


def test_overrides_of_a_group_of_nodes(world: World) -> None:
    definition = define(world, "printenv WHO; sleep 60", 2)
    overrides = {
        "numNodes": 3,
        "nodePropertyOverrides": [
            {
                "targetNodes": "1:2",
                "containerOverrides": {"environment": [{"name": "WHO", "value": "child"}]},
            }
        ],
    }
    job_id = submit(world, definition, nodeOverrides=overrides)
    for index in (1, 2):
        until(lambda n=index: world.job(f"{job_id}#{n}")["status"] == "RUNNING")
        until(lambda n=index: world.lines(world.job(f"{job_id}#{n}")) == ["child"])
    world.batch.terminate_job(jobId=job_id, reason="r")
    job = world.over(job_id)
    assert job["nodeProperties"]["numNodes"] == 3
    assert world.lines(world.job(f"{job_id}#0")) == []


CONTAINER = {"image": "busybox", "resourceRequirements": NEEDS}
GROUP = {"targetNodes": "0:1", "container": CONTAINER}


def groups(*ranges: str, types: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """The node groups of those ranges, each with a type of its own if any are given."""
    containers = [CONTAINER | {"instanceType": name} for name in types] or [CONTAINER] * len(ranges)
    pairs = zip(ranges, containers, strict=True)
    return {"nodeRangeProperties": [{"targetNodes": r, "container": c} | more for r, c in pairs]}


@cases(
    ("nodes of a multi-node job", {"numNodes": 0}, "nodes of a multi-node job"),
    ("nodes of a multi-node job", {"numNodes": 1001}, "nodes of a multi-node job"),
    ("node ranges", {"mainNode": 2}, "mainNode"),
    ("node groups of a multi-node job", groups(*["0:1"] * 6), "node groups"),
    ("node ranges", groups("0"), "leave out node 1"),
    ("node ranges", groups("0:2"), "targetNodes"),
    ("node ranges", groups("all"), "targetNodes"),
    ("node ranges", {"nodeRangeProperties": [{"targetNodes": "0:1"}]}, "one of container and ecs"),
    (
        "one type for all nodes",
        groups("0", "1", types=("c6g.medium", "c6g.large")),
        "same instance",
    ),
)
def test_what_a_definition_may_not_say(
    world: World, rule: str | None, change: Any, says: str
) -> None:
    properties = {"nodes": 2, "nodeRangeProperties": [GROUP]} | change
    assert says in refused(rule, lambda: define(world, "true", **properties))


@cases(
    ("kinds of overrides", {"containerOverrides": {"command": ["x"]}}, "not for multi-node"),
    ("kinds of overrides", {"arrayProperties": {"size": 2}}, "not for multi-node"),
    ("number of nodes", {"nodeOverrides": {"numNodes": 3}}, "a range is open"),
    (
        "one type for all nodes",
        {
            "nodeOverrides": {
                "nodePropertyOverrides": [{"targetNodes": "0:", "instanceTypes": ["a", "b"]}]
            }
        },
        "takes one type",
    ),
    (
        "node ranges",
        {"nodeOverrides": {"nodePropertyOverrides": [{"targetNodes": "5"}]}},
        "the nodes are 0:1",
    ),
    (
        "kinds of overrides",
        {
            "nodeOverrides": {
                "nodePropertyOverrides": [
                    {
                        "targetNodes": "0",
                        "ecsPropertiesOverride": {"taskProperties": [{"containers": []}]},
                    }
                ]
            }
        },
        "with ecsProperties",
    ),
)
def test_what_a_request_may_not_say(world: World, rule: str | None, change: Any, says: str) -> None:
    definition = define(world, "true", 2, nodeRangeProperties=[GROUP])
    assert says in refused(rule, lambda: submit(world, definition, **change))


@proves("number of nodes")
def test_no_range_and_no_main_node_lies_behind_an_override(world: World) -> None:
    two = groups("0:1", "2:")
    late = define(world, "true", 3, **two)
    main = define(world, "true", 3, mainNode=2, **groups("0:"))
    for definition in (late, main):
        refused(
            "number of nodes", lambda d=definition: submit(world, d, nodeOverrides={"numNodes": 2})
        )
