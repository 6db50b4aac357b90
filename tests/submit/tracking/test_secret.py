"""submit wandb login, and a run that tracks: the key reaches the run and nothing else."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import msgspec
import pytest

from sandbox.testing import running
from submit import api
from submit.commands import run_command
from submit.tracking.wanted import KEY
from tests.submit.test_aws import World, trust

pytestmark = pytest.mark.slow
NEW = "0123456789abcdef" * 3
SAY = 'printf %s "$WANDB_API_KEY" | sha256sum; echo "$WANDB_PROJECT $WANDB_NAME"'


def test_a_key_that_is_put_into_the_stack_reaches_its_runs_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(slots=2, grace_s=0.2) as sandbox:
        for name, value in sandbox.env().items():
            monkeypatch.setenv(name, value)
        world = World(sandbox)
        made = sandbox.client("secretsmanager").create_secret(Name="rl/key", SecretString="old")
        iam = sandbox.client("iam")
        iam.create_role(
            RoleName="reader", AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com")
        )
        iam.put_role_policy(
            RoleName="reader",
            PolicyName="read",
            PolicyDocument=msgspec.json.encode(
                {
                    "Version": "2012-10-17",
                    "Statement": {
                        "Effect": "Allow",
                        "Action": "secretsmanager:GetSecretValue",
                        "Resource": made["ARN"],
                    },
                }
            ).decode(),
        )
        world.fleet = msgspec.structs.replace(
            world.fleet,
            secrets={KEY: made["ARN"]},
            execution_role_arn="arn:aws:iam::123456789012:role/reader",
        )
        home = tmp_path / "home"
        home.mkdir()
        (home / "fleet.json").write_bytes(msgspec.json.encode(world.fleet))
        monkeypatch.setenv("RUNFLEET_FLEET", str(home / "fleet.json"))
        monkeypatch.setenv("RUNFLEET_HOME", str(home))
        monkeypatch.setattr("sys.stdin", io.StringIO(NEW + "\n"))

        assert run_command(["wandb", "login", "--wandb-key", "-"]) == 0
        words = ["run", "--queue", "q", "--seeds", "1", "--wandb-project", "atari"]
        assert run_command([*words, "--dry-run", "--json", "--", "sh", "-c", SAY]) == 0
        assert run_command([*words, "--", "sh", "-c", SAY]) == 0
        said = "".join(capsys.readouterr())
        with api.Session() as session:
            progress = api.wait(session, api.find(session, "latest"))
            views = api.runs(session, progress)
            lines = [line.text for line in api.log(session, progress, views[0])]
        jobs = sandbox.client("batch").describe_jobs(jobs=[progress.rows[0].job_id or ""])
    digest = hashlib.sha256(NEW.encode()).hexdigest()
    assert lines == [f"{digest}  -", "atari sh seed=1"]
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert NEW not in said + str(jobs)
    assert NEW.encode() not in kept


def test_a_key_that_is_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.submit.fake import FLEET  # noqa: PLC0415

    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:key-a1b2c3"
    fleet = msgspec.structs.replace(FLEET, secrets={KEY: arn})
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(fleet))
    for name in ("WANDB_API_KEY", "NETRC", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RUNFLEET_FLEET", str(tmp_path / "fleet.json"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run_command(["wandb", "login"]) == 2
    assert "neither WANDB_API_KEY nor netrc" in capsys.readouterr().err
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(FLEET))
    assert run_command(["wandb", "login", "--wandb-key", "0" * 40]) == 3
    assert "pulumi config set --secret wandbApiKey" in capsys.readouterr().err
