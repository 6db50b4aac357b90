"""The real Pulumi engine on the real program, with a sandbox in place of AWS."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from sandbox.inventory import list_account
from sandbox.provider.plugin import install
from sandbox.testing import Running, running
from submit.fleet import Fleet, parse_fleet

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("pulumi", "pulumi-language-python")
SEARCHED = os.pathsep.join(
    [str(ROOT / ".pulumi-bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
)


class Failed(Exception):
    """What the engine said when it failed."""


class Account:
    """What stands in the sandbox's account, asked for through boto3 and not through Pulumi."""

    def __init__(self, running_: Running) -> None:
        self.sandbox = running_

    def environments(self, stack: str) -> dict[str, Any]:
        """Compute environments of a stack, by the logical name of their queue."""
        found = self._pages("batch", "describe_compute_environments", "computeEnvironments")
        return {e["tags"]["queue"]: e for e in found if e["tags"].get("stack") == stack}

    def everything(self) -> set[tuple[str, str]]:
        """Kind and name of all that a stack could have made, whosever it is."""
        return list_account(self.sandbox.env())

    def _pages(self, service: str, call: str, member: str) -> list[Any]:
        pages = self.sandbox.client(service).get_paginator(call).paginate()
        return [item for page in pages for item in page[member]]


class Stack:
    """A stack of a project, driven by the command line as its user does."""

    def __init__(
        self, project: Path, name: str, environment: dict[str, str], *, client: str = ""
    ) -> None:
        """`client` is where a workshop's program is to be found."""
        self.project = project
        self.name = name
        self.environment = environment
        self.client = client
        self.run("stack", "init", name)

    def configure(self, **settings: Any) -> None:
        """Writes the stack's whole settings."""
        config = {f"runfleet:{key}": value for key, value in settings.items()}
        file = self.project / f"Pulumi.{self.name}.yaml"
        before = yaml.safe_load(file.read_text()) if file.exists() else {}
        before["config"] = {"aws:region": "us-east-1", **config}
        file.write_text(yaml.safe_dump(before))

    def run(self, *arguments: str) -> str:
        """What `pulumi ...` prints. Raises Failed with it when the command fails."""
        command = ["pulumi", *arguments, "--non-interactive", "--color", "never"]
        if self.client and arguments[0] in {"preview", "up", "destroy"}:
            command += ["--client", self.client]
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if done.returncode:
            raise Failed(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def up(self, *options: str) -> str:
        return self.run("up", "--stack", self.name, "--yes", "--skip-preview", *options)

    def destroy(self) -> str:
        return self.run("destroy", "--stack", self.name, "--yes", "--skip-preview")

    def plan(self) -> dict[str, str]:
        """What the next `up` would do: operation by resource, without what stays the same.

        A resource is told by its type and logical name: `ComputeEnvironment c6g-medium`.
        """
        steps = json.loads(self.run("preview", "--stack", self.name, "--json"))["steps"]
        return {
            _short(step["urn"]): step["op"]
            for step in steps
            if step["op"] != "same" and not step["urn"].endswith(f"runfleet-{self.name}")
        }

    def fleet(self) -> Fleet:
        return parse_fleet(self.run("stack", "output", "fleet", "--json", "--stack", self.name))


def _short(urn: str) -> str:
    _, _, kind, name = urn.rsplit("::", 3)
    return f"{kind.rpartition(':')[2]} {name}"


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with running() as sandbox_:
        (sandbox_.dir / "pulumi").mkdir()
        install(Path(sandbox_.env()["PULUMI_HOME"]))
        yield Account(sandbox_)


@pytest.fixture(scope="module")
def environment(account: Account) -> Iterator[dict[str, str]]:
    """Variables for the engine: nothing of the user's own AWS and Pulumi; no process stays."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]
    if missing:
        pytest.fail(f"{', '.join(missing)}: not on PATH nor in .pulumi-bin. Type: make setup")
    clean = {
        key: value
        for key, value in os.environ.items()
        if not re.match("AWS_|PULUMI_|RUNFLEET_|COV", key)
    }
    others = set(_providers_of(account.sandbox))  # of tests that ran in this process before
    yield {**clean, **account.sandbox.env(), "PATH": SEARCHED}
    assert set(_providers_of(account.sandbox)) <= others


Workshop = Callable[[Path, str], Stack]
"""Makes a stack of that name, whose program and providers are running already (workshop.py)."""


@contextlib.contextmanager
def open_workshop(environment: dict[str, str]) -> Iterator[Workshop]:
    command = [sys.executable, str(Path(__file__).with_name("workshop.py"))]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        ports = json.loads(process.stdout.readline())
        attached = f"aws:{ports['aws']},runfleet-jobs:{ports['jobs']}"
        inside = environment | {"PULUMI_DEBUG_PROVIDERS": attached}
        yield lambda project, name: Stack(
            project, name, inside, client=f"127.0.0.1:{ports['client']}"
        )
        process.stdin.close()


@pytest.fixture(scope="module")
def workshop(environment: dict[str, str]) -> Iterator[Workshop]:
    with open_workshop(environment) as make:
        yield make


def _providers_of(running_: Running) -> list[int]:
    """The plugins that still run for this sandbox."""
    children = [
        process.pid
        for process in psutil.Process().children(recursive=True)
        if process.cmdline()[-1:] != ["reaper"]  # the sandbox's own, once it has run a job
    ]
    folder = str(running_.dir)
    for process in psutil.process_iter(["cmdline"]):
        if "sandbox.provider" in (process.info["cmdline"] or []):
            try:
                if process.environ().get("RUNFLEET_SANDBOX_DIR") == folder:
                    children.append(process.pid)
            except psutil.Error:
                continue
    return children


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the Pulumi project: the tests leave no settings in the clone."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("Pulumi.yaml", "__main__.py", "infra/plugin/pulumi-resource-runfleet-jobs"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder
