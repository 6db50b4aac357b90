"""submit.stacks: where the fleet document comes from, and when the cache still counts.

`pulumi` is a script that counts its calls and answers from files; what the real one says is
quoted from it.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from submit.errors import ServiceFailed, SubmitError, WrongUse
from submit.fleet import Fleet
from submit.fleet_cache import MAX_AGE_S
from submit.session import Session
from submit.stacks import load_fleet

from .fake import FLEET, Clock

PULUMI = """#!/bin/sh
echo "$@" >>"$0.calls"
if [ -f "$0.error" ]; then cat "$0.error" >&2; exit 255; fi
cat "$0.output"
"""


class Project:
    """A project folder with a selected stack, whose states are in a folder."""

    def __init__(self, tmp: Path) -> None:
        self.folder = tmp / "project"
        (self.folder / "sub").mkdir(parents=True)
        (self.folder / "Pulumi.yaml").write_text("name: runfleet # the project\nruntime: python\n")
        self.pulumi = tmp / "bin" / "pulumi"
        self.pulumi.parent.mkdir()
        self.pulumi.write_text(PULUMI)
        self.pulumi.chmod(0o755)
        self.clock = Clock()
        self.environ = {
            "PATH": f"{self.pulumi.parent}:{os.environ['PATH']}",
            "RUNFLEET_HOME": str(tmp / "home"),
            "RUNFLEET_SHARED": str(tmp / "shared"),
            "PULUMI_HOME": str(tmp / "pulumi-home"),
            "PULUMI_BACKEND_URL": f"file://{tmp}/states",
        }
        digest = hashlib.sha1(str(self.folder / "Pulumi.yaml").encode()).hexdigest()  # noqa: S324 # Pulumi's choice
        workspaces = tmp / "pulumi-home" / "workspaces"
        self.selection = workspaces / f"runfleet-{digest}-workspace.json"
        self.selection.parent.mkdir(parents=True)
        self.selection.write_text('{"stack": "rl"}')
        self.state = tmp / "states" / ".pulumi" / "stacks" / "runfleet" / "rl.json"
        self.state.parent.mkdir(parents=True)
        self.state.write_text("{}")
        self.answer()

    def answer(self, **changes: Any) -> None:
        fleet = msgspec.structs.replace(FLEET, **changes)
        self.pulumi.with_name("pulumi.output").write_bytes(msgspec.json.encode(fleet))

    def fail(self, said: str) -> None:
        self.pulumi.with_name("pulumi.error").write_text(said)

    def load(self, *, fresh: bool = False, cwd: str = "sub", **given: Any) -> Fleet:
        session = Session(environ=self.environ, cwd=self.folder / cwd, clock=self.clock, **given)
        return load_fleet(session, fresh=fresh)

    @property
    def calls(self) -> list[str]:
        calls = self.pulumi.with_name("pulumi.calls")
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def touch(path: Path, text: str) -> None:
    """Another content, at another time, whatever the file system's clock can tell apart."""
    path.write_text(text)
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


def test_pulumi_is_asked_once(project: Project) -> None:
    assert project.load() == FLEET
    project.clock.sleep(10 * MAX_AGE_S)
    assert project.load(cwd=".") == FLEET
    assert project.calls == ["stack output fleet --json --non-interactive"]


def test_a_stack_that_changed_is_asked_for_again(project: Project) -> None:
    project.load()
    project.answer(image="other:2")
    touch(project.state, '{"new": true}')
    assert project.load().image == "other:2"
    assert len(project.calls) == 2


def test_a_stack_that_was_destroyed_is_noticed(project: Project) -> None:
    project.load()
    project.state.unlink()
    project.fail("error: no stack selected; please use `pulumi stack select` to choose one")
    with pytest.raises(WrongUse, match="no stack is selected"):
        project.load()


def test_another_selection_is_noticed(project: Project) -> None:
    project.load()
    project.answer(stack="vision")
    touch(project.selection, '{"stack": "vision"}')
    assert project.load().stack == "vision"


def test_a_selection_that_can_not_be_seen_is_asked_for_each_time(project: Project) -> None:
    project.selection.unlink()
    project.load()
    project.load()
    assert len(project.calls) == 2


@pytest.mark.parametrize(
    ("given", "environ"),
    [
        ({"stack": "vision"}, {}),
        ({}, {"RUNFLEET_STACK": "vision"}),
        ({}, {"PULUMI_STACK": "vision"}),
    ],
)
def test_each_stack_has_its_own_cache(
    project: Project, given: dict[str, str], environ: dict[str, str]
) -> None:
    project.load()
    project.answer(stack="vision")
    project.environ |= environ
    assert project.load(**given).stack == "vision"
    assert project.load(**given).stack == "vision"
    assert project.calls[1:] == ["stack output fleet --json --non-interactive --stack=vision"]


def test_a_stack_elsewhere_is_asked_for_after_a_while(project: Project) -> None:
    project.environ["PULUMI_BACKEND_URL"] = "https://api.example.com"
    project.load()
    project.clock.sleep(MAX_AGE_S - 1)
    project.load()
    assert len(project.calls) == 1
    project.clock.sleep(2)
    project.load()
    assert len(project.calls) == 2


def test_the_last_login_tells_where_the_stacks_are(project: Project) -> None:
    url = project.environ.pop("PULUMI_BACKEND_URL")
    home = Path(project.environ["PULUMI_HOME"])
    (home / "credentials.json").write_text(f'{{"current": "{url}", "accounts": {{}}}}')
    project.load()
    project.answer(image="other:2")
    touch(project.state, '{"new": true}')
    assert project.load().image == "other:2"


def test_fresh_asks_in_any_case(project: Project) -> None:
    project.load()
    project.load(fresh=True)
    assert len(project.calls) == 2


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"fleet": 5}'])
def test_a_cache_that_can_not_be_read_is_asked_again(project: Project, content: bytes) -> None:
    project.load()
    (cache,) = Path(project.environ["RUNFLEET_HOME"], "fleets").iterdir()
    cache.write_bytes(content)
    assert project.load() == FLEET
    assert len(project.calls) == 2


def test_without_a_place_for_a_cache_it_only_takes_longer(project: Project, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert project.load() == FLEET
    assert project.load() == FLEET


@pytest.mark.parametrize(
    ("said", "slug", "code", "hint"),
    [
        (
            "error: no stack selected; please use `pulumi stack select` to choose one",
            "no-stack",
            2,
            "pulumi stack select",
        ),
        ("error: no stack named 'rl' found", "no-such-stack", 2, "pulumi stack ls"),
        (
            "error: current stack does not have output property 'fleet'",
            "stack-down",
            4,
            "pulumi up",
        ),
        ("error: getting secrets manager: incorrect passphrase", "passphrase", 4, "PASSPHRASE"),
        (
            "error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions",
            "logged-out",
            4,
            "pulumi login",
        ),
        (
            "error: read .pulumi/meta.yaml: unable to open state directory file:///x: no such file",
            "state-gone",
            4,
            "sandbox up",
        ),
        ("something\nerror: the moon is full", "pulumi", 4, "pulumi stack ls"),
    ],
)
def test_what_pulumi_says(project: Project, said: str, slug: str, code: int, hint: str) -> None:
    project.fail(said)
    with pytest.raises(SubmitError) as err:
        project.load()
    assert (err.value.slug, err.value.exit_code) == (slug, code)
    assert hint in err.value.hint


def test_no_pulumi(project: Project, tmp_path: Path) -> None:
    project.environ["PATH"] = str(tmp_path / "nothing")
    with pytest.raises(ServiceFailed, match="no pulumi on PATH") as err:
        project.load()
    assert "activate" in err.value.hint


def test_no_project(tmp_path: Path) -> None:
    session = Session(environ={"RUNFLEET_HOME": str(tmp_path)}, cwd=tmp_path)
    with pytest.raises(WrongUse, match="no fleet is known here") as err:
        load_fleet(session)
    assert "--fleet" in err.value.hint


def test_another_project_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: runfleet-web\n")
    with pytest.raises(WrongUse, match=r"RUNFLEET_PROJECT=.* is no runfleet project"):
        load_fleet(Session(environ={"RUNFLEET_PROJECT": str(tmp_path)}, cwd=tmp_path))


def test_a_file_is_taken_before_all_else(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(FLEET, stack="from-file")))
    assert project.load(fleet=str(file)).stack == "from-file"
    project.environ["RUNFLEET_FLEET"] = str(file)
    assert project.load().stack == "from-file"
    assert project.calls == []


def test_standard_input_is_read_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.TextIOWrapper(io.BytesIO(msgspec.json.encode(FLEET)))
    monkeypatch.setattr("sys.stdin", text)
    session = Session(environ=project.environ, cwd=project.folder, fleet="-")
    assert load_fleet(session) == load_fleet(session) == FLEET


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"version": 2}', "version 2, this program reads up to 1: upgrade"),
        (b"[]", "not a fleet document"),
        (b"\xff\xfe", "not a fleet document"),
        (b'{"version": 1, "stack": 5}', r"\$.stack"),
    ],
)
def test_a_document_that_can_not_be_read(
    project: Project, tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "fleet.json"
    file.write_bytes(content)
    with pytest.raises(ServiceFailed, match=said):
        project.load(fleet=str(file))


def test_a_file_that_is_not_there(project: Project) -> None:
    with pytest.raises(WrongUse, match=r"nowhere\.json can't be read: No such file"):
        project.load(fleet="nowhere.json")
