"""Sets the clone up: .venv with all that the lock names, and a Pulumi CLI on its PATH.

Runs before anything is installed, so on the standard library alone. Run again, it does what is
missing; an interrupted part is done afresh.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pulumi_cli
from machine import Missing, answer_of, say

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
DONE = VENV / ".runfleet-done"
UNFINISHED = VENV / ".runfleet-unfinished"
PACKAGES = ("infra", "sandbox", "submit")


def main() -> None:
    """Does what is missing; says nothing when that is nothing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    done = is_done()
    if not done and importlib.util.find_spec("ensurepip") is None:
        package = f"python3.{sys.version_info.minor}-venv"
        raise Missing(
            f"{sys.executable} comes without venv. On Debian or Ubuntu:\n"
            f"    sudo apt-get install {package}"
        )
    choice = pulumi_cli.choose(ROOT)  # refuses before the long part
    with contextlib.ExitStack() as cleanup:
        builds = pulumi_cli.start_builds(ROOT, choice, cleanup)
        if not done:
            install()
        pulumi_cli.finish_builds(ROOT, builds)
    pulumi_cli.link(choice, PYTHON.parent)
    if builds or not done:
        say(f"done in {time.monotonic() - started:.0f} s; next: . .venv/bin/activate")


def is_done() -> bool:
    """Whether .venv runs and holds what lock and pyproject say, under the Python asked for."""
    version = venv_version()
    asked = sys.version if os.environ.get("PYTHON") else version
    if version is None or version != asked or UNFINISHED.exists() or not DONE.exists():
        return False
    return DONE.read_text() == fingerprint(version)


def venv_version() -> str | None:
    """The whole version of .venv's Python, None when there is none that runs."""
    return answer_of([PYTHON, "-c", "import sys; print(sys.version)"])


def fingerprint(version: str) -> str:
    """Changes with all that .venv is made from."""
    digest = hashlib.sha256(version.encode())
    for path in (LOCK, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def install() -> None:
    """Makes .venv anew, or brings it up to date when it is whole and its Python is wanted."""
    version = venv_version()
    asked = sys.version if os.environ.get("PYTHON") else version
    if version is None or version != asked or UNFINISHED.exists():
        # .venv's own Python may be running this: the one it was made from makes the next.
        base = getattr(sys, "_base_executable", sys.executable)
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir()
        UNFINISHED.touch()
        subprocess.run([base, "-m", "venv", VENV], check=True)
    UNFINISHED.touch()
    say("installing what requirements.lock names into .venv (a minute, when it is new)")
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    subprocess.run([*pip, "--require-hashes", "--requirement", LOCK], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", ROOT], check=True)
    # Where PYTHONDONTWRITEBYTECODE is set, every start would compile them again.
    compile_all = [PYTHON, "-m", "compileall", "-q", "-j0"]
    subprocess.run([*compile_all, *(ROOT / name for name in PACKAGES)], check=True)
    version = venv_version()
    assert version is not None
    DONE.write_text(fingerprint(version))
    UNFINISHED.unlink()


if __name__ == "__main__":
    try:
        main()
    except Missing as err:
        sys.exit(f"setup: {err}")
    except subprocess.CalledProcessError as err:
        # What failed has said why.
        sys.exit(f"setup: `{err.cmd[0]} …` failed; then run this again:\n    make setup")
    except KeyboardInterrupt:
        sys.exit("\nsetup: interrupted; go on with:\n    make setup")
