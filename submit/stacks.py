"""Where the fleet document comes from: a file, a cache that is still right, or Pulumi.

Speaks to the file system; submit.pulumi_cli is asked when there is nothing better.
"""

from __future__ import annotations

import sys
from pathlib import Path

from submit.errors import ServiceFailed, WrongUse
from submit.fleet import Fleet, FleetError, parse_fleet
from submit.fleet_cache import FleetCache
from submit.session import Session

PROJECT = "runfleet"


def load_fleet(session: Session, *, fresh: bool = False) -> Fleet:
    """The fleet document. `fresh` asks Pulumi even when the cache would do.

    Raises WrongUse and ServiceFailed with what to type.
    """
    if session.fleet:
        if session.loaded is None:
            session.loaded = _parse(_read_file(session.fleet), session.fleet)
        return session.loaded
    project = _find_project(session)
    cache = FleetCache(session, project, session.stack or "")
    cached = None if fresh else cache.read()
    if cached:
        return cached
    from submit.pulumi_cli import fleet_output  # noqa: PLC0415 # not when the cache has it

    text = fleet_output(project, session.stack or "", session.environ)
    named = f"stack {session.stack}" if session.stack else "selected stack"
    fleet = _parse(text, f"the output of the {named}")
    cache.write(text, fleet.stack)
    return fleet


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


def _find_project(session: Session) -> Path:
    """The folder of the Pulumi project: RUNFLEET_PROJECT, else this folder or one above."""
    given = session.environ.get("RUNFLEET_PROJECT")
    for folder in [Path(given)] if given else [session.cwd, *session.cwd.parents]:
        try:
            text = (folder / "Pulumi.yaml").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if any(line.split("#")[0].split() == ["name:", PROJECT] for line in text.splitlines()):
            return folder
    raise WrongUse(
        "no-project",
        f"RUNFLEET_PROJECT={given} is no runfleet project (no Pulumi.yaml with name: {PROJECT})"
        if given
        else f"no fleet is known here: neither {session.cwd} nor a folder above it is a runfleet "
        f"project (Pulumi.yaml with name: {PROJECT})",
        "cd to the project, export RUNFLEET_PROJECT=FOLDER, or give --fleet fleet.json",
    )
