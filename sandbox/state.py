"""What is known of a sandbox from its folder: how it was started, how it is reached."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import psutil

STATE_FILE = "sandbox.json"
LOG_FILE = "sandbox.log"
_PART_FILE = STATE_FILE + ".part"
OUR_FILES = frozenset({STATE_FILE, LOG_FILE, _PART_FILE})
CLIENT_FOLDERS = ("home", "pulumi", "pulumi-home")
"""Of submit and Pulumi, whose variables lead here; they may make them anew after `down`."""


WORK_FOLDER = "work"
OUR_NAMES = OUR_FILES | {*CLIENT_FOLDERS, WORK_FOLDER}
"""All that a sandbox and its clients make in its folder."""
_LEFT_BY_CLIENTS = {
    "home": {"fleets", "ledger.sqlite3", "ledger.sqlite3-shm", "ledger.sqlite3-wal", "locks"},
    "pulumi": {".pulumi"},
    "pulumi-home": {"credentials.json", "logs", "plugins", "templates", "workspaces"},
}


def is_ours(folder: Path) -> bool:
    """Whether all that lies there is a sandbox's, or was left of one by its clients."""
    names = {entry.name for entry in folder.iterdir()}
    if not names <= OUR_NAMES:
        return False
    if names & OUR_FILES:
        return True
    return all(
        name in CLIENT_FOLDERS
        and {entry.name for entry in (folder / name).iterdir()} <= _LEFT_BY_CLIENTS[name]
        for name in names
    )


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A running sandbox. `key` is the access key id that it answers to."""

    guard_pid: int
    guard_started: float
    port: int
    region: str
    key: str
    engine: str | None = None
    """What runs the jobs' containers, None where they are processes."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a sandbox is to be started."""

    folder: str
    port: int
    region: str
    slots: int
    image_root: str
    grace_s: float
    engine: str | None = None
    boot_s: float = 0.0
    idle_s: float = 5.0
    memory_limits: bool = False
    speed: float = 1.0
    state_dir: str | None = None


def read_state(folder: Path) -> State | None:
    """The sandbox of that folder, None when none runs there."""
    state = last_state(folder)
    return state if state and find_guard(state) else None


def last_state(folder: Path) -> State | None:
    """The sandbox that ran in that folder last and was not ended by `down`, if there is one."""
    try:
        return msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return None


def write_state(folder: Path, *, port: int, region: str, key: str, engine: str | None) -> None:
    """Tells how to reach the sandbox, whole or not at all, to this user alone."""
    guard = psutil.Process(os.getppid())
    state = State(
        guard_pid=guard.pid,
        guard_started=guard.create_time(),
        port=port,
        region=region,
        key=key,
        engine=engine,
    )
    part = folder / _PART_FILE
    part.touch(mode=0o600)
    part.write_bytes(msgspec.json.encode(state))
    part.replace(folder / STATE_FILE)


def find_guard(state: State) -> psutil.Process | None:
    """The process that keeps the sandbox; None when it is gone and its number is another's."""
    try:
        guard = psutil.Process(state.guard_pid)
        same = abs(guard.create_time() - state.guard_started) < 1
        return guard if same and guard.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None
