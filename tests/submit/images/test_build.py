"""submit image build and push: what Docker is told, by a stand-in that writes it down."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox.testing import running
from submit.commands import run_command
from submit.errors import WrongUse
from submit.images.build import build_image, plan_build
from submit.images.context import context_tag
from tests.submit.fake import FLEET
from tests.submit.images.conftest import Registry

HOST = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
DOCKER = """#!/usr/bin/env python3
import json, os, sys
told = sys.stdin.read() if "--password-stdin" in sys.argv else None
here = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(here + "/calls", "a") as file:
    print(json.dumps([sys.argv[1:], told, "WANDB_API_KEY" in os.environ]), file=file)
print("noise")
sys.exit(1 if " ".join(sys.argv[1:3]) in os.environ.get("DOCKER_FAILS", "no").split(",") else 0)
"""


class Docker:
    """What it was told so far: each command line, and its standard input where a password was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "docker").write_text(DOCKER)
        (folder / "docker").chmod(0o755)

    @property
    def calls(self) -> list[list[Any]]:
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def commands(self) -> list[str]:
        return [" ".join(words) for words, *_ in self.calls]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Docker(folder)


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM scratch\n")
    fleet = msgspec.structs.replace(FLEET, image_repository=f"{HOST}/rl")
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(fleet))
    monkeypatch.setenv("RUNFLEET_FLEET", str(tmp_path / "fleet.json"))
    monkeypatch.setenv("RUNFLEET_HOME", str(tmp_path / "home"))
    return folder


def plan(image: str = "lab/ppo:1", **more: Any) -> str:
    given: dict[str, Any] = {"context": ".", "dockerfile": "Dockerfile", "archs": ()}
    return " ".join(plan_build(image, **(given | {"push": False, "cache": False} | more)))


def test_what_docker_is_told() -> None:
    head = "docker buildx build --tag lab/ppo:1 --file Dockerfile"
    assert plan() == f"{head} --load ."
    assert plan(archs=("linux/arm64",)) == f"{head} --platform linux/arm64 --load ."
    both = ("linux/amd64", "linux/arm64")
    pushed = f"{head} --platform linux/amd64,linux/arm64 --builder runfleet --push"
    assert plan(archs=both, push=True) == f"{pushed} ."
    assert plan(arguments=("A=b c",)) == f"{head} --build-arg A=b c --load ."
    where = "type=registry,ref=lab/ppo:cache"
    assert plan(archs=both, push=True, cache=True) == (
        f"{pushed} --cache-from {where} "
        f"--cache-to {where},mode=max,image-manifest=true,oci-mediatypes=true ."
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"archs": ("linux/amd64", "linux/arm64")}, "can't be loaded"),
        ({"archs": ("linux/riscv64",)}, "no queue has machines of 'linux/riscv64'"),
        ({"archs": ("",)}, "no queue has machines of ''"),
        ({"image": "Lab/ppo"}, "no image's name"),
    ],
)
def test_what_can_not_be_built(more: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        plan(**more)


@pytest.mark.slow
def test_build_and_push_into_the_stacks_repository(
    docker: Docker,
    context: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with running() as sandbox:
        for name, value in sandbox.env().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
        monkeypatch.setenv("DOCKER_FAILS", "buildx inspect")
        words = ["--push", "--archs", "linux/amd64,linux/arm64", "--json"]
        assert run_command(["image", "build", str(context), *words]) == 0
    archs = ("linux/amd64", "linux/arm64")
    image = f"{HOST}/rl:{context_tag(context, context / 'Dockerfile', archs)}"
    assert json.loads(capfd.readouterr().out) == {"image": image}
    login, inspect, create, build = docker.calls
    assert login[0] == ["login", "--username", "AWS", "--password-stdin", HOST]
    assert login[1], "no password on standard input"
    assert all(login[1] not in " ".join(words) for words, *_ in docker.calls)
    assert not any(has_key for *_, has_key in docker.calls)
    assert " ".join(inspect[0]) == "buildx inspect runfleet"
    assert " ".join(create[0]) == "buildx create --name runfleet --driver docker-container"
    assert build[0][:4] == ["buildx", "build", "--tag", image]
    assert build[0][-1] == str(context)


@pytest.mark.slow
def test_arguments_of_the_dockerfile_are_part_of_what_is_built(
    docker: Docker, context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["image", "build", str(context), "--repository", "lab/ppo"]
    images = set()
    for value in ("A=1", "A=2=3", "A="):
        assert run_command([*words, "--build-arg", value]) == 0
        images.add(capfd.readouterr().out)
        assert f"--build-arg {value} --load" in docker.commands[-1]
    assert len(images) == 3
    assert run_command([*words, "--build-arg", "A"]) == 2
    assert "'A' is no NAME=VALUE" in capfd.readouterr().err


@pytest.mark.slow
def test_push_of_an_image_that_is_here(
    docker: Docker, context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert context.exists()
    words = ["image", "push", "ppo:1", "--repository", "ghcr.io/lab/ppo"]
    assert run_command(words) == 0
    assert capfd.readouterr().out == "ghcr.io/lab/ppo:1\n"
    assert docker.commands == ["tag ppo:1 ghcr.io/lab/ppo:1", "push ghcr.io/lab/ppo:1"]


@pytest.mark.slow
def test_when_docker_fails(
    docker: Docker,
    context: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DOCKER_FAILS", "buildx build")
    words = ["image", "build", str(context), "--repository", "lab/ppo"]
    assert run_command(words) == 4
    said = capfd.readouterr()
    assert said.out == ""
    assert "`docker buildx build …` ended with 1" in said.err
    assert [words[1] for words, *_ in docker.calls] == ["build", "version"]
    monkeypatch.setenv("DOCKER_FAILS", "buildx build,buildx version")
    assert run_command(words) == 3
    assert "has no buildx plugin" in capfd.readouterr().err
    monkeypatch.setenv("PATH", str(context))
    assert run_command(words) == 3
    assert "docker is not installed here" in capfd.readouterr().err


@pytest.mark.usefixtures("docker")
def test_what_is_missing_is_named(
    context: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (context / "Dockerfile").unlink()
    assert run_command(["image", "build", str(context)]) == 2
    assert "Dockerfile: No such file" in capfd.readouterr().err
    bare = context.parent / "bare.json"
    bare.write_bytes(msgspec.json.encode(FLEET))
    monkeypatch.setenv("RUNFLEET_FLEET", str(bare))
    assert run_command(["image", "ls"]) == 3
    assert "pulumi config set repository true" in capfd.readouterr().err


@pytest.mark.slow
def test_list_of_a_registry(
    registry: Registry, context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert context.exists()
    for tag in ("2", "1"):
        registry.put_image("lab/listed", tag, "arm64")
    where = f"{registry.host}/lab/listed"
    assert run_command(["image", "ls", "--repository", where]) == 0
    assert f"{where}:1" in capfd.readouterr().out
    assert run_command(["image", "ls", "--json", "--repository", where]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [image["tags"] for image in found["images"]] == [["1"], ["2"]]
    assert run_command(["image", "ls", "--repository", f"{registry.host}/lab/nothing"]) == 3
    assert "has no repository lab/nothing" in capfd.readouterr().err


def _engine_runs() -> bool:
    try:
        done = subprocess.run(
            ["docker", "buildx", "inspect"], capture_output=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@pytest.mark.slow
def test_a_real_build(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if not _engine_runs():
        pytest.skip("no Docker engine with buildx answers here")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY hello /\n")
    (tmp_path / "hello").write_text("hello\n")
    image = build_image("runfleet-test/hello", context=tmp_path)
    try:
        done = subprocess.run(
            ["docker", "image", "inspect", image], capture_output=True, check=True
        )
        assert image in done.stdout.decode()
    finally:
        subprocess.run(["docker", "image", "rm", image], capture_output=True, check=False)
    assert capfd.readouterr().out == ""
