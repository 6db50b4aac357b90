"""A fleet that Pulumi has built, used by somebody who has AWS and the stack's policy alone."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botocore.client
import pytest

from submit.commands import run_command

from .allowed import Asked, actions, asked, granted
from .conftest import Account, Workshop

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SECRET = "wandb-key-3fe17c50a2"
SHOW = "import os, hashlib; print(hashlib.sha256(os.environ['WANDB_API_KEY'].encode()).hexdigest())"
NOT_BY_SUBMIT = {
    "s3:GetObject": "of a bucket in which no job has left anything (submit results --file s3://…)",
    "s3:ListBucket": "without it S3 does not tell what is missing from what is denied",
    **{
        f"ecr:{name}": "there is no docker here (submit image build, push and ls; submit run)"
        for name in (
            "BatchCheckLayerAvailability",
            "BatchGetImage",
            "CompleteLayerUpload",
            "DescribeImages",
            "GetAuthorizationToken",
            "GetDownloadUrlForLayer",
            "InitiateLayerUpload",
            "PutImage",
            "UploadLayerPart",
        )
    },
    "logs:FilterLogEvents": "of many streams at a time",
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, Any]]]:
    """Service, operation and request of each call of this process."""
    made: list[tuple[str, str, dict[str, Any]]] = []
    before: Callable[..., Any] = botocore.client.BaseClient._make_api_call

    def record(client: Any, operation: str, request: dict[str, Any]) -> Any:
        made.append((client.meta.service_model.service_name, operation, request))
        return before(client, operation, request)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", record)
    return made


def test_a_submitter_needs_the_policy_and_no_more(
    account: Account,
    project: Path,
    workshop: Workshop,
    tmp_path: Path,
    calls: list[tuple[str, str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stack = workshop(project, "rl")
    stack.configure(
        instanceTypes=["c6g.medium"],
        spot=False,
        publish=True,
        submitters=True,
        bucket=True,
        repository=True,
        storageOnDestroy="delete",
    )
    stack.run("config", "set", "--secret", "wandbApiKey", SECRET, "--stack", "rl")
    stack.up()
    policy = policy_of(account)

    for name in [name for name in os.environ if name.startswith(("AWS_", "RUNFLEET_"))]:
        monkeypatch.delenv(name)
    for name, value in account.sandbox.env().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("RUNFLEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RUNFLEET_SHARED", str(tmp_path / "shared"))
    monkeypatch.chdir(tmp_path)  # no Pulumi project here
    monkeypatch.setenv("COLUMNS", "200")

    def submit(*words: str) -> str:
        code = run_command(list(words))
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.out

    calls.clear()
    said = use(account, submit)
    monkeypatch.setattr("sys.stdin", io.StringIO("a1" * 20 + "\n"))
    submit("wandb", "login", "--wandb-key", "-")

    tags = tags_of(account)
    wanted: list[Asked] = [ask for call in list(calls) for ask in asked(*call, tags)]
    assert [ask for ask in wanted if not granted(policy, ask)] == []
    assert actions(policy) - {ask.action for ask in wanted} <= set(NOT_BY_SUBMIT)
    not_of_another_team(policy)

    assert said.count(hashlib.sha256(SECRET.encode()).hexdigest()) == 2  # it arrives
    assert_nowhere(account, [account.sandbox.dir, tmp_path, project])
    stack.destroy()


def use(account: Account, submit: Callable[..., str]) -> str:
    """Every verb; what the job with the secret has printed."""
    submit("use", "rl")
    submit("queues")
    command = ("run", "--queue", "c6g-medium", "--seeds", "2", "--secret", "WANDB_API_KEY")
    submit(*command, "--name", "shows", "--", "python", "-c", SHOW)
    submit("status", "latest", "--watch")
    said = submit("logs", "latest")
    submit("results", "latest")
    account.sandbox.fault("lost", service="batch", operation="SubmitJob")
    submit("run", "--queue", "c6g-medium", "--name", "waits", "--", "sh", "-c", "sleep 300")
    submit("cancel", "latest", "--yes")
    submit("doctor")
    return said


def policy_of(account: Account) -> str:
    iam = account.sandbox.client("iam")
    (found,) = iam.list_policies(Scope="Local")["Policies"]
    version = iam.get_policy_version(PolicyArn=found["Arn"], VersionId=found["DefaultVersionId"])
    return json.dumps(version["PolicyVersion"]["Document"])


def tags_of(account: Account) -> Callable[[str], dict[str, str]]:
    batch, vault = account.sandbox.client("batch"), account.sandbox.client("secretsmanager")

    def tags(arn: str) -> dict[str, str]:
        if ":batch:" in arn:
            return dict(batch.list_tags_for_resource(resourceArn=arn)["tags"])
        return {tag["Key"]: tag["Value"] for tag in vault.describe_secret(SecretId=arn)["Tags"]}

    return tags


def not_of_another_team(policy: str) -> None:
    """What is another stack's is not to be used, ended, read or made."""
    at = "us-east-1:123456789012"
    theirs, asks_theirs = {"aws:ResourceTag/stack": "dl"}, {"aws:RequestTag/stack": "dl"}
    batch, secret = f"arn:aws:batch:{at}", f"arn:aws:secretsmanager:{at}:secret:runfleet"
    ours, asks_ours = {"aws:ResourceTag/stack": "rl"}, {"aws:RequestTag/stack": "rl"}
    for ask in (
        Asked("batch:SubmitJob", f"{batch}:job-queue/dl-c6g-medium", theirs),
        Asked("batch:TerminateJob", f"{batch}:job/1", theirs),
        Asked("batch:TerminateJob", f"{batch}:job/1"),
        Asked("batch:SubmitJob", f"{batch}:job-definition/runfleet-rl-1", ours),  # no revision
        Asked("batch:RegisterJobDefinition", f"{batch}:job-definition/runfleet-x", asks_theirs),
        Asked("batch:TagResource", f"{batch}:job-definition/runfleet-dl-1:1", theirs | asks_ours),
        Asked("batch:TagResource", f"{batch}:job-definition/admin:1", asks_ours),
        Asked("batch:TagResource", f"{batch}:job/1", theirs | asks_ours),
        Asked("batch:TagResource", f"{batch}:job-queue/rl-c6g-medium", asks_ours),
        Asked("logs:GetLogEvents", f"arn:aws:logs:{at}:log-group:/runfleet/dl:log-stream:x"),
        Asked("logs:GetLogEvents", f"arn:aws:logs:{at}:log-group:/runfleet/rl2:log-stream:x"),
        Asked("ssm:GetParametersByPath", f"arn:aws:ssm:{at}:parameter/runfleet/rl2/"),
        Asked("iam:PassRole", "arn:aws:iam::123456789012:role/admin"),
        Asked("secretsmanager:GetSecretValue", f"{secret}/rl/WANDB_API_KEY-x", ours),
        Asked("secretsmanager:PutSecretValue", f"{secret}/rl/HF_TOKEN-x", ours),
        Asked("secretsmanager:PutSecretValue", f"{secret}/dl/WANDB_API_KEY-x", theirs),
    ):
        assert not granted(policy, ask), ask


def assert_nowhere(account: Account, folders: list[Path]) -> None:
    """The secret's value stands in no file, no job, no definition and no log."""
    batch, logs = account.sandbox.client("batch"), account.sandbox.client("logs")
    shown: list[Any] = [batch.describe_job_definitions()["jobDefinitions"]]
    for queue in batch.describe_job_queues()["jobQueues"]:
        for status in ("SUCCEEDED", "FAILED"):
            found = batch.list_jobs(jobQueue=queue["jobQueueArn"], jobStatus=status)
            ids = [job["jobId"] for job in found["jobSummaryList"]]
            children = [f"{job}:{n}" for job in ids for n in range(2)]
            shown += [batch.describe_jobs(jobs=[*ids, *children])["jobs"]] if ids else []
    for group in logs.describe_log_groups()["logGroups"]:
        shown.append(logs.filter_log_events(logGroupName=group["logGroupName"])["events"])
    text = json.dumps(shown, default=str)
    assert "WANDB_API_KEY" in text
    assert SECRET not in text
    for folder in folders:
        for file in folder.rglob("*"):
            if file.is_file() and not file.is_symlink():
                assert SECRET.encode() not in file.read_bytes(), file
