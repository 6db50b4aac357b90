"""images/*/Dockerfile: what can be said of them without building them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from submit.images.context import ignore_rules, iter_context

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "images").glob("*/Dockerfile"))
each = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)


def test_there_is_one_for_cpus_and_one_for_gpus() -> None:
    assert [path.parent.name for path in DOCKERFILES] == ["cpu", "gpu"]


@each
def test_what_is_copied_is_in_the_context(path: Path) -> None:
    context = set(iter_context(ROOT, ignore_rules(ROOT, path)))
    text = path.read_text().replace("${REQUIREMENTS}", "images/requirements.lock")
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )*(\S+) ", text, re.MULTILINE)
    assert len(copied) == 3
    for source in copied:
        assert any(name == source or name.startswith(f"{source}/") for name in context), source


@each
def test_nothing_else_leaves_the_machine(path: Path) -> None:
    """Neither a stack's configuration nor a folder that tools have made."""
    context = set(iter_context(ROOT, ignore_rules(ROOT, path)))
    assert {name.partition("/")[0] for name in context} == {"examples", "images"}


@each
def test_what_an_image_promises(path: Path) -> None:
    last = path.read_text().rpartition("\nFROM ")[2]
    assert "\nUSER 10001\n" in last
    assert 'ENTRYPOINT ["tini", "-s", "--", "entrypoint"]' in last
    assert "org.opencontainers.image.title" in last
    assert 'ARG VIDEO="ffmpeg xvfb"' in last
    assert "DISPLAY" not in re.sub(r"^#.*$", "", last, flags=re.MULTILINE)


@each
def test_uv_is_the_locked_one(path: Path) -> None:
    locked = re.search(r"^uv==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert locked
    assert f"ARG UV_VERSION={locked[1]}\n" in path.read_text()


def test_the_images_packages_are_locked_with_hashes() -> None:
    lock = (ROOT / "images" / "requirements.lock").read_text()
    entries = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert {"gymnasium", "numpy", "wandb"} <= {re.split(r"\W", entry)[0] for entry in entries}
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in lock


@pytest.mark.slow
@each
def test_hadolint_has_no_complaint(path: Path) -> None:
    program = shutil.which("hadolint")
    if not program:
        pytest.skip("hadolint is not installed: there is none for this system in the lock")
    done = subprocess.run([program, str(path)], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b""), done.stdout.decode()
