"""Runs in containers, with a `docker` that keeps its command lines and runs the commands here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from submit import api
from submit.errors import Refused, ServiceFailed, SubmitError
from submit.experiment import Experiment, Resources
from submit.fleet import LOCAL
from submit.local.engine import Engine, find_engine, remove_command, run_command
from submit.local.records import CLAIMED, Attempt, Seat, Task

from .conftest import Home

STAND_IN = """#!{python}
import json, os, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if words[0] in ("info", "rm"):
    sys.exit(0 if {up} else "cannot connect")
if words[:2] == ["image", "inspect"]:
    if words[-1] != "ppo:1" or not {up}:
        sys.exit("no such image")
    print("sha256:abc")
    sys.exit()
if words[0] == "pull":
    sys.exit("manifest for " + words[1] + " not found")
at = words.index("sha256:abc")
env = dict(PATH=os.environ["PATH"])
for flag, value in zip(words[:at], words[1:at]):
    if flag == "--env":
        name, equals, text = value.partition("=")
        env[name] = text if equals else os.environ[name]
os.execvpe(words[at + 1], words[at + 1 :], env)
"""


def stand_in(home: Home, name: str, *, up: bool) -> Path:
    """An engine first on PATH; where its command lines are kept."""
    log = home.path / f"{name}.log"
    program = home.path / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(STAND_IN.format(python=sys.executable, log=str(log), up=up))
    program.chmod(0o700)
    home.environ["PATH"] = f"{program.parent}:/usr/bin:/bin"
    return log


@pytest.fixture
def docker(home: Home, request: pytest.FixtureRequest) -> Path:
    """Where its command lines are kept."""
    home.environ["RUNFLEET_ENGINE"] = "docker"
    return stand_in(home, "docker", up=getattr(request, "param", True))


def calls(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def experiment(script: str = "", **options: Any) -> Experiment:
    resources = Resources(vcpus=1, memory_mib=50)
    given: dict[str, Any] = {"image": "ppo:1", "resources": resources, "retries": 0, **options}
    return Experiment(command=("sh", "-c", script), **given)


@pytest.mark.slow
def test_a_run_in_an_image_ends_as_its_command_does(home: Home, docker: Path) -> None:
    value = "s3cr3t-41bd"
    script = (
        'echo "$RUNFLEET_SEED $AWS_BATCH_JOB_ARRAY_INDEX ${#MY_KEY} $HOME"; exit "$RUNFLEET_SEED"'
    )
    kept = home.send(experiment(script, seeds=(0, 3), secrets=("MY_KEY",)), MY_KEY=value)
    assert home.over(kept) == {"done": 1, "failed": 1}
    assert home.printed(kept, 1) == [f"3 1 {len(value)} "]
    assert home.runs(kept)[1].exit_code == 3
    assert value not in docker.read_text()
    runs = [call for call in calls(docker) if call[0] == "run"]
    names = {call[call.index("--name") + 1] for call in runs}
    assert len(names) == 2
    for call in runs:
        assert "MY_KEY" in call
        assert call[call.index("--memory") + 1] == "50m"


@pytest.mark.slow
def test_an_image_that_does_not_exist_is_told_before_anything_is_made(
    home: Home, docker: Path
) -> None:
    with pytest.raises(SubmitError) as caught:
        home.send(experiment(image="nope:1"))
    assert isinstance(caught.value, Refused)
    assert "manifest for nope:1 not found" in caught.value.message
    with home.session() as session:
        assert api.experiments(session) == []
    assert home.supervisor() is None
    assert ["pull", "nope:1"] in calls(docker)


@pytest.mark.slow
@pytest.mark.parametrize("docker", [False], indirect=True)
def test_an_engine_that_does_not_answer_is_told(home: Home, docker: Path) -> None:
    with pytest.raises(ServiceFailed) as caught:
        home.send(experiment())
    assert "docker does not answer" in caught.value.message
    assert docker.exists()


@pytest.mark.slow
def test_of_two_engines_the_one_that_answers_takes_all_runs(home: Home) -> None:
    docker, podman = stand_in(home, "docker", up=False), stand_in(home, "podman", up=True)
    assert home.over(home.send(experiment("exit 0", seeds=(1, 2)))) == {"done": 2}
    assert {call[0] for call in calls(docker)} == {"info"}
    assert [call[0] for call in calls(podman)].count("run") == 2


def test_an_engine_may_be_named(home: Home) -> None:
    stand_in(home, "docker", up=True)
    stand_in(home, "podman", up=True)
    assert find_engine(home.environ).name == "docker"
    assert find_engine({**home.environ, "RUNFLEET_ENGINE": "podman"}).name == "podman"
    with pytest.raises(Refused, match="RUNFLEET_ENGINE is lxc"):
        find_engine({**home.environ, "RUNFLEET_ENGINE": "lxc"})
    with pytest.raises(Refused, match="this machine has no podman"):
        find_engine({"PATH": "", "RUNFLEET_ENGINE": "podman"})


def test_what_is_removed_is_not_waited_for() -> None:
    assert remove_command(Engine("/bin/docker"), "x") == ["/bin/docker", "rm", "--force", "x"]
    assert remove_command(Engine("/bin/podman"), "x")[1:-1] == ["rm", "--force", "--time", "0"]


def test_without_an_engine_there_is_no_image(home: Home) -> None:
    home.environ["PATH"] = str(home.path)
    with home.session() as session:
        plan = api.plan(session, experiment(), LOCAL)
        with pytest.raises(Refused, match="neither docker nor podman"):
            api.send(session, plan)


def test_cores_and_gpus_are_those_of_the_seat() -> None:
    task = Task(
        seq=1,
        name="abc-0-0-x",
        definition={"containerProperties": {"command": ["sh"], "resourceRequirements": []}},
        request={},
        size=1,
        created_ms=0,
        image="sha256:abc",
    )
    attempt = Attempt(seq=1, child=0, number=2, state=CLAIMED)
    seat = Seat(cores=(2, 5), gpus=(0, 3), memory_mib=100)
    docker = run_command(Engine("/usr/bin/docker"), task, attempt, seat, {"A": "b c"})
    podman = run_command(Engine("/usr/bin/podman"), task, attempt, seat, {})
    assert docker[docker.index("--cpuset-cpus") + 1] == "2,5"
    assert docker[docker.index("--gpus") + 1] == '"device=0,3"'
    assert docker[docker.index("--name") + 1] == "runfleet-abc-0-0-x-0-2"
    assert docker[docker.index("--env") + 1] == "A=b c"
    assert [word for word in podman if word.startswith("nvidia")] == [
        "nvidia.com/gpu=0",
        "nvidia.com/gpu=3",
    ]
    assert docker[-2:] == ["sha256:abc", "sh"]
