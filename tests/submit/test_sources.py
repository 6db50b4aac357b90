"""submit.sources and submit.using: which stack is meant, and where its fleet is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from submit.errors import ServiceFailed, WrongUse
from submit.session import Session
from submit.sources import Output, Parameters, Source, choose_source
from submit.using import use, used

HERE, THERE = "/lab/runfleet", "/home/ada/runfleet"
FROM_SSM = Parameters(stack="rl", region="eu-west-1")
FROM_PULUMI = Output(project=THERE, stack="rl")


@pytest.mark.parametrize(
    ("stack", "project", "in_use", "source"),
    [
        ("", HERE, None, Output(project=HERE)),
        ("rl", HERE, None, Output(project=HERE, stack="rl")),
        ("rl", "", None, Parameters(stack="rl")),
        # What is in use goes before what the folder says, and behind what is named.
        ("", HERE, FROM_PULUMI, FROM_PULUMI),
        ("", HERE, FROM_SSM, FROM_SSM),
        ("", "", FROM_SSM, FROM_SSM),
        ("rl", HERE, FROM_SSM, FROM_SSM),
        ("vision", HERE, FROM_SSM, Output(project=HERE, stack="vision")),
        ("vision", "", FROM_SSM, Parameters(stack="vision", region="eu-west-1")),
        ("vision", "", FROM_PULUMI, Output(project=THERE, stack="vision")),
    ],
)
def test_which_source(stack: str, project: str, in_use: Source | None, source: Source) -> None:
    assert choose_source(stack, project, in_use, cwd="/tmp") == source  # noqa: S108 # a name


def test_nothing_tells() -> None:
    with pytest.raises(WrongUse, match="no fleet is known here: neither /lab") as err:
        choose_source("", "", None, cwd="/lab")
    assert "submit use TEAM" in err.value.hint


@pytest.mark.parametrize("source", [FROM_SSM, FROM_PULUMI])
def test_what_is_used_is_remembered(tmp_path: Path, source: Source) -> None:
    session = Session(environ={"RUNFLEET_HOME": str(tmp_path / "home")}, cwd=tmp_path)
    assert used(session) is None
    use(session, source)
    assert used(session) == source
    use(session, None)
    use(session, None)
    assert used(session) is None
    assert not list((tmp_path / "home").iterdir())


@pytest.mark.parametrize("content", [b"", b"{}", b'{"type": "ssh"}', b"\xff"])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "use.json").write_bytes(content)
    with pytest.raises(ServiceFailed, match=r"use\.json can't be read") as err:
        used(Session(environ={"RUNFLEET_HOME": str(tmp_path)}, cwd=tmp_path))
    assert "submit use --none" in err.value.hint


def test_a_home_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    session = Session(environ={"RUNFLEET_HOME": str(tmp_path / "home")}, cwd=tmp_path)
    with pytest.raises(ServiceFailed, match="can't be written"):
        use(session, FROM_SSM)
