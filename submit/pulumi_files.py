"""The files in which Pulumi keeps its selection and a stack's state. Speaks to the file system.

Pulumi takes a second to say what they say in a millisecond.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from submit.session import Session


class _Login(msgspec.Struct, frozen=True):
    current: str = ""


class PulumiFiles:
    """Those of one project, at the place where Pulumi keeps its stacks now."""

    def __init__(self, session: Session, project: Path) -> None:
        self._project = project
        given = session.environ.get("PULUMI_HOME")
        self._home = Path(given) if given else Path("~/.pulumi").expanduser()
        self._backend = _backend_url(session, self._home, project)

    def key(self) -> tuple[str, ...]:
        """What tells these stacks from those of any other project, login or user."""
        return self._backend, str(self._home), os.path.realpath(self._project)

    def selection(self) -> Path:
        """Where Pulumi keeps which stack is selected (pkg/workspace, settingsPathFor)."""
        project_file = os.path.realpath(self._project / "Pulumi.yaml")
        digest = hashlib.sha1(project_file.encode()).hexdigest()  # noqa: S324 # Pulumi's choice
        return self._home / "workspaces" / f"runfleet-{digest}-workspace.json"

    def state(self, stack: str) -> Path | None:
        """The stack's state, where the backend is a folder (pkg/backend/diy, stackPath)."""
        if not self._backend.startswith("file://"):
            return None
        folder = Path(self._backend.removeprefix("file://")).expanduser()
        stacks = self._project / folder / ".pulumi" / "stacks"
        names = [f"{stack}.json{packed}" for packed in ("", ".gz", ".zst")]
        places = [at / name for at in (stacks / "runfleet", stacks) for name in names]
        return next((place for place in places if place.exists()), None)


def _backend_url(session: Session, home: Path, project: Path) -> str:
    """Where Pulumi keeps its stacks: the environment, the project file, the last `pulumi login`
    (pkg/workspace, GetCurrentCloudURLWithSource). Empty when it takes YAML to tell.
    """
    given = session.environ.get("PULUMI_BACKEND_URL")
    if given:
        return given
    try:
        if b"\nbackend:" in (project / "Pulumi.yaml").read_bytes():
            return ""
        login = (home / "credentials.json").read_bytes()
        return msgspec.json.decode(login, type=_Login).current
    except (OSError, msgspec.DecodeError):
        return ""
