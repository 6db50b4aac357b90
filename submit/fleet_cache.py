"""The last fleet document, for as long as nothing tells that it has changed.

Speaks to the file system. Pulumi takes a second to say what a file says in a millisecond; so
the files in which Pulumi keeps its selection and a stack's state are looked at instead.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from submit.fleet import Fleet, FleetError, parse_fleet
from submit.session import Session

MAX_AGE_S = 300.0
"""How long a document counts whose stack lies where no file tells of changes."""


class _Cached(msgspec.Struct, frozen=True, kw_only=True):
    """`proof` has (file, mtime in ns, size) of what the answer rests on; with any other it is
    asked again. `lasting` when the stack's own state is among them.
    """

    fetched: float
    lasting: bool
    proof: list[tuple[str, int, int]]
    fleet: msgspec.Raw


class _Login(msgspec.Struct, frozen=True):
    current: str = ""


class FleetCache:
    """The cache of one stack of one project at one backend of Pulumi's."""

    def __init__(self, session: Session, project: Path, stack: str) -> None:
        self._clock = session.clock
        self._project = project
        self._stack = stack
        self._pulumi_home = _pulumi_home(session)
        self._backend = _backend_url(session, self._pulumi_home, project)
        key = "\0".join((self._backend, str(self._pulumi_home), os.path.realpath(project), stack))
        name = hashlib.sha256(key.encode()).hexdigest()[:24]
        self._path = session.home / "fleets" / f"{name}.json"

    def read(self) -> Fleet | None:
        """The document, None when it may have changed."""
        try:
            cached = msgspec.json.decode(self._path.read_bytes(), type=_Cached)
            if not all(_stat(name) == (mtime, size) for name, mtime, size in cached.proof):
                return None
            if not (cached.lasting or 0 <= self._clock.time() - cached.fetched < MAX_AGE_S):
                return None
            return parse_fleet(cached.fleet)
        except (OSError, msgspec.DecodeError, FleetError):
            return None  # it is only a cache: Pulumi is asked

    def write(self, text: bytes, stack: str) -> None:
        """Keeps the document, which is that of `stack`."""
        files = [] if self._stack else [self._selection()]
        state = self._state_file(stack)
        files += [state] if state else []
        proof = [(str(file), *stat) for file in files if (stat := _stat(str(file)))]
        if len(proof) < len(files):
            return  # there is no telling when another stack is selected
        cached = _Cached(
            fetched=self._clock.time(),
            lasting=bool(state),
            proof=proof,
            fleet=msgspec.Raw(text),
        )
        part = self._path.with_suffix(f".{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_bytes(msgspec.json.encode(cached))
            part.replace(self._path)
        except OSError:
            return  # without a cache it takes a second longer

    def _selection(self) -> Path:
        """Where Pulumi keeps which stack is selected (pkg/workspace, settingsPathFor)."""
        project_file = os.path.realpath(self._project / "Pulumi.yaml")
        digest = hashlib.sha1(project_file.encode()).hexdigest()  # noqa: S324 # Pulumi's choice
        return self._pulumi_home / "workspaces" / f"runfleet-{digest}-workspace.json"

    def _state_file(self, stack: str) -> Path | None:
        """The stack's state, where the backend is a folder (pkg/backend/diy, stackPath)."""
        if not self._backend.startswith("file://"):
            return None
        folder = Path(self._backend.removeprefix("file://")).expanduser()
        stacks = self._project / folder / ".pulumi" / "stacks"
        names = [f"{stack}.json{packed}" for packed in ("", ".gz", ".zst")]
        places = [at / name for at in (stacks / "runfleet", stacks) for name in names]
        return next((place for place in places if place.exists()), None)


def _pulumi_home(session: Session) -> Path:
    given = session.environ.get("PULUMI_HOME")
    return Path(given) if given else Path("~/.pulumi").expanduser()


def _backend_url(session: Session, pulumi_home: Path, project: Path) -> str:
    """Where Pulumi keeps its stacks: the environment, the project file, the last `pulumi login`
    (pkg/workspace, GetCurrentCloudURLWithSource). Empty when it takes YAML to tell.
    """
    given = session.environ.get("PULUMI_BACKEND_URL")
    if given:
        return given
    try:
        if b"\nbackend:" in (project / "Pulumi.yaml").read_bytes():
            return ""
        login = (pulumi_home / "credentials.json").read_bytes()
        return msgspec.json.decode(login, type=_Login).current
    except (OSError, msgspec.DecodeError):
        return ""


def _stat(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 # no Path for each of them
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
