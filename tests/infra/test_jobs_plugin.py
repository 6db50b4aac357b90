"""infra.jobs_plugin as a process; what it tells is looked at in test_standing, and by the engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = "infra/plugin/pulumi-resource-runfleet-jobs"
ENGINE = """
import subprocess, sys
plugin = subprocess.Popen([sys.executable, "-m", sys.argv[1], "127.0.0.1:1"], stdout=subprocess.PIPE)
print(plugin.pid, plugin.stdout.readline().decode(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("module", ["infra.jobs_plugin", "sandbox.provider"])
def test_ends_with_an_engine_that_is_killed(module: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENGINE, module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as engine:
        assert engine.stdout
        pid, port = engine.stdout.readline().split()
        assert port.isdigit()
        plugin = psutil.Process(int(pid))
        engine.kill()
    try:
        plugin.wait(30)
    except psutil.TimeoutExpired:
        plugin.kill()
        pytest.fail("it goes on without the engine")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone in which nobody has typed `make setup`."""
    (tmp_path / LAUNCHER).parent.mkdir(parents=True)
    shutil.copy(ROOT / LAUNCHER, tmp_path / LAUNCHER)
    return tmp_path


@pytest.mark.parametrize("where", ["in .venv", "on PATH"])
def test_runs_with_the_python_that_runs_the_program(clone: Path, where: str) -> None:
    path = os.environ["PATH"]
    if where == "in .venv":
        (clone / ".venv").symlink_to(sys.prefix)
    else:
        path = os.pathsep.join([str(Path(sys.executable).parent), path])
    with subprocess.Popen(
        [clone / LAUNCHER, "127.0.0.1:1"],
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as plugin:
        assert plugin.stdout
        assert re.fullmatch(r"\d+\n", plugin.stdout.readline())
        plugin.terminate()


def test_says_what_to_type_where_no_python_has_pulumi(clone: Path) -> None:
    dirname = shutil.which("dirname")
    assert dirname
    (clone / "dirname").symlink_to(dirname)
    done = subprocess.run(
        [clone / LAUNCHER, "127.0.0.1:1"],
        env={"PATH": str(clone)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "type: make setup" in done.stderr
