"""What jobs wait for: whole jobs, one child after the other, child by child."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.batch import dependencies, states
from sandbox.batch.account import Account
from sandbox.batch.store import Array, Job, Store
from tests.sandbox.batch.ruling import cases, proves, refused
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow
SEQUENTIAL = [{"type": "SEQUENTIAL"}]


@proves("one after the other")
@proves("one after the other")
def test_sequential_children_run_one_after_the_other(world: World) -> None:
    job_id = world.submit("sleep", "0.05", arrayProperties={"size": 4}, dependsOn=SEQUENTIAL)
    assert world.over(job_id)["status"] == "SUCCEEDED"
    children = [world.job(f"{job_id}:{index}") for index in range(4)]
    for earlier, later in pairwise(children):
        assert earlier["stoppedAt"] <= later["startedAt"]


def test_after_a_failed_child_the_rest_of_a_sequence_fails(world: World) -> None:
    job_id = world.submit(
        "sh", "-c", "[ $AWS_BATCH_JOB_ARRAY_INDEX != 1 ]", arrayProperties={"size": 5},
        dependsOn=SEQUENTIAL,
    )  # fmt: skip
    job = world.over(job_id)
    summary = job["arrayProperties"]["statusSummary"]
    assert (summary["SUCCEEDED"], summary["FAILED"]) == (1, 4)
    assert world.job(f"{job_id}:4")["statusReason"] == "Dependent Job failed"


@proves("one after the other")
def test_child_by_child(world: World) -> None:
    """N_TO_N: a child waits for its twin alone, and fails with it."""
    script = "case $AWS_BATCH_JOB_ARRAY_INDEX in 0) sleep 30;; 1) exit 1;; esac"
    first = world.submit("sh", "-c", script, arrayProperties={"size": 3})
    depends = [{"jobId": world.job(first)["jobArn"], "type": "N_TO_N"}]
    second = world.submit("true", arrayProperties={"size": 3}, dependsOn=depends)
    until(lambda: world.job(f"{second}:2")["status"] == "SUCCEEDED")
    until(lambda: world.job(f"{second}:1")["status"] == "FAILED")
    assert world.job(f"{second}:0")["status"] == "PENDING"
    world.batch.terminate_job(jobId=first, reason="r")
    world.over(second)
    assert world.job(f"{second}:0")["statusReason"] == "Dependent Job failed"


def test_a_held_array_can_be_ended(world: World) -> None:
    first = world.submit("sleep", "30", arrayProperties={"size": 2})
    depends = [{"jobId": first, "type": "N_TO_N"}]
    second = world.submit("true", arrayProperties={"size": 2}, dependsOn=depends)
    until(lambda: world.job(f"{second}:0")["status"] == "PENDING")
    world.batch.cancel_job(jobId=second, reason="no")
    assert world.over(second)["arrayProperties"]["statusSummary"]["FAILED"] == 2
    world.batch.terminate_job(jobId=first, reason="r")
    world.over(first)


TWO = {"arrayProperties": {"size": 2}}
ARRAY = "the job id of an array of two"


@cases(
    ("dependencies", {"dependsOn": SEQUENTIAL}, "for array jobs"),
    ("dependencies", {"dependsOn": [{}]}, "jobId is required"),
    ("dependencies", {"dependsOn": [{"type": "N_TO_N"}], **TWO}, "jobId is required"),
    (
        "dependencies",
        {"dependsOn": [{"type": "N_TO_N", "jobId": ARRAY}], "arrayProperties": {"size": 3}},
        "same size",
    ),
    (
        "dependencies",
        {"dependsOn": [{"type": "SEQUENTIAL", "jobId": ARRAY}], **TWO},
        "own children",
    ),
    ("what is named exists", {"dependsOn": [{"jobId": "nope"}]}, "does not exist"),
    ("dependencies per job", {"dependsOn": [{"jobId": ARRAY}] * 21}, "20"),
)
def test_what_is_refused(world: World, rule: str | None, change: Any, says: str) -> None:
    array = world.submit("true", **TWO)
    depends = [
        item | {"jobId": array} if item.get("jobId") == ARRAY else item
        for item in change["dependsOn"]
    ]
    assert says in refused(rule, lambda: world.submit("true", **change | {"dependsOn": depends}))
    world.over(array)


def job(store: Store, name: str, size: int, depends: list[dict[str, str]]) -> Job:
    spec = {"jobName": name, "dependsOn": depends}
    made = Job(name, f"arn:{name}", spec, 0)
    made.array = Array(size)
    store.jobs[name] = made
    made.move(states.PENDING)
    made.array.move_unstarted(states.PENDING if depends else states.RUNNABLE)
    return made


@given(
    size=st.integers(2, 12),
    ends=st.lists(st.tuples(st.integers(0, 11), st.booleans()), max_size=24),
    sequential=st.booleans(),
)
def test_counts_add_up_whatever_ends_first(
    size: int, ends: list[tuple[int, bool]], *, sequential: bool
) -> None:
    """A child is RUNNABLE exactly when all that it waits for has succeeded."""
    store = Store(Account("us-east-1"))
    first = job(store, "first", size, [])
    depends = [{"jobId": "first", "type": "N_TO_N"}, *(SEQUENTIAL if sequential else [])]
    second = job(store, "second", size, depends)
    assert first.array
    assert second.array
    done: dict[int, bool] = {}
    for index, good in ends:
        if index >= size or index in done:
            continue
        done[index] = good
        child = first.child(index)
        for status in (states.STARTING, states.RUNNING):
            child.move(status)
        child.move(states.SUCCEEDED if good else states.FAILED)
        dependencies.settle(store, second, 0)
        dependencies.settle(store, second, 0)
    counts: dict[str, int] = {}
    for index in range(size):
        status = second.look_at_child(index).status
        counts[status] = counts.get(status, 0) + 1
        if not sequential or index == 0:
            wanted = {None: "PENDING", True: "RUNNABLE", False: "FAILED"}[done.get(index)]
            assert status == ("PENDING" if not done else wanted)
    assert {key: n for key, n in second.array.counts.items() if n} == (
        counts if done else {"PENDING": size}
    )
