"""Runs in containers of a real Podman, where it runs some."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submit import api
from submit.errors import Refused
from submit.experiment import Experiment, Resources
from submit.states import RunState
from tests.containers import Podman, podman  # noqa: F401 # a fixture

from .conftest import PATIENCE_S, Home

pytestmark = pytest.mark.slow


class Boxed(Home):
    """A home whose runs are containers."""

    engine: Podman

    def experiment(self, script: str, runs: int = 1, **options: Any) -> Experiment:
        resources = Resources(vcpus=1, memory_mib=40, shm_mib=16)
        given: dict[str, Any] = {"image": self.engine.image, "resources": resources, **options}
        command = ("sh", "-c", script, "sh")
        return Experiment(command=command, seeds=tuple(range(runs)), retries=0, **given)

    def none_left(self) -> None:
        """Waits until no container is left."""
        ends = time.monotonic() + PATIENCE_S
        while self.engine.containers():
            assert time.monotonic() < ends
            time.sleep(0.1)


@pytest.fixture
def boxed(tmp_path: Path, podman: Podman) -> Iterator[Boxed]:  # noqa: F811 # the fixture
    made = Boxed(tmp_path)
    made.engine = podman
    made.environ |= podman.environ
    yield made
    made.close()


def test_what_a_run_finds_in_its_container(boxed: Boxed) -> None:
    value = 'it\'s $HOME\n"ü"'
    script = """
        grep -c . /proc/self/cgroup >/dev/null && nproc && echo "$#|$2|$RUNFLEET_PARAM_X|$MY_KEY"
        df -m /dev/shm | tail -n 1 | tr -s ' ' | cut -d ' ' -f 2
        exit $((3 * RUNFLEET_SEED))
    """
    axes = api.Axis(names=("x",), rows=((value,),))
    kept = boxed.send(
        boxed.experiment(script, 2, axes=(axes,), secrets=("MY_KEY",)), MY_KEY="s3cr3t"
    )
    assert boxed.over(kept) == {"done": 1, "failed": 1}
    assert [run.exit_code for run in boxed.runs(kept)] == [0, 3]
    text = f"4|{value}|{value}|s3cr3t"
    assert boxed.printed(kept, 1) == ["1", *text.split("\n"), "16"]
    boxed.none_left()


def test_what_is_cancelled_is_asked_to_end(boxed: Boxed) -> None:
    script = "trap 'echo asked; exit 1' TERM; echo on; sleep 60 & wait"
    kept = boxed.send(boxed.experiment(script))
    boxed.until(kept, lambda _: boxed.printed(kept) == ["on"])
    with boxed.session() as session:
        api.cancel(session, kept)
    assert boxed.over(kept) == {"cancelled": 1}
    assert boxed.printed(kept) == ["on", "asked"]
    boxed.none_left()


def test_a_run_outlives_the_supervisor_that_started_it(boxed: Boxed) -> None:
    kept = boxed.send(boxed.experiment("sleep 2; echo over"))
    boxed.until(kept, lambda progress: progress.counts.get(RunState.RUNNING, 0) > 0)
    boxed.kill_supervisor(signal.SIGKILL)
    assert boxed.over(kept) == {"done": 1}
    assert boxed.printed(kept) == ["over"]
    assert [run.attempts for run in boxed.runs(kept)] == [1]
    boxed.none_left()


def test_a_run_that_takes_too_much_memory_says_so(boxed: Boxed) -> None:
    """And leaves no file of the engine's behind."""
    kept = boxed.send(boxed.experiment("x=a; while :; do x=$x$x; done"))
    assert boxed.over(kept) == {"failed": 1}
    (run,) = boxed.runs(kept)
    assert (run.exit_code, "more memory" in run.reason) == (137, True)
    boxed.none_left()
    assert not list(boxed.path.rglob("oom"))


def test_an_image_that_there_is_not(boxed: Boxed) -> None:
    with pytest.raises(Refused, match="there is no image localhost/nope:1 here"):
        boxed.send(boxed.experiment("true", image="localhost/nope:1"))
    with boxed.session() as session:
        assert api.experiments(session) == []
