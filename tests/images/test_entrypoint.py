"""images/entrypoint.sh in every shell found, and how a signal reaches what it starts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRYPOINT = ROOT / "images" / "entrypoint.sh"
SHELLS = [
    shell.split()
    for shell in ("sh", "dash", "bash --posix", "busybox sh")
    if shutil.which(shell.split()[0])
]
XVFB = """#!/bin/sh
echo "$@" >"$HERE/told"
[ "$MOOD" = dead ] && { echo "no screens found" >&2; exit 1; }
echo 42 >&3
exec sleep 1
"""

pytestmark = pytest.mark.slow
each_shell = pytest.mark.parametrize("shell", SHELLS, ids=" ".join)


def start(
    shell: list[str], *words: str, path: str = "", **environ: str
) -> subprocess.CompletedProcess[str]:
    base = {"PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]}
    return subprocess.run(
        [*shell, str(ENTRYPOINT), *words],
        env=base | environ,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )


@pytest.fixture
def xvfb(tmp_path: Path) -> Path:
    (tmp_path / "Xvfb").write_text(XVFB)
    (tmp_path / "Xvfb").chmod(0o755)
    return tmp_path


@each_shell
@pytest.mark.parametrize("wanted", [None, "", "0"])
def test_it_becomes_the_command(shell: list[str], wanted: str | None) -> None:
    environ = {} if wanted is None else {"VIRTUAL_DISPLAY": wanted}
    words = ["sh", "-c", 'printf "%s|" "$@" "${DISPLAY-none}"; exit 7', "sh", "a b", "", "$x", "*"]
    done = start(shell, *words, **environ)
    assert (done.returncode, done.stdout, done.stderr) == (7, "a b||$x|*|none|", "")


@each_shell
@pytest.mark.parametrize(("wanted", "size"), [("1", "1280x720x24"), ("64x48x8", "64x48x8")])
def test_a_display_when_it_is_asked_for(
    shell: list[str], xvfb: Path, wanted: str, size: str
) -> None:
    done = start(
        shell, "sh", "-c", "echo $DISPLAY", path=str(xvfb), HERE=str(xvfb), VIRTUAL_DISPLAY=wanted
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, ":42\n", "")
    assert f"-screen 0 {size} -nolisten tcp" in (xvfb / "told").read_text()


@each_shell
@pytest.mark.parametrize("wanted", ["yes", "64x48", "1; id", "64x48x8 -ac"])
def test_what_is_no_size_is_refused(shell: list[str], xvfb: Path, wanted: str) -> None:
    done = start(shell, "echo", "started", path=str(xvfb), HERE=str(xvfb), VIRTUAL_DISPLAY=wanted)
    assert (done.returncode, done.stdout) == (125, "")
    assert f"VIRTUAL_DISPLAY={wanted} is neither" in done.stderr
    assert not (xvfb / "told").exists()


@each_shell
def test_without_a_command(shell: list[str]) -> None:
    done = start(shell)
    assert (done.returncode, done.stderr) == (125, "entrypoint: no command was given\n")


def test_a_display_that_does_not_come(xvfb: Path) -> None:
    """What Xvfb itself says is told."""
    done = start(
        ["sh"], "echo", "started", path=str(xvfb), HERE=str(xvfb), MOOD="dead", VIRTUAL_DISPLAY="1"
    )
    assert (done.returncode, done.stdout) == (125, "")
    assert "no screens found" in done.stderr
    assert "Xvfb did not start" in done.stderr


@pytest.mark.skipif(
    not (shutil.which("Xvfb") and shutil.which("tini")), reason="Xvfb or tini is not installed"
)
def test_a_real_display(tmp_path: Path) -> None:
    """It is there when the command starts, and a second one finds another number."""
    noting = f'#!/bin/sh\necho $$ >>{tmp_path}/pids\nexec {shutil.which("Xvfb")} "$@"\n'
    (tmp_path / "Xvfb").write_text(noting)
    (tmp_path / "Xvfb").chmod(0o755)
    look = 'test -S "/tmp/.X11-unix/X${DISPLAY#:}" && echo "$DISPLAY"'
    # Ended within, so that tini, which they have for their parent, reaps them.
    end = f"kill $(cat {tmp_path}/pids); while kill -0 $(cat {tmp_path}/pids); do sleep 0.1; done"
    second = f"{look}; {{ {end}; }} 2>/dev/null"
    first = f"{look}; exec sh {ENTRYPOINT} sh -c '{second}'"
    done = start(
        ["tini", "-s", "--", "sh"], "sh", "-c", first, path=str(tmp_path), VIRTUAL_DISPLAY="64x48x8"
    )
    numbers = done.stdout.split()
    assert len(numbers) == len(set(numbers)) == 2, done.stderr


@pytest.mark.skipif(not shutil.which("tini"), reason="tini is not installed")
def test_a_signal_reaches_the_training_and_its_status_comes_back(xvfb: Path) -> None:
    """Through tini as the images have it, with a display and without."""
    train = "trap 'echo saved; exit 9' TERM; echo ready; while :; do sleep 0.1; done"
    for wanted in ("0", "1"):
        process = subprocess.Popen(
            ["tini", "-s", "--", "sh", str(ENTRYPOINT), "sh", "-c", train],
            env={
                "PATH": f"{xvfb}:{os.environ['PATH']}",
                "HERE": str(xvfb),
                "VIRTUAL_DISPLAY": wanted,
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        with process:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "saved\n"
            assert process.wait(timeout=20) == 9
