"""The example learns, says so in the form that `submit results` reads, and stops when told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "cem.py"
pytestmark = pytest.mark.slow


def command(*options: str) -> list[str]:
    return [sys.executable, str(EXAMPLE), *options]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*options), capture_output=True, text=True, check=False)


def metrics_of(said: str) -> dict[str, float]:
    word, _, numbers = said.splitlines()[-1].partition(" ")
    assert word == "runfleet-metrics"
    metrics = json.loads(numbers)
    assert isinstance(metrics, dict)
    return metrics


def first_return(said: str) -> float:
    return float(said.splitlines()[0].split()[-1])


@pytest.mark.parametrize("seed", ["0", "7"])
def test_cartpole_is_learned(seed: str) -> None:
    """From a random policy's return to the pole nearly never falling."""
    done = run("--env-id", "CartPole-v1", "--seed", seed)
    assert done.returncode == 0, done.stderr
    assert first_return(done.stdout) < 60
    assert metrics_of(done.stdout)["return"] > 400


def test_acrobot_is_learned() -> None:
    """From never swinging up within the episode to doing it in a quarter of the time."""
    done = run("--env-id", "Acrobot-v1", "--seed", "2", "--iterations", "6")
    assert done.returncode == 0, done.stderr
    assert first_return(done.stdout) < -400
    assert metrics_of(done.stdout)["return"] > -150


def test_the_same_seed_gives_the_same_run() -> None:
    """A run is told by its parameters and its seed."""
    options = ("--iterations", "2", "--population", "10", "--seed")
    first, again, other = (metrics_of(run(*options, seed).stdout) for seed in ("3", "3", "4"))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--env-id", "NoSuch-v1"], "NoSuch"),
        (["--env-id", "Pendulum-v1"], "no discrete actions"),
        (["--env-id", "FrozenLake-v1"], "no flat observation"),
        (["--iterations", "0"], "--iterations"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_what_can_not_be_trained_is_told_in_a_line(options: list[str], said: str) -> None:
    """No traceback for a wrong option."""
    done = run(*options)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_sigterm_ends_it_at_once_as_a_failure() -> None:
    """What a spot interruption or a cancelled run sends."""
    with subprocess.Popen(
        command("--env-id", "Acrobot-v1", "--iterations", "1000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as training:
        assert training.stdout is not None
        training.stdout.readline()  # it has begun
        training.send_signal(signal.SIGTERM)
        said, complaint = training.communicate()
    assert training.returncode == 128 + signal.SIGTERM
    assert "told to stop" in complaint
    assert "runfleet-metrics" not in said
