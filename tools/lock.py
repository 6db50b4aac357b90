"""Renews requirements.lock: all that the project needs, each package with its version and hashes.

And images/requirements.lock, what the images bring, of the same versions. One lock for every
supported Python; it names no package host, so that each user's own is asked.
What it holds already stays as it is where pyproject.toml still allows it; `--upgrade` takes the
newest of all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOW = (
    *("--universal", "--python-version", "3.10", "--generate-hashes"),
    # Where a package is wanted with an extra, pips of 2023 take its newest version, which has no
    # hash here, unless the extra stands in the lock too (pypa/pip#9644, #12345).
    *("--no-strip-extras", "--no-header", "--no-emit-index-url", "--quiet"),
)
COMMANDS = (
    ("pyproject.toml", "--extra", "dev", "--output-file", "requirements.lock"),
    (
        *("images/requirements.in", "--constraints", "requirements.lock"),
        *("--output-file", "images/requirements.lock"),
    ),
)


def main() -> int:
    """The exit status of uv."""
    uv = Path(sys.executable).with_name("uv")
    for command in COMMANDS:
        words = [uv, "pip", "compile", *command, *HOW, *sys.argv[1:]]
        done = subprocess.run(words, cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
