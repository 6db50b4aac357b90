"""Jobs in containers of a real Podman, where it runs some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.testing import running
from tests.containers import Podman, podman  # noqa: F401 # a fixture
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def boxed(podman: Podman) -> Iterator[World]:  # noqa: F811 # the fixture
    """A world whose jobs are containers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in podman.environ.items():
            patch.setenv(name, value)
        with running(slots=4, grace_s=1.0, engine="podman") as sandbox:
            world = World(sandbox)
            world.environment("ce")
            world.queue("q", "ce")
            world.definition("d", containerProperties={"image": podman.image})
            yield world
    assert podman.containers() == []


def test_what_a_job_prints_and_how_it_ends(boxed: World) -> None:
    value = "several\nlines ; $(touch pwned)"
    job = boxed.over(
        boxed.submit(
            *("sh", "-c", 'echo "$A" "$AWS_BATCH_JOB_ID"; echo err >&2; exit 3'),
            containerOverrides={"environment": [{"name": "A", "value": value}]},
        )
    )
    assert (job["status"], job["container"]["exitCode"]) == ("FAILED", 3)
    assert job["statusReason"] == "Essential container in task exited"
    first, second, *rest = boxed.lines(job)
    assert (first, second, rest) == ("several", f"lines ; $(touch pwned) {job['jobId']}", ["err"])


def test_a_jobs_parameters_hold_for_its_container(boxed: World, podman: Podman) -> None:  # noqa: F811
    script = "id -u; df -m /dev/shm | tail -n 1 | tr -s ' ' | cut -d ' ' -f 2; touch /x || echo ro"
    parameters: dict[str, Any] = {
        "image": podman.image,
        "user": "1234",
        "readonlyRootFilesystem": True,
        "linuxParameters": {"sharedMemorySize": 32, "initProcessEnabled": True},
        "command": ["sh", "-c", f"({script}) 2>/dev/null"],
    }
    definition = boxed.definition("odd", containerProperties=parameters)
    job = boxed.over(boxed.submit(jobDefinition=definition))
    assert boxed.lines(job) == ["1234", "32", "ro"]


def test_a_job_that_takes_more_memory_than_it_has_is_killed(boxed: World, podman: Podman) -> None:  # noqa: F811
    definition = boxed.definition(
        "small",
        containerProperties={
            "image": podman.image,
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "20"},
            ],
            "command": ["tail", "-c", "200m", "/dev/zero"],
        },
    )
    job = boxed.over(boxed.submit(jobDefinition=definition))
    assert (job["status"], job["container"]["exitCode"]) == ("FAILED", 137)
    assert job["container"]["reason"].startswith("OutOfMemoryError: Container killed due to memory")


def test_what_is_terminated_is_asked_and_then_killed(boxed: World) -> None:
    asked = boxed.submit("sh", "-c", "trap 'echo asked; exit 4' TERM; echo on; sleep 60 & wait")
    deaf = boxed.submit("sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.1; done")
    for job_id in (asked, deaf):
        until(lambda one=job_id: boxed.job(one)["status"] == "RUNNING")
        until(lambda one=job_id: boxed.lines(boxed.job(one)) == ["on"])
        boxed.batch.terminate_job(jobId=job_id, reason="enough")
    assert boxed.over(asked)["container"]["exitCode"] == 4
    assert boxed.lines(boxed.job(asked)) == ["on", "asked"]
    assert boxed.over(deaf)["container"]["exitCode"] == 137


def test_an_image_that_there_is_not(boxed: World) -> None:
    definition = boxed.definition("bad", containerProperties={"image": "localhost/nope:1"})
    job = boxed.over(boxed.submit(jobDefinition=definition))
    assert (job["status"], job["statusReason"]) == ("FAILED", "Task failed to start")
    assert job["container"]["reason"].startswith("CannotPullContainerError")
