"""The ledger's file: opened, made, brought up to date, kept aside when it is no ledger. Speaks SQL."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from submit.errors import ServiceFailed

APPLICATION = 0x72756E66
"""SQLite's application_id of a ledger ("runf"): a database without it is somebody else's."""
_STEPS = (
    """
create table experiments (
    account text not null,
    region text not null,
    id text not null,
    stack text not null,
    name text not null,
    log_group text not null,
    document blob not null,
    created real not null,
    primary key (account, region, id)
) without rowid;
create table jobs (
    account text not null,
    region text not null,
    experiment text not null,
    number integer not null,
    chunk integer not null,
    name text not null,
    queue_name text not null,
    queue_arn text not null,
    definition text not null,
    runs text not null,
    size integer not null,
    request blob not null,
    state text not null,
    intended real not null,
    job_id text,
    counts blob,
    reason text,
    over integer not null default 0,
    started_ms integer,
    stopped_ms integer,
    seen real,
    primary key (account, region, experiment, number, chunk)
) without rowid;
""",
    """
alter table experiments add column fallback blob;
alter table jobs add column owner text;
alter table jobs add column tries integer not null default 0;
alter table jobs add column losses integer not null default 0;
alter table jobs add column settled integer not null default 0;
create table histories (
    account text not null,
    region text not null,
    experiment text not null,
    number integer not null,
    chunk integer not null,
    document blob not null,
    primary key (account, region, experiment, number, chunk)
) without rowid;
""",
)
"""What brings a ledger from each version to the next; 0 is an empty file."""
VERSION = len(_STEPS)


class Foreign(Exception):
    """A database, but no ledger."""


def connect(path: Path) -> sqlite3.Connection:
    """The ledger in that file, of this program's version.

    Raises sqlite3's errors, Foreign for another program's database, and ServiceFailed for a
    newer version.
    """
    db = sqlite3.connect(path, timeout=30)
    db.row_factory = sqlite3.Row
    try:
        _bring_up_to_date(db, path)
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = full")
    except BaseException:
        db.close()
        raise
    return db


def set_aside(path: Path) -> Path:
    """Moves the file, with what SQLite keeps beside it, to a name that is free."""
    numbers = (f".damaged-{number}" for number in range(1, 10_000))
    end = next(e for e in numbers if not path.with_name(path.name + e).exists())
    for beside in ("-wal", "-shm", ""):
        file = path.with_name(path.name + beside)
        if file.exists():
            file.rename(path.with_name(path.name + end + beside))
    return path.with_name(path.name + end)


def _bring_up_to_date(db: sqlite3.Connection, path: Path) -> None:
    if _version(db, path) == VERSION:
        return
    with db:
        db.execute("begin immediate")
        # Another process may have done it, or a part of it, while this one waited.
        for step in _STEPS[_version(db, path) :]:
            for statement in step.split(";"):
                db.execute(statement)
        db.execute(f"pragma application_id = {APPLICATION}")
        db.execute(f"pragma user_version = {VERSION}")


def _version(db: sqlite3.Connection, path: Path) -> int:
    """0 for a database that is new."""
    (application,) = db.execute("pragma application_id").fetchone()
    (version,) = db.execute("pragma user_version").fetchone()
    (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
    if application != APPLICATION and tables:
        raise Foreign("another program's database")
    if version > VERSION:
        raise ServiceFailed(
            "ledger-newer",
            f"the ledger {path} was written by a newer runfleet",
            "pip install --upgrade runfleet",
        )
    return int(version)
