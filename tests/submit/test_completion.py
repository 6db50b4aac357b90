"""What the shell completes, as the shell asks for it (click.shell_completion)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from submit import api
from submit.commands import VERBS
from submit.commands.options import complete_experiment, complete_queue
from submit.experiment import Experiment

from .fake import FLEET, Clock, FakeBatch

MAIN = "from submit.commands import main; main()"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A fleet that is known, and an experiment that was sent."""
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(FLEET))
    environ = {
        "RUNFLEET_HOME": str(tmp_path / "home"),
        "RUNFLEET_SHARED": str(tmp_path / "shared"),
        "RUNFLEET_FLEET": str(tmp_path / "fleet.json"),
        "USER": "ada",
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    clock = Clock()
    backend = FakeBatch(clock)
    with api.Session(
        environ=environ, cwd=tmp_path, clock=clock, connect=lambda _: backend
    ) as session:
        experiment = Experiment(command=("python", "ppo.py"), name="ppo")
        api.send(session, api.plan(session, experiment, "c6g-medium"))
    return environ


def ask(environ: dict[str, str], words: str) -> list[str]:
    """The words that may stand at the end of the line."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN],
        env=environ
        | {
            "_SUBMIT_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        },
        cwd=environ["RUNFLEET_HOME"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("verb", VERBS)
def test_whoever_takes_an_experiment_or_a_queue_completes_it(verb: str) -> None:
    command = import_module(f"submit.commands.{verb}").command
    for one in [command, *getattr(command, "commands", {}).values()]:
        for param in one.params:
            metavar = (param.metavar or "").strip("[]…")
            wanted = {"EXPERIMENT": complete_experiment, "QUEUE": complete_queue}.get(metavar)
            if wanted and not getattr(param, "hidden", False):
                assert param._custom_shell_complete is wanted, param.name


@pytest.mark.slow
def test_queues_and_experiments_are_completed(environ: dict[str, str]) -> None:
    assert ask(environ, "submit ru") == ["run"]
    assert ask(environ, "submit run --queue c6") == ["c6g-medium", "c6g-medium-spot"]
    with api.Session(environ=environ) as session:
        ((identity, _),) = api.complete_experiments(session)
    assert ask(environ, f"submit logs {identity[:3]}") == [identity]
    assert ask(environ, "submit cancel lat") == ["latest"]
    assert ask(environ, f"submit status {identity[:3]}") == [identity]
    assert ask(environ, "submit run --queue lo") == ["local"]
    # Nobody is there to be told of a broken set-up while a person types.
    assert ask(environ | {"RUNFLEET_FLEET": "/nowhere"}, "submit run --queue c6") == []


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_takes_its_script(environ: dict[str, str], shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "completion", shell],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_SUBMIT_COMPLETE" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)
