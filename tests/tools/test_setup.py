"""The set-up takes what the machine has, and says in one message what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
Tool = Callable[[str], ModuleType]
Make = Callable[[str, str], Path]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone that was never set up, as far as the choice of a Pulumi CLI looks at it."""
    folder = tmp_path / "clone"
    for module in ("pulumi-cli", "pulumi-language-python"):
        shutil.copytree(ROOT / "tools" / module, folder / "tools" / module)
    return folder


@pytest.fixture
def pulumi_cli(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = tool("pulumi_cli")
    monkeypatch.setattr(module, "GO_PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return module


def make_pulumi(executable: Make, version: str, *others: str) -> None:
    executable("pulumi", f"echo {version}")
    for name in others:
        executable(name, "exit 0")


HOST = ("pulumi-language-python", "pulumi-language-python-exec")


def test_a_recent_cli_on_path_is_taken(
    pulumi_cli: ModuleType, clone: Path, executable: Make
) -> None:
    """No Go is needed then."""
    make_pulumi(executable, "v3.300.1", *HOST)
    assert pulumi_cli.choose(clone) is pulumi_cli.Choice.ON_PATH


@pytest.mark.parametrize(
    ("version", "others", "why"),
    [
        ("v3.271.9", HOST, "is v3.271.9, older than 3.272.0"),
        ("v3.300.1", HOST[:1], "has no pulumi-language-python-exec beside it"),
        ("", HOST, "does not tell its version"),
    ],
)
def test_what_is_wrong_with_a_cli_and_no_go(
    pulumi_cli: ModuleType,
    clone: Path,
    executable: Make,
    version: str,
    others: tuple[str, ...],
    why: str,
) -> None:
    """One message: what is there, why it won't do, how to get either."""
    make_pulumi(executable, version, *others)
    with pytest.raises(pulumi_cli.Missing) as missing:
        pulumi_cli.choose(clone)
    said = str(missing.value)
    assert why in said
    assert "no Go to build it with" in said
    assert said.endswith("make setup")


@pytest.mark.parametrize(
    ("version", "toolchain", "is_enough"),
    [
        ("go1.26.6", "local", True),
        ("go1.27", "local", True),
        ("go1.26.5", "local", False),
        ("go1.22.0", "auto", True),
        ("go1.19.8", "auto", False),
    ],
)
def test_go_builds_when_it_is_new_enough_or_can_renew_itself(
    pulumi_cli: ModuleType,
    clone: Path,
    executable: Make,
    version: str,
    toolchain: str,
    is_enough: bool,  # noqa: FBT001 # a column of the table
) -> None:
    """Go fetches the toolchain that go.mod names, from 1.21 on and unless told not to."""
    executable("go", f"echo {version}; echo {toolchain}")
    if is_enough:
        assert pulumi_cli.choose(clone) is pulumi_cli.Choice.TO_BUILD
    else:
        with pytest.raises(pulumi_cli.Missing, match=version):
            pulumi_cli.choose(clone)


def test_what_was_built_is_used_until_its_modules_change(
    pulumi_cli: ModuleType, clone: Path
) -> None:
    """An interrupted or outdated build does not count."""
    target = clone / ".pulumi-bin"
    target.mkdir()
    for name in ("pulumi", *HOST):
        (target / name).touch(0o755)
    with pytest.raises(pulumi_cli.Missing):
        pulumi_cli.choose(clone)
    (target / "built").write_text(pulumi_cli._fingerprint(clone))
    assert pulumi_cli.choose(clone) is pulumi_cli.Choice.BUILT
    with (clone / "tools" / "pulumi-cli" / "go.sum").open("a") as sums:
        sums.write("another v1.0.0 h1:=\n")
    with pytest.raises(pulumi_cli.Missing):
        pulumi_cli.choose(clone)


def test_an_activated_venv_finds_what_was_built_and_only_that(
    pulumi_cli: ModuleType, tmp_path: Path
) -> None:
    """With a CLI on PATH, what an earlier set-up has put there would hide it."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    pulumi_cli.link(pulumi_cli.Choice.BUILT, tmp_path / ".venv" / "bin")
    link = tmp_path / ".venv" / "bin" / "pulumi"
    host = link.with_name("pulumi-language-python")
    assert host.parent.joinpath(host.readlink()).resolve() == tmp_path / ".pulumi-bin" / host.name
    pulumi_cli.link(pulumi_cli.Choice.ON_PATH, tmp_path / ".venv" / "bin")
    assert list((tmp_path / ".venv" / "bin").iterdir()) == []


def test_what_was_built_runs_with_venv_though_it_is_not_activated(
    pulumi_cli: ModuleType, tmp_path: Path
) -> None:
    own, built = tmp_path / ".venv" / "bin", tmp_path / ".pulumi-bin"
    for folder in (own, built):
        folder.mkdir(parents=True)
    (built / "pulumi").write_text('#!/bin/sh\ncommand -v python3\necho "$@"\n')
    (own / "python3").write_text("#!/bin/sh\n")
    for program in (built / "pulumi", own / "python3"):
        program.chmod(0o755)
    pulumi_cli.link(pulumi_cli.Choice.BUILT, own)
    (tmp_path / "elsewhere").symlink_to(own / "pulumi")
    done = subprocess.run(
        [tmp_path / "elsewhere", "up", "a b"],
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(own / "python3"), "up a b"]


def set_up(folder: Path, path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs tools/setup.sh where setup.py only tells that it was reached."""
    (folder / "tools").mkdir(exist_ok=True)
    shutil.copy(ROOT / "tools" / "setup.sh", folder / "tools")
    (folder / "tools" / "setup.py").write_text("print('reached')\n")
    places = os.pathsep.join([str(path), str(folder / "system")])
    (folder / "system").mkdir(exist_ok=True)
    for name in ("dirname", "cat"):
        found = shutil.which(name)
        assert found
        (folder / "system" / name).symlink_to(found)
    return subprocess.run(
        ["/bin/sh", "tools/setup.sh"],
        cwd=folder,
        env={"PATH": places, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_python_that_runs_is_found_behind_shims_and_old_ones(
    tmp_path: Path, executable: Make
) -> None:
    """A shim says "not installed" and fails; an old python3 is no use."""
    executable("python3", "exit 1")
    executable("python3.13", "exit 127")
    folder = executable("python3.12", f'exec {sys.executable} "$@"')
    done = set_up(tmp_path, folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "reached\n"


def test_no_python_is_told_with_what_to_install(tmp_path: Path, executable: Make) -> None:
    """Before anything else happens."""
    done = set_up(tmp_path, executable("python3", "exit 1"))
    assert done.returncode == 1
    assert "apt-get install python3 python3-venv" in done.stderr


def test_a_chosen_python_that_will_not_do_is_named(tmp_path: Path, executable: Make) -> None:
    """No other is taken in its place."""
    folder = executable("python3", f'exec {sys.executable} "$@"')
    done = set_up(tmp_path, folder, PYTHON="/no/such/python")
    assert done.returncode == 1
    assert "PYTHON=/no/such/python is not a Python 3.10" in done.stderr


def test_the_matrix_skips_a_shim(
    tool: Tool, executable: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name on PATH is no interpreter yet."""
    matrix = tool("matrix")
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = executable(f"python{own}", "exit 127")
    monkeypatch.setattr(matrix, "places", lambda _: [folder / f"python{own}", sys.executable])
    assert matrix.find(own) == sys.executable
    assert matrix.find("3.99") is None
