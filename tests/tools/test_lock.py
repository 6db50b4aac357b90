"""requirements.lock holds all that pyproject.toml asks for, for anybody's package host."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ENTRY = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?==([^\s;]+)(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL
)


def locked() -> dict[str, set[Version]]:
    """Name to versions: a package may have another one for another Python."""
    found: dict[str, set[Version]] = {}
    for entry in ENTRY.finditer(LOCK):
        found.setdefault(canonicalize_name(entry[1]), set()).add(Version(entry[3]))
    return found


def asked() -> Iterator[Requirement]:
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for requirement in (Requirement(text) for texts in lists for text in texts):
        if requirement.name != PROJECT["name"]:
            yield requirement


@pytest.mark.parametrize("requirement", sorted(asked(), key=str), ids=str)
def test_each_dependency_is_locked_to_a_version_that_it_allows(requirement: Requirement) -> None:
    """A changed pyproject.toml comes with `make lock`."""
    versions = locked().get(canonicalize_name(requirement.name), set())
    assert versions, f"{requirement.name} is not in requirements.lock: make lock"
    assert all(version in requirement.specifier for version in versions)


def test_each_entry_has_hashes() -> None:
    """What was tested is what is installed."""
    entries = list(ENTRY.finditer(LOCK))
    assert len(entries) > 50
    assert [entry[1] for entry in entries if "--hash=sha256:" not in entry[4]] == []


def applies(requirement: Requirement, extras: set[str]) -> bool:
    """Whether a package that is itself wanted with these extras wants it on this machine."""
    marker = requirement.marker
    return not marker or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def test_the_lock_has_the_extras_with_which_its_packages_are_wanted() -> None:
    """Else pip 23 takes the newest version there, and refuses it: the lock has no hash of that."""
    extras: dict[str, set[str]] = {}
    for entry in ENTRY.finditer(LOCK):
        words = {word.strip() for word in (entry[2] or "").split(",")} - {""}
        extras.setdefault(canonicalize_name(entry[1]), set()).update(words)
    wanted = [
        requirement
        for found in distributions()
        for requirement in map(Requirement, found.requires or [])
        if requirement.extras
        and applies(requirement, extras.get(canonicalize_name(found.name), set()))
    ]
    assert any(requirement.name == "coverage" for requirement in wanted)  # of pytest-cov
    for requirement in wanted:
        name = canonicalize_name(requirement.name)
        assert requirement.extras <= extras.get(name, requirement.extras), str(requirement)


def test_the_lock_names_no_host() -> None:
    """Everybody's own package host is asked."""
    assert "://" not in LOCK
    assert not re.search(r"^\s*-", LOCK.replace("    --hash", ""), re.MULTILINE), (
        "an option for pip"
    )


def test_pulumi_makes_the_same_venv() -> None:
    """Its own CLI, in a clone without .venv, makes one of requirements.txt and looks nowhere else."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["-r requirements.lock"]
