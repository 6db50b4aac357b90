"""The real Pulumi engine on the real program, with a sandbox in place of AWS."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

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

    def everything(self) -> dict[str, list[str]]:
        """The names of all that a stack could have made, whosever it is."""
        ids = {
            "environments": (
                "batch",
                "describe_compute_environments",
                "computeEnvironments",
                "computeEnvironmentArn",
            ),
            "queues": ("batch", "describe_job_queues", "jobQueues", "jobQueueArn"),
            "templates": (
                "ec2",
                "describe_launch_templates",
                "LaunchTemplates",
                "LaunchTemplateId",
            ),
            "groups": ("ec2", "describe_security_groups", "SecurityGroups", "GroupId"),
            "rules": (
                "ec2",
                "describe_security_group_rules",
                "SecurityGroupRules",
                "SecurityGroupRuleId",
            ),
            "roles": ("iam", "list_roles", "Roles", "RoleName"),
            "profiles": (
                "iam",
                "list_instance_profiles",
                "InstanceProfiles",
                "InstanceProfileName",
            ),
            "log groups": ("logs", "describe_log_groups", "logGroups", "logGroupName"),
        }
        return {
            what: sorted(item[key] for item in self._pages(service, call, member))
            for what, (service, call, member, key) in ids.items()
        }

    def _pages(self, service: str, call: str, member: str) -> list[Any]:
        pages = self.sandbox.client(service).get_paginator(call).paginate()
        return [item for page in pages for item in page[member]]


class Stack:
    """A stack of a project, driven by the command line as its user does."""

    def __init__(self, project: Path, name: str, environment: dict[str, str]) -> None:
        self.project = project
        self.name = name
        self.environment = environment
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
    yield {**clean, **account.sandbox.env(), "PATH": SEARCHED}
    assert _providers_of(account.sandbox) == []


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
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder
