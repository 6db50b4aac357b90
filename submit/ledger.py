"""What was asked, what was sent, what became of it. Speaks SQL (SQLite, one file).

A row is written and synced before its job is sent, so that after any crash the ledger knows
every name under which something may stand in the queue. One row a job, not one a run.
"""

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Experiment
from submit.states import RunState

VERSION = 1
INTENDED, SENT = "intended", "sent"
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


class Scope(msgspec.Struct, frozen=True):
    """Whose experiments: an account in a region."""

    account: str
    region: str


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment in the ledger."""

    scope: Scope
    id: str
    stack: str
    name: str
    log_group: str
    experiment: Experiment
    created: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the ledger. `counts` is the last that was seen of its runs, by state."""

    scope: Scope
    experiment: str
    number: int
    chunk: int
    name: str
    queue_name: str
    queue_arn: str
    definition: str
    runs: str
    size: int
    request: dict[str, Any]
    state: str
    job_id: str | None = None
    counts: dict[RunState, int] | None = None
    reason: str | None = None
    over: bool = False
    started_ms: int | None = None
    stopped_ms: int | None = None
    seen: float | None = None


class Ledger:
    """The ledger in runfleet's home. Usable as a context manager."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "ledger.sqlite3"
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = self._open()
        except (OSError, sqlite3.OperationalError) as err:
            raise ServiceFailed(
                "ledger", f"the ledger {self._path} can't be written: {err}", f"ls -ld {home}"
            ) from err

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextlib.contextmanager
    def lock(self, experiment: str) -> Iterator[None]:
        """Only one process at a time sends for an experiment; others wait."""
        folder = self._home / "locks"
        folder.mkdir(exist_ok=True)
        with (folder / f"{experiment}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def record(self, kept: Kept) -> None:
        """Keeps an experiment; one that is kept already stays as it is."""
        document = msgspec.json.encode(kept.experiment)
        self._write(
            "insert or ignore into experiments values (?, ?, ?, ?, ?, ?, ?, ?)",
            kept.scope.account,
            kept.scope.region,
            kept.id,
            kept.stack,
            kept.name,
            kept.log_group,
            document,
            kept.created,
        )

    def intend(self, row: Row) -> None:
        """Says, durably, that the job is about to be sent."""
        self._write(
            "insert or replace into jobs (account, region, experiment, number, chunk, name, "
            "queue_name, queue_arn, definition, runs, size, request, state) "
            "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row.scope.account,
            row.scope.region,
            row.experiment,
            row.number,
            row.chunk,
            row.name,
            row.queue_name,
            row.queue_arn,
            row.definition,
            row.runs,
            row.size,
            msgspec.json.encode(row.request),
            INTENDED,
        )

    def sent(self, row: Row, job_id: str) -> None:
        """The job stands in the queue under that id."""
        self._update(row, state=SENT, job_id=job_id)

    def forget(self, row: Row) -> None:
        """The service has refused the job for good: nothing of it stands anywhere."""
        self._write(f"delete from jobs where {_KEY}", *_key(row))  # noqa: S608 # constants only

    def saw(self, row: Row, **seen: Any) -> None:
        """The last that was seen of the job."""
        if "counts" in seen:
            seen["counts"] = msgspec.json.encode(seen["counts"])
        self._update(row, **seen)

    def experiments(self, scope: Scope | None = None) -> list[Kept]:
        """All that are kept, newest first; of one account and region, if one is given."""
        rows = self._db.execute("select * from experiments order by created desc, id").fetchall()
        kept = [_kept(row) for row in rows]
        return [one for one in kept if scope is None or one.scope == scope]

    def rows(self, kept: Kept) -> list[Row]:
        """The experiment's jobs in the order in which they were sent."""
        found = self._db.execute(
            "select * from jobs where account = ? and region = ? and experiment = ? "
            "order by number, chunk",
            (kept.scope.account, kept.scope.region, kept.id),
        )
        return [_row(row) for row in found]

    def find(self, reference: str, scope: Scope | None = None) -> Kept:
        """The experiment of that id, of that beginning of an id, name, or `latest`.

        Raises WrongUse when there is none, or more than one.
        """
        kept = self.experiments(scope)
        if not kept:
            raise WrongUse(
                "no-experiments", "nothing was submitted from here yet", "submit run --help"
            )
        if reference == "latest":
            return kept[0]
        found = [one for one in kept if one.id == reference]
        found = found or [one for one in kept if one.id.startswith(reference)]
        found = found or [one for one in kept if one.name == reference][:1]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(one.id for one in found[:5])
            raise WrongUse("ambiguous", f"{reference!r} could be any of {ids}", "give more of it")
        recent = ", ".join(f"{one.id} ({one.name})" for one in kept[:3])
        raise WrongUse(
            "unknown-experiment",
            f"there is no experiment {reference!r}; the latest are {recent}",
            "submit status",
        )

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self._path)
        except sqlite3.DatabaseError as err:
            if isinstance(err, sqlite3.OperationalError):
                raise
            aside = self._path.with_suffix(".damaged")
            self._path.replace(aside)
            _warn(
                f"the ledger {self._path} could not be read ({err}); it was kept as {aside}. "
                "What runs is not lost: the same submit run finds it by name"
            )
            return _connect(self._path)

    def _update(self, row: Row, **values: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        self._write(
            f"update jobs set {names} where {_KEY}",  # noqa: S608 # names are this file's own
            *values.values(),
            *_key(row),
        )

    def _write(self, statement: str, *values: Any) -> None:
        try:
            with self._db:
                self._db.execute(statement, values)
        except sqlite3.OperationalError as err:
            raise ServiceFailed(
                "ledger",
                f"the ledger {self._path} can't be written: {err}; nothing more was sent",
                f"free some space (df -h {self._home}), then type the same line again",
            ) from err


_KEY = "account = ? and region = ? and experiment = ? and number = ? and chunk = ?"


def _key(row: Row) -> tuple[Any, ...]:
    return (row.scope.account, row.scope.region, row.experiment, row.number, row.chunk)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30)
    db.row_factory = sqlite3.Row
    try:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = full")
        _bring_up_to_date(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _bring_up_to_date(db: sqlite3.Connection, path: Path) -> None:
    (version,) = db.execute("pragma user_version").fetchone()
    if version > VERSION:
        raise ServiceFailed(
            "ledger-newer",
            f"the ledger {path} was written by a newer runfleet",
            "pip install --upgrade runfleet",
        )
    if version:
        return
    with db:
        db.execute("begin immediate")
        if db.execute("pragma user_version").fetchone()[0] == 0:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"pragma user_version = {VERSION}")


def _kept(row: Mapping[str, Any]) -> Kept:
    return Kept(
        scope=Scope(row["account"], row["region"]),
        id=row["id"],
        stack=row["stack"],
        name=row["name"],
        log_group=row["log_group"],
        experiment=msgspec.json.decode(row["document"], type=Experiment),
        created=row["created"],
    )


def _row(row: Mapping[str, Any]) -> Row:
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
        job_id=row["job_id"],
        counts=msgspec.json.decode(counts, type=dict[RunState, int]) if counts else None,
        reason=row["reason"],
        over=bool(row["over"]),
        started_ms=row["started_ms"],
        stopped_ms=row["stopped_ms"],
        seen=row["seen"],
    )


def _warn(text: str) -> None:
    import sys  # noqa: PLC0415 # only when something is wrong

    sys.stderr.write(f"submit: {text}\n")
