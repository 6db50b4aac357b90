"""Runs the quick tests on every other supported Python that this machine has.

Each gets an environment of its own under .matrix/, with the versions of the lock. A Python that
is missing is told, never an error: what matters is that those that are here agree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.10", "3.11", "3.12", "3.13")
QUICK = ("-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not slow and not engine")
EXTRAS = ("examples", "infra", "sandbox", "test")
"""What the quick tests import."""


def main() -> int:
    """0 when the tests pass on each Python found."""
    own = ".".join(map(str, sys.version_info[:2]))
    failed = []
    for version in SUPPORTED:
        if version == own:
            continue
        python = find(version)
        if python is None:
            print(f"matrix: no Python {version} on this machine", flush=True)
            continue
        print(f"matrix: Python {version} ({python})", flush=True)
        started = time.monotonic()
        if not passes(version, python):
            failed.append(version)
        print(f"matrix: Python {version} took {time.monotonic() - started:.0f} s", flush=True)
    if failed:
        print(f"matrix: failed on Python {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


def find(version: str) -> Path | None:
    """The first Python of that version that really runs."""
    ask = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for place in places(version):
        try:
            said = subprocess.run([place, "-c", ask], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        if said.stdout.strip() == version:
            return place
    return None


def places(version: str) -> Iterator[Path]:
    """Where a Python of that version may be: a name on PATH can be a shim that runs nothing."""
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield Path(on_path)
    roots = {os.environ.get("PYENV_ROOT"), str(Path.home() / ".pyenv"), "/opt/pyenv"} - {None}
    for root in sorted(map(str, roots)):
        yield from sorted(Path(root).glob(f"versions/{version}.*/bin/python"), reverse=True)
    yield from (Path(folder, f"python{version}") for folder in ("/usr/local/bin", "/usr/bin"))


def passes(version: str, python: Path) -> bool:
    """Whether the quick tests pass there."""
    folder = ROOT / ".matrix" / version
    uv = [Path(sys.executable).with_name("uv"), "--quiet"]
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    install = [*uv, "pip", "install", "--python", folder, "--requirement", "pyproject.toml"]
    steps = (
        [*uv, "venv", "--allow-existing", "--python", python, folder],
        # Constraints bring the lock's versions, and its hashes are checked.
        [*install, *extras, "--constraint", "requirements.lock"],
        [folder / "bin" / "python", "-m", "pytest", *QUICK],
    )
    return all(subprocess.run(step, cwd=ROOT, check=False).returncode == 0 for step in steps)


if __name__ == "__main__":
    sys.exit(main())
