"""Jobs as containers: how they are asked for, what of them is seen, that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sandbox.batch import arguments
from sandbox.cli import main
from sandbox.errors import SandboxError
from sandbox.state import State, last_state, read_state
from sandbox.testing import running
from tests.sandbox import engine
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow
CONTAINER: dict[str, Any] = {
    "image": "team/train:1",
    "command": ["python", "-c", "print(';$HOME')"],
    "resourceRequirements": [
        {"type": "VCPU", "value": "2"},
        {"type": "MEMORY", "value": "512"},
        {"type": "GPU", "value": "1"},
    ],
    "linuxParameters": {
        "initProcessEnabled": True,
        "sharedMemorySize": 128,
        "maxSwap": 100,
        "swappiness": 10,
        "tmpfs": [{"containerPath": "/fast", "size": 64, "mountOptions": ["noexec"]}],
        "devices": [{"hostPath": "/dev/fuse", "permissions": ["READ", "WRITE"]}],
    },
    "privileged": True,
    "readonlyRootFilesystem": True,
    "user": "1000:1000",
    "ulimits": [{"name": "nofile", "softLimit": 10, "hardLimit": 20}],
    "volumes": [{"name": "own"}, {"name": "host", "host": {"sourcePath": "/data"}}],
    "mountPoints": [
        {"sourceVolume": "own", "containerPath": "/own"},
        {"sourceVolume": "host", "containerPath": "/data", "readOnly": True},
    ],
}


def test_each_member_is_the_engines_own_option() -> None:
    variables = arguments.Variables({"TOKEN": "s3cret"}, {"PATH": "/bin"})
    words = arguments.create(
        "docker",
        name="runfleet-t.1",
        label="/work",
        container=CONTAINER,
        variables=variables,
        env_file="/work/env",
    )
    assert " ".join(words[:-3]) == (
        "docker create --name runfleet-t.1 --label runfleet.sandbox=/work --pull never "
        "--log-driver json-file --network host --cpu-shares 2048 --memory 512m --gpus 1 --init "
        "--shm-size 128m --memory-swap 612m --memory-swappiness 10 "
        "--tmpfs /fast:size=64m,noexec --device /dev/fuse:/dev/fuse:rw --privileged --read-only "
        "--user 1000:1000 --ulimit nofile=10:20 --volume runfleet-t-own:/own "
        "--volume /data:/data:ro --env-file /work/env --env TOKEN team/train:1"
    )
    assert words[-3:] == CONTAINER["command"]
    assert "s3cret" not in " ".join(words)
    assert arguments.volume_names("runfleet-t.1", CONTAINER) == ["runfleet-t-own"]


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "DOCKER_HOST", "LD_PRELOAD", "http_proxy", "GODEBUG"]
)
def test_a_jobs_variable_does_not_steer_the_engine(name: str) -> None:
    found = arguments.variables({name: "x", "A": "1\n2"}, frozenset())
    assert found == arguments.Variables({"A": "1\n2"}, {name: "x"})
    assert name in str(arguments.variables({name: "x\ny"}, frozenset()))
    assert "another name" in str(arguments.variables({name: "x"}, frozenset({name})))


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
def test_a_name_that_no_variable_can_have_is_refused(name: str) -> None:
    assert "can't be handed" in str(arguments.variables({name: "x"}, frozenset()))


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("engine")
    engine.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        yield folder


@pytest.fixture(scope="module")
def boxed(stand_in: Path) -> Iterator[World]:
    """A world whose jobs are containers."""
    assert stand_in.exists()
    with running(slots=4, grace_s=1.0, engine="docker") as sandbox:
        world = World(sandbox)
        world.environment("ce")
        world.queue("q", "ce")
        world.definition("d")
        yield world


def test_a_job_is_a_container_from_its_making_to_its_removal(boxed: World, stand_in: Path) -> None:
    secret = "several\nlines ; $(touch pwned)"
    before = len(engine.calls(stand_in))
    job_id = boxed.submit(
        "sh",
        "-c",
        'printf "%s\\n" "$GREETING" "$HOME"; exit 3',
        containerOverrides={
            "environment": [
                {"name": "GREETING", "value": secret},
                {"name": "HOME", "value": "/root"},
            ]
        },
    )
    job = boxed.over(job_id)
    assert (job["status"], job["container"]["exitCode"]) == ("FAILED", 3)
    assert boxed.lines(job) == ["several", "lines ; $(touch pwned)", "/root"]
    made = engine.calls(stand_in)[before:]
    assert [words[0] for words in made if words[0] not in {"wait", "image"}] == [
        *("create", "start", "logs", "inspect", "rm")
    ]
    create = next(words for words in made if words[0] == "create")
    assert create[-4:] == ["busybox", "sh", "-c", 'printf "%s\\n" "$GREETING" "$HOME"; exit 3']
    assert secret not in str(made)
    assert {"GREETING", "AWS_BATCH_JOB_ID"} <= set(create)
    assert engine.left(stand_in) == []
    assert not list((boxed.sandbox.dir / "work").glob("*"))


def test_terminate_stops_the_container_and_then_kills_it(boxed: World, stand_in: Path) -> None:
    deaf = "trap '' TERM; while :; do sleep 0.05; done"
    job_id = boxed.submit("sh", "-c", deaf)
    until(lambda: boxed.job(job_id)["status"] == "RUNNING")
    boxed.batch.terminate_job(jobId=job_id, reason="enough")
    job = boxed.over(job_id)
    assert (job["statusReason"], job["container"]["exitCode"]) == ("enough", 137)
    assert ["stop", "-t", "1"] in [words[:3] for words in engine.calls(stand_in)]
    assert engine.left(stand_in) == []


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"containerProperties": {"image": "missing/one"}}, "CannotPullContainerError"),
        ({"containerProperties": {"command": ["/no/such"]}}, "CannotStartContainerError"),
        (
            {"containerProperties": {"environment": [{"name": "PATH", "value": "a\nb"}]}},
            "CannotCreateContainerError",
        ),
    ],
    ids=str,
)
def test_what_the_engine_refuses_is_the_jobs_reason(
    boxed: World, stand_in: Path, request_: dict[str, Any], says: str
) -> None:
    definition = boxed.definition("bad", **request_)
    job = boxed.over(boxed.submit(jobDefinition=definition))
    assert (job["status"], job["statusReason"]) == ("FAILED", "Task failed to start")
    assert says in job["container"]["reason"]
    assert engine.left(stand_in) == []


def test_without_an_engine_up_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    answer = CliRunner().invoke(main, ["up", "--executor", "podman", "--dir", str(tmp_path / "sb")])
    assert isinstance(answer.exception, SandboxError)
    assert "podman can't be used" in str(answer.exception)
    assert not (tmp_path / "sb").exists()


@pytest.mark.parametrize("end", ["down", "server", "both"])
def test_no_container_outlives_its_sandbox(stand_in: Path, tmp_path: Path, end: str) -> None:
    """Told to end, killed, and killed together with its guard: then its reaper removes it."""
    import psutil  # noqa: PLC0415 # only here

    folder = tmp_path / "sb"
    _cli("up", "--dir", str(folder), "--executor", "docker", "--stop-timeout", "0.5")
    state = read_state(folder)
    assert state
    try:
        _sleep_in(folder, state)
        until(lambda: engine.left(stand_in))
        guard = psutil.Process(state.guard_pid)
        server = next(c for c in guard.children() if "_server" in c.cmdline())
        if end == "both":
            guard.send_signal(signal.SIGKILL)
        if end != "down":
            server.send_signal(signal.SIGKILL)
            until(lambda: not engine.left(stand_in))
    finally:
        _cli("down", "--dir", str(folder))
    assert engine.left(stand_in) == []
    assert last_state(folder) is None


def _cli(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "sandbox", *words], check=True, timeout=90)


def _sleep_in(folder: Path, state: State) -> None:
    """Submits a job that goes on until it is stopped."""
    import boto3  # noqa: PLC0415 # only here

    from sandbox.client import environment  # noqa: PLC0415 # only here

    env = environment(folder, port=state.port, region=state.region, key=state.key)

    class Sandbox:
        def client(self, service: str, **options: Any) -> Any:
            connect: Any = boto3.client
            return connect(
                service,
                endpoint_url=env["AWS_ENDPOINT_URL"],
                region_name=state.region,
                aws_access_key_id=state.key,
                aws_secret_access_key="sandbox",
                **options,
            )

    world = World(Sandbox())  # type: ignore[arg-type] # all that it is asked for
    world.environment("ce")
    world.queue("q", "ce")
    world.definition("d", "sleep", "300")
    world.submit()
