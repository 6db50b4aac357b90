"""`python -m sandbox` as its user knows it, and what is left when it is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from sandbox.state import read_state
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow
OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "RUNFLEET_"))}


def sandbox(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sandbox", *arguments],
        cwd=folder,
        env=OWN,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a name that needs quoting; no sandbox is left in it."""
    inside = tmp_path / "a 'b' $c"
    inside.mkdir()
    yield inside
    sandbox(inside, "down")


class Client:
    """A client of the sandbox in a folder, as a shell gets one from `env`."""

    def __init__(self, folder: Path) -> None:
        lines = sandbox(folder, "env").stdout
        shown = subprocess.run(
            ["sh", "-c", f"{lines}\nenv"], env=OWN, capture_output=True, text=True, check=True
        )
        pairs = (line.partition("=") for line in shown.stdout.splitlines())
        self.env = {name: value for name, _, value in pairs}
        self.port = int(self.env["AWS_ENDPOINT_URL"].rpartition(":")[2])

    def client(self, service: str, **options: Any) -> Any:
        return boto3.client(  # type: ignore[call-overload] # its overloads name each service
            service,
            endpoint_url=self.env["AWS_ENDPOINT_URL"],
            region_name=self.env["AWS_REGION"],
            aws_access_key_id=self.env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.env["AWS_SECRET_ACCESS_KEY"],
            **options,
        )


def processes_of(folder: Path) -> tuple[psutil.Process, psutil.Process]:
    """The guard and the server."""
    state = read_state(folder / ".sandbox")
    assert state is not None
    guard = psutil.Process(state.guard_pid)
    (server,) = guard.children()
    return guard, server


def run_job(folder: Path) -> list[psutil.Process]:
    """The processes of a job that runs: one in its group, one in a session of its own."""
    world = World(Client(folder))  # type: ignore[arg-type] # it needs no more than `client`
    world.environment("ce")
    world.queue("q", "ce")
    world.definition("d")
    job_id = world.submit("sh", "-c", "setsid sleep 300 & echo $!; sleep 300 & echo $!; wait")
    until(lambda: world.job(job_id)["status"] == "RUNNING")
    until(lambda: len(world.lines(world.job(job_id))) == 2)
    return [psutil.Process(int(line)) for line in world.lines(world.job(job_id))]


def gone(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


def test_up_env_status_down(folder: Path) -> None:
    up = sandbox(folder, "up")
    assert up.returncode == 0
    assert 'eval "$(python -m sandbox env)"' in up.stdout
    again = sandbox(folder, "up")
    assert (again.returncode, "already running" in again.stdout) == (0, True)
    status = json.loads(sandbox(folder, "status", "--json").stdout)
    assert status["jobs"] == 0
    client = Client(folder)
    assert client.port == status["port"]
    assert client.client("sts").get_caller_identity()["Account"] == "123456789012"
    guard, server = processes_of(folder)
    assert sandbox(folder, "down").returncode == 0
    assert gone(guard)
    assert gone(server)
    assert not (folder / ".sandbox").exists()


def test_env_survives_odd_folder_names(folder: Path) -> None:
    sandbox(folder, "up")
    env = Client(folder).env
    assert env["RUNFLEET_SANDBOX_DIR"] == str(folder / ".sandbox")
    assert env["RUNFLEET_HOME"] == str(folder / ".sandbox" / "home")
    assert not Path(env["AWS_CONFIG_FILE"]).exists()
    (plugin,) = Path(env["PULUMI_HOME"]).glob("plugins/resource-aws-v*/pulumi-resource-aws")
    assert os.access(plugin, os.X_OK)


def test_its_key_is_in_no_process_list_and_no_readable_file(folder: Path) -> None:
    sandbox(folder, "up")
    key = Client(folder).env["AWS_ACCESS_KEY_ID"]
    for process in processes_of(folder):
        assert key not in " ".join(process.cmdline())
    for path in (folder / ".sandbox").rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o077:
            assert key not in path.read_text()


@pytest.mark.parametrize("verb", ["env", "status"])
def test_without_a_sandbox_nothing_is_on_standard_output(folder: Path, verb: str) -> None:
    answer = sandbox(folder, verb)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "python -m sandbox up" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_two_ups_at_once_are_one(folder: Path) -> None:
    command = [sys.executable, "-m", "sandbox", "up"]
    both = [
        subprocess.Popen(command, cwd=folder, env=OWN, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[0].splitlines()[0] for process in both]
    assert sorted("already running" in line for line in said) == [False, True]
    assert len({line.partition("http")[2] for line in said}) == 1


@pytest.mark.parametrize("who", ["guard", "server", "both"])
def test_no_job_outlives_a_killed_sandbox(folder: Path, who: str) -> None:
    """Kill -9: what shares the job's group ends at once, what hid at the next `down`."""
    sandbox(folder, "up", "--stop-timeout", "0.2")
    in_a_session, in_the_group = run_job(folder)
    guard, server = processes_of(folder)
    for process in {"guard": [guard], "server": [server], "both": [guard, server]}[who]:
        process.kill()
    until(lambda: gone(in_the_group))
    assert sandbox(folder, "status").returncode == 1
    assert sandbox(folder, "down").returncode == 0
    until(lambda: gone(in_a_session))
    until(lambda: gone(server) and gone(guard))
    assert not (folder / ".sandbox").exists()


def test_after_a_kill_it_can_be_started_again(folder: Path) -> None:
    sandbox(folder, "up")
    for process in processes_of(folder):
        process.kill()
    up = sandbox(folder, "up")
    assert "the sandbox is up" in up.stdout
    assert Client(folder).client("batch").describe_job_queues()["jobQueues"] == []


def test_a_process_that_hid_from_the_end_of_its_job_is_ended(folder: Path) -> None:
    sandbox(folder, "up")
    processes = run_job(folder)
    batch = Client(folder).client("batch")
    (job,) = batch.list_jobs(jobQueue="q", jobStatus="RUNNING")["jobSummaryList"]
    batch.terminate_job(jobId=job["jobId"], reason="r")
    until(lambda: all(map(gone, processes)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_it_ends_with_a_signal(folder: Path, number: int) -> None:
    command = [sys.executable, "-m", "sandbox", "up", "--foreground"]
    with subprocess.Popen(
        command, cwd=folder, env=OWN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "the sandbox is up" in process.stdout.readline()
        second = sandbox(folder, "up", "--foreground")
        assert (second.returncode, "sandbox down" in second.stderr) == (1, True)
        process.send_signal(number)
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == ""
    assert not (folder / ".sandbox").exists()


def test_what_clients_make_after_down_is_no_hindrance(folder: Path) -> None:
    """Submit and Pulumi make their folders anew while the sandbox's variables still stand."""
    for name in ("home", "pulumi-home"):
        (folder / ".sandbox" / name).mkdir(parents=True)
    assert sandbox(folder, "up").returncode == 0
    assert sandbox(folder, "down").returncode == 0
    assert not (folder / ".sandbox").exists()


@pytest.mark.parametrize(
    "files",
    [
        ("sandbox.log", "thesis.tex"),
        ("home/user/thesis.tex",),
        ("pulumi/Pulumi.yaml",),
        ("pulumi-home/thesis.tex", "home/locks/x"),
    ],
)
def test_what_only_looks_like_a_sandboxs_folder_is_left_alone(
    folder: Path, files: tuple[str, ...]
) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    for verb in ("up", "down"):
        answer = sandbox(folder, verb, "--dir", str(folder))
        assert (answer.returncode, "other files" in answer.stderr) == (1, True)
    assert all((folder / name).read_text() == "x" for name in files)


def test_a_folder_with_other_files_is_left_alone(folder: Path) -> None:
    (folder / "thesis.tex").write_text("x")
    for verb in ("up", "down"):
        answer = sandbox(folder, verb, "--dir", str(folder))
        assert (answer.returncode, "other files" in answer.stderr) == (1, True)
    answer = sandbox(folder, "up", "--dir", str(folder / "thesis.tex"))
    assert (answer.returncode, "it is a file" in answer.stderr) == (1, True)
    assert (folder / "thesis.tex").read_text() == "x"


def test_a_port_that_is_taken_is_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = sandbox(folder, "up", "--port", str(port))
    assert answer.returncode == 1
    assert f"port {port}" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (folder / ".sandbox").exists()


def test_faults_by_hand(folder: Path) -> None:
    sandbox(folder, "up")
    assert sandbox(folder, "fault", "add", "throttle", "--operation", "ListJobs").returncode == 0
    waiting = json.loads(sandbox(folder, "fault", "list").stdout)["waiting"]
    assert [(f["kind"], f["service"], f["operation"]) for f in waiting] == [
        ("throttle", "batch", "ListJobs")
    ]
    sandbox(folder, "fault", "clear")
    assert json.loads(sandbox(folder, "fault", "list").stdout)["waiting"] == []
    answer = sandbox(folder, "fault", "interrupt", "no-such-job")
    assert (answer.returncode, "not running" in answer.stderr) == (1, True)
