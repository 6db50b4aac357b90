"""submit resume: what W&B saw crash goes back, exactly that, under the same W&B ids."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("wandb", reason="wandb is not installed")

from submit import session as session_module
from submit.commands import run_command
from submit.ranges import decode_ranges
from tests.submit.fake import FLEET, Clock, FakeBatch
from tests.submit.tracking.standin import KEY, Standin, standin

pytestmark = pytest.mark.slow


@pytest.fixture
def wandb_server() -> Iterator[Standin]:
    with standin() as found:
        yield found


@pytest.fixture
def batch(tmp_path: Path, wandb_server: Standin, monkeypatch: pytest.MonkeyPatch) -> FakeBatch:
    clock = Clock()
    backend = FakeBatch(clock)
    for name in list(os.environ):
        if name.startswith(("RUNFLEET_", "PULUMI_", "WANDB_", "AWS_")):
            monkeypatch.delenv(name)
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(FLEET))
    told = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "RUNFLEET_FLEET": str(tmp_path / "fleet.json"),
        "RUNFLEET_HOME": str(tmp_path / "home"),
        "RUNFLEET_SHARED": str(tmp_path / "shared"),
        "USER": "ada",
        "WANDB_API_KEY": KEY,
        "WANDB_BASE_URL": wandb_server.url,
        "WANDB_SILENT": "true",
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(session_module, "_aws", lambda _region: backend)
    monkeypatch.setattr("time.sleep", clock.sleep)
    return backend


def test_exactly_what_crashed_goes_back(
    batch: FakeBatch, wandb_server: Standin, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--queue", "c6g-medium-spot", "--seeds", "6", "--json", "--", "python", "x.py"]
    assert run_command(words) == 0
    identity = msgspec.json.decode(capsys.readouterr().out)["experiment"]
    ends: list[tuple[str, str | None]] = [
        ("SUCCEEDED", None),
        ("FAILED", "Essential container in task exited"),
        ("RUNNING", None),
        ("FAILED", "Host EC2 (instance i-0) terminated."),
        ("SUCCEEDED", None),
        ("FAILED", "Essential container in task exited"),
    ]
    batch.jobs["job-0"].children = ends
    for number, state in enumerate(("finished", "failed", "crashed", "crashed", "crashed")):
        wandb_server.run(f"{identity}-{number}", state)
    wandb_server.run("zzzzzzzzzzzz-7", "crashed")
    wandb_server.run("somebodys", "crashed")

    assert run_command(["resume", "lab/atari", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert said.out == f"3 runs of {identity} (x) to send again: 1, 3, 4\n"
    assert f"1 run of {identity} left alone: under way" in said.err
    assert "1 run of experiments that were not sent from here: zzzzzzzzzzzz" in said.err
    assert len(batch.jobs) == 1

    assert run_command(["resume", "lab/atari"]) == 0
    assert f"3 runs of {identity} (x) sent again: 1, 3, 4" in capsys.readouterr().out
    (again,) = [job for name, job in batch.jobs.items() if name != "job-0"]
    assert again.name.startswith(f"{identity}-1-0")
    runs = batch.poll([again.job_id])[again.job_id].runs
    assert list(decode_ranges(runs)) == [1, 3, 4]

    assert run_command(["resume", "lab/atari", "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out) == {
        "experiments": [{"experiment": identity, "runs": [], "under_way": [1, 2, 3, 4], "sent": 0}],
        "not_from_here": {"zzzzzzzzzzzz": 1},
    }


def test_a_state_that_is_none(batch: FakeBatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["resume", "lab/atari", "--state", "crashed,broken"]) == 2
    assert "--state: 'broken' is no state" in capsys.readouterr().err
    assert run_command(["resume", "lab/none"]) == 2
    assert "no project lab/none" in capsys.readouterr().err
    assert batch.calls == []
