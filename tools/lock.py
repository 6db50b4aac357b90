"""Renews requirements.lock: all that the project needs, each package with its version and hashes.

One lock for every supported Python; it names no package host, so that each user's own is asked.
What it holds already stays as it is where pyproject.toml still allows it; `--upgrade` takes the
newest of all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = (
    *("pip", "compile", "pyproject.toml", "--extra", "dev", "--output-file"),
    *("requirements.lock", "--universal", "--python-version", "3.10", "--generate-hashes"),
    *("--no-header", "--no-emit-index-url", "--quiet"),
)


def main() -> int:
    """The exit status of uv."""
    uv = Path(sys.executable).with_name("uv")
    return subprocess.run([uv, *COMMAND, *sys.argv[1:]], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
