"""infra.jobs_plugin as a process; what it tells is looked at in test_standing, and by the engine."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

pytestmark = pytest.mark.slow

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
