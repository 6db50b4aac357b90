"""Prints the figures of the sandbox's Batch on this machine, beside a mock and a bare loop.

    python -m bench.batch

moto's Batch runs nothing here (its simple mode marks jobs done); `xargs` only runs. The sandbox
does what both do, with a log, an environment, a folder and a state for each child.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import psutil

from bench.__main__ import RUNS, World, show
from sandbox.state import read_state

SLOTS = 2
ASKED = 30
"""How often a call is timed."""
MOTO = """
import json, time, boto3
from moto import mock_aws
with mock_aws(config={"batch": {"use_docker": False}}):
    region = {"region_name": "us-east-1"}
    iam, ec2, batch = (boto3.client(name, **region) for name in ("iam", "ec2", "batch"))
    role = iam.create_role(RoleName="r", AssumeRolePolicyDocument=json.dumps({}))["Role"]["Arn"]
    profile = iam.create_instance_profile(InstanceProfileName="p")["InstanceProfile"]["Arn"]
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    resources = {"type": "EC2", "minvCpus": 0, "maxvCpus": 4, "subnets": [subnet],
                 "securityGroupIds": [group], "instanceTypes": ["c5.large"], "instanceRole": profile}
    batch.create_compute_environment(computeEnvironmentName="bench", type="MANAGED",
                                     serviceRole=role, computeResources=resources)
    batch.create_job_queue(jobQueueName="q", priority=1, state="ENABLED",
                           computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "bench"}])
    batch.register_job_definition(
        jobDefinitionName="d", type="container",
        containerProperties={"image": "x", "vcpus": 1, "memory": 100, "command": ["true"]})
    started = time.perf_counter()
    job = batch.submit_job(jobName="j", jobQueue="q", jobDefinition="d",
                           arrayProperties={"size": %d})["jobId"]
    while batch.describe_jobs(jobs=[job])["jobs"][0]["status"] not in ("SUCCEEDED", "FAILED"):
        time.sleep(0.05)
    print(time.perf_counter() - started)
"""


class Account:
    """Clients of a sandbox, and a queue in it."""

    def __init__(self, env: dict[str, str]) -> None:
        names = {
            "endpoint_url": "AWS_ENDPOINT_URL",
            "region_name": "AWS_REGION",
            "aws_access_key_id": "AWS_ACCESS_KEY_ID",
            "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
        }
        options: Any = {option: env[name] for option, name in names.items()}
        connect: Any = boto3.client
        self.batch, self._iam, self._ec2 = (
            connect(service, **options) for service in ("batch", "iam", "ec2")
        )

    def make_queue(self) -> None:
        """A queue that is VALID, and a definition of `true`."""
        trust = (
            '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": '
            '"sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}]}'
        )
        self._iam.create_role(RoleName="instance", AssumeRolePolicyDocument=trust)
        self._iam.create_instance_profile(InstanceProfileName="instance")
        self._iam.add_role_to_instance_profile(InstanceProfileName="instance", RoleName="instance")
        self.batch.create_compute_environment(
            computeEnvironmentName="ce",
            type="MANAGED",
            computeResources={
                "type": "EC2",
                "allocationStrategy": "BEST_FIT_PROGRESSIVE",
                "maxvCpus": 16,
                "instanceTypes": ["c5.large"],
                "subnets": [self._ec2.describe_subnets()["Subnets"][0]["SubnetId"]],
                "securityGroupIds": [
                    self._ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
                ],
                "instanceRole": "instance",
            },
        )
        while self.batch.describe_compute_environments()["computeEnvironments"][0]["status"] != (
            "VALID"
        ):
            time.sleep(0.01)
        self.batch.create_job_queue(
            jobQueueName="q",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "ce"}],
        )
        self.batch.register_job_definition(
            jobDefinitionName="d",
            type="container",
            containerProperties={
                "image": "x",
                "command": ["true"],
                "resourceRequirements": [
                    {"type": "VCPU", "value": "1"},
                    {"type": "MEMORY", "value": "100"},
                ],
            },
        )

    def run_array(self, command: str, watch: Callable[[], None]) -> tuple[str, float]:
        """An array of that command to its end: its id, and the seconds that it took.

        `watch` is called now and then meanwhile.
        """
        started = time.perf_counter()
        job: str = self.batch.submit_job(
            jobName="j",
            jobQueue="q",
            jobDefinition="d",
            arrayProperties={"size": RUNS},
            containerOverrides={"command": [command]},
        )["jobId"]
        while self.describe(job)["status"] not in {"SUCCEEDED", "FAILED"}:
            watch()
            time.sleep(0.2)
        return job, time.perf_counter() - started

    def describe(self, job: str) -> Any:
        return self.batch.describe_jobs(jobs=[job])["jobs"][0]


class Use:
    """What the server holds; the most of it since it was made."""

    def __init__(self, server: psutil.Process) -> None:
        self._server = server
        self.mib = self.processes = self.files = self.threads = 0

    def look(self) -> None:
        self.mib = max(self.mib, self.mib_now())
        self.processes = max(self.processes, len(self._server.children(recursive=True)))
        self.files = max(self.files, self._server.num_fds())
        self.threads = max(self.threads, self._server.num_threads())

    def mib_now(self) -> int:
        return round(self._server.memory_info().rss / 2**20)


def server_of(folder: Path) -> psutil.Process:
    """The process that answers."""
    state = read_state(folder)
    assert state is not None
    return max(
        psutil.Process(state.guard_pid).children(), key=lambda process: process.memory_info().rss
    )


def peers() -> None:
    """The same array on a mock that runs nothing, and the same commands without any Batch."""
    moto = subprocess.run(
        [sys.executable, "-c", MOTO % RUNS],
        env=os.environ | {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"},
        check=True,
        capture_output=True,
        text=True,
    )
    rate(f"moto's Batch, {RUNS:,} children, nothing run", float(moto.stdout))
    started = time.perf_counter()
    subprocess.run(
        ["xargs", f"-P{SLOTS}", "-I{}", "sh", "-c", "true"],
        input="\n".join(map(str, range(RUNS))),
        text=True,
        check=True,
    )
    rate(f"xargs -P{SLOTS} sh -c true, {RUNS:,} times", time.perf_counter() - started)


def rate(what: str, seconds: float) -> None:
    show(what, f"{RUNS / seconds:,.0f} a second ({seconds:.1f} s)")


def main() -> None:
    """All figures, in a sandbox that is gone afterwards."""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    with tempfile.TemporaryDirectory(prefix="runfleet-bench-") as folder:
        started = time.perf_counter()
        world = World(Path(folder))
        try:
            account = Account(dict(world.env))
            account.batch.describe_job_queues()
            show("sandbox up, to the first answer", f"{time.perf_counter() - started:.2f} s")
            account.make_queue()
            server = server_of(Path(folder) / "sandbox")
            for command in ("true", "false"):
                use = Use(server)
                before = use.mib_now()
                job, seconds = account.run_array(command, use.look)
                rate(f"sandbox, array of {RUNS:,}, `{command}`", seconds)
                show("  memory before, at most, after", f"{before}, {use.mib}, {use.mib_now()} MiB")
                held = f"{use.processes}, {use.files}, {use.threads}"
                show("  processes, open files, threads, at most", held)
            times = []
            for _ in range(ASKED):
                started = time.perf_counter()
                account.describe(job)
                times.append(time.perf_counter() - started)
            show("DescribeJobs of that array", f"{statistics.median(times) * 1000:.1f} ms")
        finally:
            world.end()
    peers()


if __name__ == "__main__":
    main()
