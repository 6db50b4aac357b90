"""A demo that is stopped leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import psutil
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.engine]


@pytest.mark.parametrize(
    ("moment", "step"),
    [("the sandbox is up at", "A local AWS"), ("ComputeEnvironment", "A fleet")],
)
def test_a_demo_that_is_ended_takes_everything_down(moment: str, step: str, tmp_path: Path) -> None:
    """Whatever runs at that moment: a command, the engine with its plugins, or nothing."""
    stack_file = ROOT / "Pulumi.demo.yaml"
    before = stack_file.read_bytes()
    with start(tmp_path) as demo:
        assert demo.stdout is not None
        said = list(until(moment, demo.stdout))
        demo.send_signal(signal.SIGTERM)
        said += demo.stdout.readlines()
    text = "".join(said)
    assert demo.returncode == 130, text
    assert "all was taken down" in text
    assert re.findall(r"^\d\. (.*)", text, re.MULTILINE)[-1].startswith(step)
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []
    assert stack_file.read_bytes() == before


def test_what_a_killed_demo_has_left_is_taken_down_by_the_next(
    tool: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be cleaned up by a process that is killed; one that runs is left alone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    demo = tool("demo")
    with start(tmp_path) as killed:
        assert killed.stdout is not None
        list(until("the sandbox is up at", killed.stdout))
        demo.end_leftovers()
        assert processes_of(tmp_path) != [], "it still runs"
        killed.kill()
    assert processes_of(tmp_path) != []
    demo.end_leftovers()
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def start(tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, ROOT / "tools" / "demo.py"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def until(moment: str, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if moment in line:
            return
    pytest.fail(f"the demo ended without a word of {moment}")


def processes_of(folder: Path) -> list[list[str]]:
    """Processes that know the folder from their command line or their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            told = [*words, *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if process.pid != os.getpid() and any(str(folder) in word for word in told):
            found.append(words)
    return found
