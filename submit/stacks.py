"""The fleet document: from a file, a cache that is still right, Pulumi, or SSM.

Speaks to the file system; Pulumi and AWS are asked when there is nothing better.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from submit.errors import ServiceFailed, WrongUse
from submit.fleet import Fleet, FleetError, fleet_from_parameters, parse_fleet
from submit.fleet_cache import FleetCache
from submit.pulumi_files import PulumiFiles
from submit.session import Session
from submit.sources import PROJECT, Output, Parameters, Source, choose_source
from submit.using import used


def load_fleet(session: Session, *, fresh: bool = False) -> Fleet:
    """The fleet document. `fresh` asks its source even when the cache would do.

    Raises WrongUse and ServiceFailed with what to type.
    """
    if session.fleet:
        if session.loaded is None:
            session.loaded = _parse(_read_file(session.fleet), session.fleet)
        return session.loaded
    return read_source(session, find_source(session), fresh=fresh)


def find_source(session: Session) -> Source:
    """Where the document of the stack comes from that is named, in use or selected.

    Raises WrongUse when nothing tells.
    """
    project = find_project(session)
    return choose_source(
        session.stack or "", str(project or ""), used(session), cwd=str(session.cwd)
    )


def read_source(session: Session, source: Source, *, fresh: bool = False) -> Fleet:
    """The document from there. Raises WrongUse and ServiceFailed with what to type."""
    if isinstance(source, Output):
        return _read_output(session, source, fresh=fresh)
    return _read_parameters(session, source, fresh=fresh)


def last_known(session: Session) -> Fleet | None:
    """The document as it was when last asked for, however long ago; no process, no call."""
    if session.fleet:
        return None if session.fleet == "-" else load_fleet(session)
    source = find_source(session)
    if isinstance(source, Output):
        files = PulumiFiles(session, Path(source.project))
        return FleetCache(session, (*files.key(), source.stack)).read(stale=True)
    return FleetCache(session, _parameters_key(session, source)).read(stale=True)


def find_project(session: Session) -> Path | None:
    """The folder of the Pulumi project: RUNFLEET_PROJECT, else this folder or one above.

    Raises WrongUse when RUNFLEET_PROJECT is none.
    """
    given = session.environ.get("RUNFLEET_PROJECT")
    for folder in [Path(given)] if given else [session.cwd, *session.cwd.parents]:
        try:
            text = (folder / "Pulumi.yaml").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if any(line.split("#")[0].split() == ["name:", PROJECT] for line in text.splitlines()):
            return folder
    if given:
        raise WrongUse(
            "no-project",
            f"RUNFLEET_PROJECT={given} is no runfleet project (no Pulumi.yaml with name: "
            f"{PROJECT})",
            "export RUNFLEET_PROJECT=FOLDER",
        )
    return None


def _read_output(session: Session, source: Output, *, fresh: bool) -> Fleet:
    project = Path(source.project)
    files = PulumiFiles(session, project)
    cache = FleetCache(session, (*files.key(), source.stack))
    cached = None if fresh else cache.read()
    if cached:
        return cached
    from submit.pulumi_cli import fleet_output  # noqa: PLC0415 # not when the cache has it

    text = fleet_output(project, source.stack, session.environ)
    named = f"stack {source.stack}" if source.stack else "selected stack"
    fleet = _parse(text, f"the output of the {named}")
    state = files.state(fleet.stack)
    proof = [] if source.stack else [files.selection()]
    cache.write(text, files=[*proof, *([state] if state else [])], lasting=bool(state))
    return fleet


def _read_parameters(session: Session, source: Parameters, *, fresh: bool) -> Fleet:
    cache = FleetCache(session, _parameters_key(session, source))
    cached = None if fresh else cache.read()
    if cached:
        return cached
    from submit.backends.aws_parameters import read_parameters  # noqa: PLC0415 # likewise

    found = read_parameters(source.stack, source.region)
    try:
        fleet = fleet_from_parameters(found)
    except FleetError as err:
        raise ServiceFailed(
            "fleet-document", f"the parameters of the stack {source.stack}: {err}", "pulumi up"
        ) from err
    cache.write(msgspec.json.encode(fleet))
    return fleet


def _parameters_key(session: Session, source: Parameters) -> tuple[str, ...]:
    """Who asks, and where, is in the environment: two profiles may see two accounts."""
    names = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_DEFAULT_REGION")
    known = (session.environ.get(name, "") for name in names)
    return ("ssm", source.stack, source.region, *known)


def _read_file(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except OSError as err:
        raise WrongUse(
            "fleet-file",
            f"the fleet document {source} can't be read: {err.strerror}",
            "pulumi stack output fleet --json > fleet.json",
        ) from err


def _parse(text: bytes, origin: str) -> Fleet:
    try:
        return parse_fleet(text)
    except FleetError as err:
        raise ServiceFailed("fleet-document", f"{origin}: {err}", "pulumi up") from err
