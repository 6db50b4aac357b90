"""Where runfleet keeps its ledger, caches and locks. Looks at the environment it is given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def home(environ: Mapping[str, str]) -> Path:
    """RUNFLEET_HOME, else `runfleet` in the user's folder for state (XDG Base Directory)."""
    if environ.get("RUNFLEET_HOME"):
        return Path(environ["RUNFLEET_HOME"])
    # Not platformdirs: importing it takes as long as the rest of a dry run.
    base = environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(base) / "runfleet"
