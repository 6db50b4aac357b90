"""What stands in the own machine's queue and what became of it. Speaks SQL (SQLite, one file).

The commands add tasks and mark them as cancelled; all else is the supervisor's to write. What a
`writing` block has written is on the disk when it is left: a claim before its run is started.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from submit.errors import ServiceFailed
from submit.local.records import Attempt, Task

VERSION = 1
APPLICATION = 0x72756E6C
"""SQLite's application_id of a store ("runl")."""
_SCHEMA = """
create table definitions (name text primary key, request blob not null) without rowid;
create table tasks (
    seq integer primary key,
    name text not null unique,
    definition text not null references definitions,
    request blob not null,
    size integer not null,
    image text not null,
    environment blob not null,
    created_ms integer not null,
    following integer not null default 0,
    cancelled_ms integer,
    over integer not null default 0,
    note text
);
create index going on tasks (over, seq);
create table attempts (
    seq integer not null,
    child integer not null,
    number integer not null,
    state text not null,
    boot text not null,
    started_ms integer,
    stopped_ms integer,
    code integer,
    reason text,
    primary key (seq, child, number)
) without rowid;
create table stops (
    seq integer not null,
    child integer not null,
    primary key (seq, child)
) without rowid;
"""
_TASK = (
    "select tasks.*, definitions.request as defined from tasks "
    "join definitions on definitions.name = tasks.definition "
)
_LAST = (
    "not exists (select 1 from attempts later where later.seq = attempts.seq "
    "and later.child = attempts.child and later.number > attempts.number)"
)


class Store:
    """The store in the own machine's folder. Usable as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "store.sqlite3"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = _connect(self._path)
        except (OSError, sqlite3.DatabaseError) as err:
            raise self._unusable(err) from err

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._db.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written in the block, or nothing of it; one sync of the disk.

        Raises ServiceFailed when it can't be written.
        """
        try:
            self._db.execute("begin immediate")
            with self._db:
                yield
        except sqlite3.DatabaseError as err:
            raise self._unusable(err) from err

    def define(self, name: str, request: dict[str, Any]) -> bool:
        """Keeps a definition; whether it was there already."""
        with self.writing():
            made = self._db.execute(
                "insert or ignore into definitions values (?, ?)",
                (name, msgspec.json.encode(request)),
            )
        return made.rowcount == 0

    def add(self, task: Task, definition: str) -> None:
        """Puts a task into the queue, unless one of that name was there ever before."""
        with self.writing():
            self._db.execute(
                "insert or ignore into tasks (name, definition, request, size, image, environment, "
                "created_ms) values (?, ?, ?, ?, ?, ?, ?)",
                (
                    task.name,
                    definition,
                    msgspec.json.encode(task.request),
                    task.size,
                    task.image,
                    msgspec.json.encode(task.environment),
                    task.created_ms,
                ),
            )

    def cancel(self, names: Iterable[str], now_ms: int) -> None:
        """Marks tasks that are not over as cancelled, or with `NAME:N` run N of one alone: nothing
        of what is marked is started any more.
        """
        with self.writing():
            for name, colon, child in (name.partition(":") for name in names):
                if colon:
                    self._db.execute(
                        "insert or ignore into stops select seq, ? from tasks where name = ? "
                        "and not over",
                        (int(child), name),
                    )
                    continue
                self._db.execute(
                    "update tasks set cancelled_ms = ? where name = ? and not over "
                    "and cancelled_ms is null",
                    (now_ms, name),
                )

    def stops(self, seq: int) -> set[int]:
        """The runs of a task that were cancelled one by one."""
        return {row["child"] for row in self._read("select child from stops where seq = ?", seq)}

    def tasks(self, names: Iterable[str]) -> list[Task]:
        """The tasks of those names that there are."""
        return [task for name in names for task in self._tasks("where tasks.name = ?", name)]

    def going(self) -> list[Task]:
        """The tasks that are not over, in the order of the queue."""
        return self._tasks("where not over order by seq")

    def is_idle(self) -> bool:
        """Whether all tasks are over."""
        return not self._read("select 1 from tasks where not over limit 1")

    def named(self, prefix: str) -> list[tuple[str, int]]:
        """Name and time (ms) of each task, over or not, whose name begins so."""
        found = self._read(
            "select name, created_ms from tasks where substr(name, 1, ?) = ?", len(prefix), prefix
        )
        return [(row["name"], row["created_ms"]) for row in found]

    def attempts(self, seq: int, children: Sequence[int] | None = None) -> list[Attempt]:
        """All attempts at all runs of a task, or at those; in order."""
        if children is None:
            return self._attempts("where seq = ? order by child, number", seq)
        return [
            attempt
            for child in children
            for attempt in self._attempts("where seq = ? and child = ? order by number", seq, child)
        ]

    def unsettled(self) -> list[Attempt]:
        """Attempts that have not ended, of tasks that are not over."""
        return self._attempts(
            "where seq in (select seq from tasks where not over) and stopped_ms is null "
            "order by seq, child"
        )

    def counts(self, seq: int) -> dict[str, int]:
        """How many of a task's runs have a last attempt in which state."""
        found = self._read(
            f"select state, count(*) as runs from attempts where seq = ? and {_LAST} "  # noqa: S608 # constants
            "group by state",
            seq,
        )
        return {row["state"]: row["runs"] for row in found}

    def times(self, seq: int) -> tuple[int | None, int | None]:
        """When the first of a task's runs began, and the last of those ended that have (ms)."""
        row = self._read(
            "select min(started_ms) as began, max(stopped_ms) as ended from attempts where seq = ?",
            seq,
        )[0]
        return row["began"], row["ended"]

    def put(self, attempts: Iterable[Attempt]) -> None:
        """Writes attempts, new or known; within `writing`."""
        self._db.executemany(
            "insert or replace into attempts values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [msgspec.structs.astuple(attempt) for attempt in attempts],
        )

    def drop(self, attempts: Iterable[Attempt]) -> None:
        """Takes back claims of which nothing came; within `writing`."""
        self._db.executemany(
            "delete from attempts where seq = ? and child = ? and number = ?",
            [(attempt.seq, attempt.child, attempt.number) for attempt in attempts],
        )

    def update(self, seq: int, **values: Any) -> None:
        """Writes some fields of a task; within `writing`."""
        names = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"update tasks set {names} where seq = ?", (*values.values(), seq))  # noqa: S608 # names are this package's own

    def _tasks(self, clause: str, *values: Any) -> list[Task]:
        return [_task(row) for row in self._read(_TASK + clause, *values)]

    def _attempts(self, clause: str, *values: Any) -> list[Attempt]:
        found = self._read(f"select * from attempts {clause}", *values)  # noqa: S608 # constants
        return [Attempt(**dict(row)) for row in found]

    def _read(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as err:
            raise self._unusable(err) from err

    def _unusable(self, err: Exception) -> ServiceFailed:
        return ServiceFailed(
            "local-store",
            f"the own machine's queue, {self._path}, can't be used: {err}",
            f"df -h {self._path.parent}; ls -l {self._path.parent}; then type the same line again",
        )


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30, isolation_level=None)
    db.row_factory = sqlite3.Row
    try:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = full")
        if _version(db) < VERSION:
            with db:
                db.execute("begin immediate")
                if _version(db) < VERSION:  # nobody else has, while this process waited
                    for statement in _SCHEMA.split(";"):
                        db.execute(statement)
                    db.execute(f"pragma application_id = {APPLICATION}")
                    db.execute(f"pragma user_version = {VERSION}")
    except BaseException:
        db.close()
        raise
    return db


def _version(db: sqlite3.Connection) -> int:
    (application,) = db.execute("pragma application_id").fetchone()
    (version,) = db.execute("pragma user_version").fetchone()
    (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
    if (application != APPLICATION and tables) or version > VERSION:
        raise sqlite3.DatabaseError("it is another program's, or a newer runfleet's")
    return int(version)


def _task(row: sqlite3.Row) -> Task:
    return Task(
        seq=row["seq"],
        name=row["name"],
        definition=msgspec.json.decode(row["defined"]),
        request=msgspec.json.decode(row["request"]),
        size=row["size"],
        image=row["image"],
        environment=msgspec.json.decode(row["environment"]),
        created_ms=row["created_ms"],
        following=row["following"],
        cancelled_ms=row["cancelled_ms"],
        over=bool(row["over"]),
        note=row["note"],
    )
