"""submit results: what comes back as table, CSV, JSON and picture, from logs and from files."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import msgspec
import pytest

from submit import session as session_module
from submit.commands import run_command
from submit.commands.text import number
from tests.submit.fake import FLEET, Clock, FakeBatch

WORDS = ["run", "--queue", "c6g-medium", "--env-ids", "A,B", "--seeds", "2", "--", "x"]


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBatch:
    """An experiment that is over: run N tells a return of 10 N at the end, half of it before."""
    clock = Clock()
    backend = FakeBatch(clock)
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(FLEET))
    for name in list(os.environ):
        if name.startswith(("RUNFLEET_", "PULUMI_", "WANDB_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RUNFLEET_FLEET", str(tmp_path / "fleet.json"))
    monkeypatch.setenv("RUNFLEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(session_module, "_aws", lambda _region: backend)
    monkeypatch.setattr("time.sleep", clock.sleep)
    assert run_command(WORDS) == 0
    backend.end("job-0", ("SUCCEEDED", None))
    backend.logs = {
        f"job-0/{run}/0": [
            f'runfleet-metrics {{"step": {step}, "return": {run * step}}}' for step in (5, 10)
        ]
        for run in range(4)
    }
    return backend


@pytest.mark.usefixtures("batch")
def test_csv_of_runs_and_of_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run_command(["results", "latest", "--csv", "runs"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["env-id"], row["seed"], row["return"]) for row in rows] == [
        ("A", "1", "0.0"),
        ("A", "2", "10.0"),
        ("B", "1", "20.0"),
        ("B", "2", "30.0"),
    ]
    assert run_command(["results", "latest", "--csv", "summary", "--metric", "return"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["env-id"], row["n"], row["mean"]) for row in rows] == [
        ("A", "2", "5.0"),
        ("B", "2", "25.0"),
    ]


@pytest.mark.usefixtures("batch")
def test_environments_together(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy", reason="scipy is not installed")
    capsys.readouterr()
    words = ["results", "latest", "--json", "--over", "env-id", "--metric", "return"]
    assert run_command(words) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    (one,) = found["summary"]
    assert (one["parameters"], one["n"], one["mean"], one["iqm"]) == ({}, 4, 15.0, 15.0)
    assert (one["low"], one["high"]) == (10.0, 20.0), "not drawn within each environment"
    assert [run["metrics"] for run in found["runs"]][3] == {"return": 30.0}


@pytest.mark.usefixtures("batch")
def test_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "curve.svg"
    assert run_command(["results", "latest", "--plot", str(path)]) == 0
    assert capsys.readouterr().err.endswith(f"{path}: return over the steps\n")
    assert path.stat().st_size > 1000


@pytest.mark.usefixtures("batch")
def test_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "2.jsonl").write_text('{"loss": 0.5}\n{"loss": 0.25}\n')
    capsys.readouterr()
    assert run_command(["results", "latest", "--json", "--file", f"{tmp_path}/{{run}}.jsonl"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert [(run["run"], run["metrics"]) for run in found["runs"]] == [(2, {"loss": 0.25})]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metric", "retrun"], "no run tells 'retrun'; there is: step, return"),
        (["--over", "lr"], "there is no parameter 'lr' (there is: env-id)"),
        (["--json", "--csv", "runs"], "--json and --csv are two answers"),
        (["--file", "x", "--wandb", "a/b"], "--file and --wandb are two sources"),
        (["--file", "{lr}"], "there is no {lr}"),
        (["--plot", "curve.gif"], "curve.gif is none of .png, .svg, .pdf"),
        (["--wandb", "lab"], "'lab' is no ENTITY/PROJECT"),
    ],
)
@pytest.mark.usefixtures("batch")
def test_mistakes(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["results", "latest", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "text"),
    [(-1.1e308, "-1.1e+308"), (1e6, "1000000"), (12345.678, "12346"), (2.0, "2"), (0.5, "0.5")],
)
def test_numbers_are_as_long_as_people_read_them(value: float, text: str) -> None:
    assert number(value) == text
