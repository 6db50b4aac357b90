"""What was asked, what was sent, what became of it. Speaks SQL (SQLite, one file).

A row is written and synced before its job is sent, so that after any crash the ledger knows
every name under which something may stand in the queue. One row a job, not one a run.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Experiment
from submit.records import INTENDED, SENT, Kept, Row, Scope
from submit.states import RunState

VERSION = 1
APPLICATION = 0x72756E66
"""SQLite's application_id of a ledger ("runf"): a database without it is somebody else's."""
_SCHEMA = """
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
"""


class Ledger:
    """The ledger in runfleet's home. Usable as a context manager."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "ledger.sqlite3"
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = self._open()
        except (OSError, sqlite3.OperationalError) as err:
            raise self._unusable(err) from err

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._db.close()

    @contextlib.contextmanager
    def lock(self, experiment: str) -> Iterator[None]:
        """Only one process at a time sends for an experiment; others wait."""
        folder = self._home / "locks"
        try:
            folder.mkdir(exist_ok=True, mode=0o700)
            file = (folder / f"{experiment}.lock").open("w")
        except OSError as err:
            raise self._unusable(err) from err
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def intend(self, kept: Kept, row: Row) -> None:
        """Says, durably, that the job is about to be sent (again)."""
        with self._writing():
            self._insert_experiment(kept)
            self._db.execute(
                "insert or replace into jobs (account, region, experiment, number, chunk, name, "
                "queue_name, queue_arn, definition, runs, size, request, state, intended) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *_key(row),
                    row.name,
                    row.queue_name,
                    row.queue_arn,
                    row.definition,
                    row.runs,
                    row.size,
                    msgspec.json.encode(row.request),
                    INTENDED,
                    row.intended,
                ),
            )

    def sent(self, row: Row, job_id: str) -> None:
        """The job stands in the queue under that id."""
        self._update(row, state=SENT, job_id=job_id)

    def forget(self, row: Row) -> None:
        """Nothing of the job stands anywhere; an experiment without jobs goes with its last."""
        experiment = (row.scope.account, row.scope.region, row.experiment)
        with self._writing():
            self._db.execute(f"delete from jobs where {_KEY}", _key(row))  # noqa: S608 # constants
            self._db.execute(
                "delete from experiments where account = ? and region = ? and id = ? and not "
                "exists (select * from jobs j where j.account = experiments.account and "
                "j.region = experiments.region and j.experiment = experiments.id)",
                experiment,
            )

    def saw(self, row: Row, **seen: Any) -> None:
        """The last that was seen of the job."""
        if "counts" in seen:
            seen["counts"] = msgspec.json.encode(seen["counts"])
        self._update(row, **seen)

    def has(self, scope: Scope, experiment: str) -> bool:
        """Whether that experiment is kept."""
        found = self._read(
            "select 1 from experiments where account = ? and region = ? and id = ?",
            scope.account,
            scope.region,
            experiment,
        )
        return bool(found)

    def experiments(self) -> list[Kept]:
        """All that are kept, newest first."""
        return [_kept(row) for row in self._read("select * from experiments order by created desc")]

    def rows(self, kept: Kept) -> list[Row]:
        """The experiment's jobs in the order in which they were sent."""
        found = self._read(
            "select * from jobs where account = ? and region = ? and experiment = ? "
            "order by number, chunk",
            kept.scope.account,
            kept.scope.region,
            kept.id,
        )
        return [_row(row) for row in found]

    def find(self, reference: str) -> Kept:
        """The experiment of that id, of that beginning of an id, of that name (the latest of
        them), or `latest`.

        Raises WrongUse when there is none, or more than one.
        """
        kept = self.experiments()
        if not kept:
            raise WrongUse(
                "no-experiments", "nothing was submitted from here yet", "submit run --help"
            )
        if reference == "latest":
            return kept[0]
        found = [one for one in kept if one.id == reference]
        found = found or [one for one in kept if one.name == reference][:1]
        found = found or [one for one in kept if reference and one.id.startswith(reference)]
        if len({one.id for one in found}) > 1:
            raise WrongUse(
                "ambiguous",
                f"{reference!r} could be any of {', '.join(one.id for one in found[:5])}",
                "submit status",
            )
        if found:  # the same request in two accounts or regions: the later one
            return found[0]
        raise _unknown(reference, kept)

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self._path)
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, _Foreign) as err:
            aside = self._set_aside()
            _warn(
                f"{self._path} is no ledger that can be read ({err}); it was kept as {aside}.\n"
                "Nothing that runs is lost: the same `submit run` finds it in the queue by its name"
            )
            return _connect(self._path)

    def _set_aside(self) -> Path:
        """Moves the file, with what SQLite keeps beside it, to a name that is free."""
        numbers = (f".damaged-{number}" for number in range(1, 10_000))
        end = next(e for e in numbers if not self._path.with_name(self._path.name + e).exists())
        for beside in ("-wal", "-shm", ""):
            file = self._path.with_name(self._path.name + beside)
            if file.exists():
                file.rename(self._path.with_name(self._path.name + end + beside))
        return self._path.with_name(self._path.name + end)

    def _insert_experiment(self, kept: Kept) -> None:
        self._db.execute(
            "insert or ignore into experiments values (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                kept.scope.account,
                kept.scope.region,
                kept.id,
                kept.stack,
                kept.name,
                kept.log_group,
                msgspec.json.encode(kept.experiment),
                kept.created,
            ),
        )

    def _update(self, row: Row, **values: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        statement = f"update jobs set {names} where {_KEY}"  # noqa: S608 # names are this file's own
        with self._writing():
            self._db.execute(statement, (*values.values(), *_key(row)))

    def _read(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as err:
            raise ServiceFailed(
                "ledger-damaged",
                f"the ledger {self._path} can't be read: {err}.\n"
                "Nothing that runs is lost: the same `submit run` finds it in the queue by its name",
                f"mv {self._path} {self._path}.damaged",
            ) from err

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._db:
                yield
        except sqlite3.DatabaseError as err:
            raise self._unusable(err) from err

    def _unusable(self, err: Exception) -> ServiceFailed:
        return ServiceFailed(
            "ledger",
            f"the ledger {self._path} can't be written: {err}",
            f"df -h {self._home}; ls -ld {self._home}; then type the same line again",
        )


_KEY = "account = ? and region = ? and experiment = ? and number = ? and chunk = ?"


def _key(row: Row) -> tuple[Any, ...]:
    return (row.scope.account, row.scope.region, row.experiment, row.number, row.chunk)


class _Foreign(Exception):
    """A database, but no ledger."""


def _connect(path: Path) -> sqlite3.Connection:
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


def _bring_up_to_date(db: sqlite3.Connection, path: Path) -> None:
    if _version(db, path) == VERSION:
        return
    with db:
        db.execute("begin immediate")
        if _version(db, path) == VERSION:  # by another process, while this one waited
            return
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"pragma application_id = {APPLICATION}")
        db.execute(f"pragma user_version = {VERSION}")


def _version(db: sqlite3.Connection, path: Path) -> int:
    """0 for a database that is new."""
    (application,) = db.execute("pragma application_id").fetchone()
    (version,) = db.execute("pragma user_version").fetchone()
    (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
    if application != APPLICATION and tables:
        raise _Foreign("another program's database")
    if version > VERSION:
        raise ServiceFailed(
            "ledger-newer",
            f"the ledger {path} was written by a newer runfleet",
            "pip install --upgrade runfleet",
        )
    return int(version)


def _unknown(reference: str, kept: list[Kept]) -> WrongUse:
    names = ["latest", *(name for one in kept for name in (one.id, one.name) if name)]
    near = difflib.get_close_matches(reference, names, n=3, cutoff=0.5)
    recent = ", ".join(f"{one.id} ({one.name})" if one.name else one.id for one in kept[:3])
    guess = f"; did you mean {' or '.join(near)}?" if near else ""
    return WrongUse(
        "unknown-experiment",
        f"there is no experiment {reference!r}{guess} (the latest: {recent})",
        "submit status",
    )


def _kept(row: sqlite3.Row) -> Kept:
    return Kept(
        scope=Scope(row["account"], row["region"]),
        id=row["id"],
        stack=row["stack"],
        name=row["name"],
        log_group=row["log_group"],
        experiment=msgspec.json.decode(row["document"], type=Experiment),
        created=row["created"],
    )


def _row(row: sqlite3.Row) -> Row:
    counts = row["counts"]
    return Row(
        scope=Scope(row["account"], row["region"]),
        experiment=row["experiment"],
        number=row["number"],
        chunk=row["chunk"],
        name=row["name"],
        queue_name=row["queue_name"],
        queue_arn=row["queue_arn"],
        definition=row["definition"],
        runs=row["runs"],
        size=row["size"],
        request=msgspec.json.decode(row["request"]),
        state=row["state"],
        intended=row["intended"],
        job_id=row["job_id"],
        counts=msgspec.json.decode(counts, type=dict[RunState, int]) if counts else None,
        reason=row["reason"],
        over=bool(row["over"]),
        started_ms=row["started_ms"],
        stopped_ms=row["stopped_ms"],
        seen=row["seen"],
    )


def _warn(text: str) -> None:
    sys.stderr.write(f"submit: {text}\n")
