"""Where the fleet document comes from: a file, a cache that is still right, or Pulumi.

Speaks to the file system and to the Pulumi command line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from submit.errors import ServiceFailed, WrongUse
from submit.fleet import Fleet, FleetError, parse_fleet
from submit.home import home

PROJECT = "runfleet"
MAX_AGE_S = 300.0
"""How long a cached document counts where nothing tells that the stack has changed."""


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said of the fleet, and where they said it."""

    environ: Mapping[str, str]
    cwd: Path
    fleet: str | None = None
    """A file with the document, `-` for standard input."""
    stack: str | None = None


class _Cached(msgspec.Struct):
    fleet: msgspec.Raw
    fetched: float
    proof: list[tuple[str, int, int]]
    """(file, mtime in ns, size) of what the answer rests on: any other, and it is asked again."""


def load_fleet(where: Where, *, fresh: bool = False) -> Fleet:
    """The fleet document. `fresh` asks Pulumi even when the cache would do.

    Raises WrongUse and ServiceFailed with what to type.
    """
    source = where.fleet or where.environ.get("RUNFLEET_FLEET")
    if source:
        return _parse(_read_file(source), f"the file {source}")
    project = _find_project(where)
    stack = where.stack or where.environ.get("RUNFLEET_STACK") or ""
    cache = _cache_file(where, project, stack)
    if not fresh:
        cached = _read_cache(cache)
        if cached:
            return cached
    text = _ask_pulumi(where, project, stack)
    fleet = _parse(text, f"the output of the stack {stack or '(the selected one)'}")
    _write_cache(cache, text, _proof(where, project, stack, fleet.stack))
    return fleet


def _read_file(source: str) -> bytes:
    if source == "-":
        import sys  # noqa: PLC0415 # rarely

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
        raise ServiceFailed("fleet", f"{origin}: {err}", "pulumi up") from err


def _find_project(where: Where) -> Path:
    """The folder of the Pulumi project: RUNFLEET_PROJECT, else this folder or one above."""
    given = where.environ.get("RUNFLEET_PROJECT")
    for folder in [Path(given)] if given else [where.cwd, *where.cwd.parents]:
        try:
            text = (folder / "Pulumi.yaml").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if any(line.split("#")[0].split() == ["name:", PROJECT] for line in text.splitlines()):
            return folder
    raise WrongUse(
        "no-project",
        f"neither {given or where.cwd} nor a folder above is a runfleet project "
        "(Pulumi.yaml with name: runfleet)",
        "cd to the project, set RUNFLEET_PROJECT, or give the document: --fleet fleet.json",
    )


def _ask_pulumi(where: Where, project: Path, stack: str) -> bytes:
    import subprocess  # noqa: PLC0415 # not for a document from the cache

    command = ["pulumi", "stack", "output", "fleet", "--json", "--non-interactive"]
    command += ["--stack", stack] if stack else []
    try:
        done = subprocess.run(
            command, cwd=project, env=dict(where.environ), capture_output=True, check=False
        )
    except FileNotFoundError as err:
        raise ServiceFailed(
            "no-pulumi",
            "the fleet is read from the Pulumi stack, and there is no pulumi on PATH",
            "activate the environment (. .venv/bin/activate), or give --fleet fleet.json",
        ) from err
    if done.returncode:
        raise _pulumi_error(done.stderr.decode(errors="replace").strip(), stack)
    return done.stdout


def _pulumi_error(said: str, stack: str) -> ServiceFailed | WrongUse:
    lower = said.lower()
    if "no stack named" in lower or ("not found" in lower and stack and stack in said):
        return WrongUse("no-such-stack", f"there is no stack {stack!r}", "pulumi stack ls")
    if "no stack selected" in lower or "no current stack" in lower:
        return WrongUse(
            "no-stack",
            "no stack is selected here",
            "pulumi stack select TEAM (or: pulumi stack init TEAM && pulumi up), or --stack TEAM",
        )
    if "does not have output property" in lower:
        return ServiceFailed(
            "stack-down",
            f"the stack {stack or 'that is selected'} exports no fleet: "
            "it was never brought up, or it was destroyed",
            "pulumi up",
        )
    if "unable to open state directory" in lower:
        return ServiceFailed(
            "state-gone",
            "the folder of Pulumi's state is not there (PULUMI_BACKEND_URL); if it was a "
            "sandbox's, the sandbox is down",
            'python -m sandbox up, then eval "$(python -m sandbox env)" and pulumi up',
        )
    if "passphrase" in lower:
        return ServiceFailed(
            "passphrase",
            "Pulumi can't open the stack: its passphrase is missing or wrong",
            "export PULUMI_CONFIG_PASSPHRASE=…",
        )
    last = said.splitlines()[-1] if said else "it said nothing"
    return ServiceFailed("pulumi", f"Pulumi could not be asked: {last}", "pulumi stack ls")


def _cache_file(where: Where, project: Path, stack: str) -> Path:
    import hashlib  # noqa: PLC0415 # the plan needs it too

    backend = where.environ.get("PULUMI_BACKEND_URL", "")
    key = hashlib.sha256("\0".join((backend, str(project), stack)).encode()).hexdigest()[:24]
    return home(where.environ) / "fleets" / f"{key}.json"


def _read_cache(path: Path) -> Fleet | None:
    try:
        cached = msgspec.json.decode(path.read_bytes(), type=_Cached)
        if not all(_stat(name) == (mtime, size) for name, mtime, size in cached.proof):
            return None
        certain = any(
            name.endswith((".json.gz", ".json")) and "/stacks/" in name
            for name, _, _ in cached.proof
        )
        if not certain and not 0 <= time.time() - cached.fetched < MAX_AGE_S:
            return None
        return parse_fleet(cached.fleet)
    except (OSError, msgspec.DecodeError, FleetError):
        return None  # it is only a cache: Pulumi is asked


def _write_cache(path: Path, text: bytes, proof: list[tuple[str, int, int]] | None) -> None:
    if proof is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(
            msgspec.json.encode(_Cached(fleet=msgspec.Raw(text), fetched=time.time(), proof=proof))
        )
        part.replace(path)
    except OSError:
        return  # a full disk shall not keep anybody from reading


def _proof(
    where: Where, project: Path, stack: str, found: str
) -> list[tuple[str, int, int]] | None:
    """What the answer rests on; None when it can't be told, and must not be kept."""
    pulumi_home = Path(where.environ.get("PULUMI_HOME") or Path("~/.pulumi").expanduser())
    files: list[Path] = []
    if not stack:  # the selection, where Pulumi keeps it
        import hashlib  # noqa: PLC0415 # the plan needs it too

        digest = hashlib.sha1(str(project / "Pulumi.yaml").encode()).hexdigest()  # noqa: S324 # Pulumi's choice
        selection = pulumi_home / "workspaces" / f"{PROJECT}-{digest}-workspace.json"
        if not selection.exists():
            return None
        files.append(selection)
    backend = where.environ.get("PULUMI_BACKEND_URL", "")
    if not backend:
        files.append(pulumi_home / "credentials.json")
    if backend.startswith("file://"):
        base = Path(backend.removeprefix("file://")).expanduser() / ".pulumi" / "stacks" / PROJECT
        files += [
            path for path in (base / f"{found}.json", base / f"{found}.json.gz") if path.exists()
        ]
    return [(str(path), *stat) for path in files if (stat := _stat(str(path)))]


def _stat(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 # no Path for each of them
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
