"""Runs on several machines: what is asked of Batch, and what comes of it in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from sandbox.testing import running
from submit import api
from submit.asked import Asked, make_experiment
from submit.errors import WrongUse
from submit.experiment import Experiment, Resources, experiment_id
from submit.states import RunState

from .fake import submission
from .test_aws import World

SHOW = """
echo node $RUNFLEET_NODE of $RUNFLEET_NODES, seed $RUNFLEET_SEED, rank $PET_NODE_RANK/$PET_NNODES
[ "$MASTER_ADDR" = "${AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS:-127.0.0.1}" ] || exit 9
[ "$PET_MASTER_ADDR:$PET_MASTER_PORT" = "$MASTER_ADDR:29500" ] || exit 9
if [ "$RUNFLEET_NODE" = 0 ]; then sleep 1; exit "$1"; else sleep 60; fi
"""


def experiment(status: int = 0, nodes: int = 2) -> Experiment:
    """The main node ends with that status; the other would go on for a minute."""
    return Experiment(
        command=("sh", "-c", SHOW, "sh", str(status)),
        seeds=(1, 2),
        image="busybox",
        resources=Resources(nodes=nodes),
        retries=0,
    )


def test_each_run_is_a_job_of_its_own() -> None:
    planned = submission(experiment())
    assert [(job.size, job.runs) for job in planned.jobs] == [(1, "0"), (1, "1")]
    request = planned.definition.request
    assert request["type"] == "multinode"
    assert "containerProperties" not in request
    assert request["nodeProperties"]["numNodes"] == 2
    assert planned.definition.image == "busybox"
    for job in planned.jobs:
        assert "containerOverrides" not in job.request
        assert "arrayProperties" not in job.request
        (every,) = job.request["nodeOverrides"]["nodePropertyOverrides"]
        assert every["targetNodes"] == "0:"


def test_one_node_is_what_none_said_is() -> None:
    asked = Asked(command=("x",))
    one = msgspec.structs.replace(asked, nodes=1)
    assert experiment_id(make_experiment(one)) == experiment_id(make_experiment(asked))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running(slots=2, grace_s=0.2) as sandbox, pytest.MonkeyPatch.context() as patch:
        for name, value in sandbox.env().items():
            patch.setenv(name, value)
        yield World(sandbox, type="EC2", allocationStrategy="BEST_FIT_PROGRESSIVE")


@pytest.mark.slow
def test_runs_on_two_machines(world: World, tmp_path: Path) -> None:
    with world.session(tmp_path) as session:
        delivery = api.send(session, api.plan(session, experiment(), "q"))
        assert delivery.sent == 2
        progress = api.wait(session, delivery.kept)
        assert progress.counts == {RunState.DONE: 2}
        views = api.runs(session, progress)
        assert [(view.exit_code, view.attempts) for view in views] == [(0, 1), (0, 1)]
        for view in views:
            seed = view.run.seed
            lines = [line.text for line in api.log(session, progress, view)]
            assert lines == [f"node 0 of 2, seed {seed}, rank 0/2"]
            other = [line.text for line in api.log(session, progress, view, node=1)]
            assert other == [f"node 1 of 2, seed {seed}, rank 1/2"]
        with pytest.raises(WrongUse, match="run 0 has no node 2: it has 2, from 0 to 1"):
            list(api.log(session, progress, views[0], node=2))
        # The same again is found, and sent by nobody twice.
        again = api.send(session, api.plan(session, experiment(), "q"))
        assert (again.sent, again.known) == (0, 2)


@pytest.mark.slow
def test_the_main_node_decides(world: World, tmp_path: Path) -> None:
    with world.session(tmp_path) as session:
        delivery = api.send(session, api.plan(session, experiment(status=3), "q"))
        progress = api.wait(session, delivery.kept)
        assert progress.counts == {RunState.FAILED: 2}
        assert {view.exit_code for view in api.runs(session, progress)} == {3}
    # Somebody else who sends the same adopts what stands.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with world.session(elsewhere) as session:
        adopted = api.send(session, api.plan(session, experiment(status=3), "q"))
        assert (adopted.sent, adopted.adopted) == (0, 2)


@pytest.mark.slow
def test_a_run_on_one_machine_has_the_node_0(world: World, tmp_path: Path) -> None:
    with world.session(tmp_path) as session:
        alone = Experiment(command=("echo", "alone"), image="busybox")
        progress = api.wait(session, api.send(session, api.plan(session, alone, "q")).kept)
        (view,) = api.runs(session, progress)
        assert [one.text for one in api.log(session, progress, view, node=0)] == ["alone"]
        with pytest.raises(WrongUse, match="run 0 has no node 1: it is on one machine"):
            list(api.log(session, progress, view, node=1))
