"""submit on the own machine: what a user types, and what comes back, before anything is sent."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from submit.commands import run_command

RUN = ("run", "--queue", "local", "--dry-run")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUNFLEET_FLEET", "RUNFLEET_STACK", "RUNFLEET_PROJECT", "PULUMI_STACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RUNFLEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


def test_a_dry_run_says_where_and_with_what(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--seeds", "2", "--cores-per-run", "1", "--workers", "1", "--", "true")
    assert run_command([*RUN, *words]) == 0
    out, _ = capsys.readouterr()
    assert f"folder      {tmp_path}\n" in out
    assert "1 vCPU" in out
    assert "machine is lost" not in out, "nothing is tried again unasked"
    assert list(tmp_path.iterdir()) == [], "a dry run leaves nothing"


def test_the_same_words_in_another_folder_are_another_experiment(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        for workers in ("1", "2"):
            words = ("--json", "--workers", workers, "--", "true")
            assert run_command([*RUN, *words]) == 0
            found.append(msgspec.json.decode(capsys.readouterr().out)["experiment"])
    assert found[0] == found[1] != found[2] == found[3]


def test_the_own_machine_is_shown_where_no_fleet_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["queues"]) == 0
    out, err = capsys.readouterr()
    assert "local" in out
    assert "no fleet is known here" in err


@pytest.mark.parametrize("option", [("--workers", "2"), ("--foreground",)])
def test_options_of_the_own_machine_are_no_others(
    capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    assert run_command(["run", "--queue", "c5-large", *option, "--", "true"]) == 2
    assert f"{option[0]} is for the own machine" in capsys.readouterr().err


def test_nobody_falls_back_from_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([*RUN, "--fallback", "c5-large", "--", "true"]) == 2
    assert "nothing to fall back from" in capsys.readouterr().err


def test_the_key_of_the_line_is_the_runs_environment_and_nothing_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    key = "0123456789" * 4
    line = [*RUN[:-1], "--wandb-key", key, "--foreground", "--"]
    check = f'[ "$WANDB_API_KEY" = "{key[:20]}""{key[20:]}" ]'
    assert run_command([*line, "sh", "-c", check]) == 0, capsys.readouterr()
    assert key not in "".join(capsys.readouterr())
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if key.encode() in path.read_bytes()]


@pytest.mark.parametrize("key", ["hunter2", "a b" * 20])
def test_a_key_that_is_none_is_told(capsys: pytest.CaptureFixture[str], key: str) -> None:
    assert run_command([*RUN, "--wandb-key", key, "--", "true"]) == 2
    err = capsys.readouterr().err
    assert "--wandb-key is no key of Weights & Biases" in err
    assert key not in err
