"""What was asked, what was sent, what became of it. Speaks SQL (SQLite, one file).

A row is written and synced before its job is sent, so that after any crash the ledger knows
every name under which something may stand in the queue. One row a job, not one a run.
"""

# ruff: noqa: S608 # statements are made of names in this file alone

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from submit.backends import RunStatus
from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Experiment
from submit.history import History, decode_history, encode_history
from submit.ledger_file import Foreign, connect, set_aside
from submit.nearest import did_you_mean
from submit.records import INTENDED, SENT, Fallback, Kept, Row, Scope
from submit.states import RunState
from submit.turns import WAITING, Note, Turn, Turns

T = TypeVar("T")


class Ledger:
    """The ledger in runfleet's home. Usable as a context manager.

    `turns` are those of all homes on this machine; without them only this home's.
    """

    def __init__(self, home: Path, turns: Turns | None = None) -> None:
        self._home = home
        self._turns = turns or Turns(str(home / "shared"))
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
    def lock(self, experiment: str, note: Note = lambda _: None) -> Iterator[Turn]:
        """Only one process at a time sends for an experiment; others wait, which `note` is told."""
        folder = self._home / "locks"
        try:
            folder.mkdir(exist_ok=True, mode=0o700)
            file = (folder / f"{experiment}.lock").open("w")
        except OSError as err:
            raise self._unusable(err) from err
        with file:  # a home may be on several machines
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note(WAITING)
                fcntl.flock(file, fcntl.LOCK_EX)
            with self._turns.take(experiment, note) as turn:
                yield turn

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

    def fall_back(self, kept: Kept, fallback: Fallback) -> None:
        """From now on, the experiment's runs that have lost machines go there."""
        with self._writing():
            self._db.execute(
                f"update experiments set fallback = ? where {_WHOSE} and id = ?",
                (msgspec.json.encode(fallback), *_scope(kept.scope), kept.id),
            )

    def forget(self, row: Row) -> None:
        """Nothing of the job stands anywhere; an experiment without jobs goes with its last."""
        with self._writing():
            for table in ("histories", "jobs"):
                self._db.execute(f"delete from {table} where {_KEY}", _key(row))
            self._db.execute(
                f"delete from experiments where {_WHOSE} and id = ? and not "
                "exists (select * from jobs j where j.account = experiments.account and "
                "j.region = experiments.region and j.experiment = experiments.id)",
                (*_scope(row.scope), row.experiment),
            )

    def remove(self, kept: Kept) -> None:
        """Nothing more is known of the experiment. Of its jobs nothing is stopped."""
        whose = (*_scope(kept.scope), kept.id)
        with self._writing():
            for table in ("histories", "jobs"):
                self._db.execute(f"delete from {table} where {_WHOSE} and experiment = ?", whose)
            self._db.execute(f"delete from experiments where {_WHOSE} and id = ?", whose)

    def saw(self, row: Row, **seen: Any) -> None:
        """The last that was seen of the job."""
        if "counts" in seen:
            seen["counts"] = msgspec.json.encode(seen["counts"])
        self._update(row, **seen)

    def history(self, row: Row) -> dict[int, RunStatus]:
        """What is kept of the job's single runs, by their number in it.

        Raises ServiceFailed when it can't be read.
        """
        found = self._read(f"select document from histories where {_KEY}", *_key(row))
        histories = self._understood(lambda one: decode_history(one[0]), found)
        return histories[0] if histories else {}

    def remember(self, row: Row, history: History, *, settled: bool) -> None:
        """Keeps what became of the job's runs; `settled` when there is no more to be learned."""
        whole = [status for status in history.values() if not status.brief]
        with self._writing():
            self._db.execute(
                "insert or replace into histories values (?, ?, ?, ?, ?, ?)",
                (*_key(row), encode_history(history)),
            )
            self._db.execute(
                f"update jobs set tries = ?, losses = ?, settled = ? where {_KEY}",
                (
                    sum(status.attempts for status in whole),
                    sum(status.losses for status in whole),
                    settled,
                    *_key(row),
                ),
            )

    def has(self, scope: Scope, experiment: str) -> bool:
        """Whether that experiment is kept."""
        found = self._read(
            f"select 1 from experiments where {_WHOSE} and id = ?", *_scope(scope), experiment
        )
        return bool(found)

    def experiments(self) -> list[Kept]:
        """All that are kept, newest first."""
        found = self._read("select * from experiments order by created desc")
        return self._understood(_kept, found)

    def rows(self, kept: Kept) -> list[Row]:
        """The experiment's jobs in the order in which they were sent."""
        found = self._read(
            f"select * from jobs where {_WHOSE} and experiment = ? order by number, chunk",
            *_scope(kept.scope),
            kept.id,
        )
        return self._understood(_row, found)

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
            return connect(self._path)
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, Foreign) as err:
            aside = set_aside(self._path)
            _warn(
                f"{self._path} is no ledger that can be read ({err}); it was kept as {aside}.\n"
                "Nothing that runs is lost: the same `submit run` finds it in the queue by its name"
            )
            return connect(self._path)

    def _insert_experiment(self, kept: Kept) -> None:
        self._db.execute(
            "insert or ignore into experiments values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *_scope(kept.scope),
                kept.id,
                kept.stack,
                kept.name,
                kept.log_group,
                msgspec.json.encode(kept.experiment),
                kept.created,
                msgspec.json.encode(kept.fallback) if kept.fallback else None,
            ),
        )

    def _update(self, row: Row, **values: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        statement = f"update jobs set {names} where {_KEY}"
        with self._writing():
            self._db.execute(statement, (*values.values(), *_key(row)))

    def _read(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.OperationalError as err:  # the disk, a lock, rights: not the file's content
            raise self._unusable(err, "read") from err
        except sqlite3.DatabaseError as err:
            raise self._damaged(err) from err

    def _understood(self, make: Callable[[sqlite3.Row], T], found: list[sqlite3.Row]) -> list[T]:
        """What the rows stand for. Raises ServiceFailed for one that says nothing."""
        try:
            return [make(row) for row in found]
        except (msgspec.DecodeError, zlib.error, ValueError, TypeError) as err:
            raise self._damaged(err) from err

    def _damaged(self, err: Exception) -> ServiceFailed:
        return ServiceFailed(
            "ledger-damaged",
            f"the ledger {self._path} can't be read: {err}.\n"
            "Nothing that runs is lost: the same `submit run` finds it in the queue by its name",
            f"mv {self._path} {self._path}.damaged",
        )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._db:
                yield
        except sqlite3.DatabaseError as err:
            raise self._unusable(err) from err

    def _unusable(self, err: Exception, what: str = "written") -> ServiceFailed:
        return ServiceFailed(
            "ledger",
            f"the ledger {self._path} can't be {what}: {err}",
            f"df -h {self._home}; ls -ld {self._home}; then type the same line again",
        )


_WHOSE = "account = ? and region = ?"
_KEY = f"{_WHOSE} and experiment = ? and number = ? and chunk = ?"


def _scope(scope: Scope) -> tuple[str, str]:
    return (scope.account, scope.region)


def _key(row: Row) -> tuple[Any, ...]:
    return (*_scope(row.scope), row.experiment, row.number, row.chunk)


def _unknown(reference: str, kept: list[Kept]) -> WrongUse:
    names = ["latest", *(name for one in kept for name in (one.id, one.name) if name)]
    recent = ", ".join(f"{one.id} ({one.name})" if one.name else one.id for one in kept[:3])
    guess = did_you_mean(reference, names, most=3)
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
        fallback=_decoded(row["fallback"], Fallback),
    )


def _row(row: sqlite3.Row) -> Row:
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
        counts=_decoded(row["counts"], dict[RunState, int]),
        reason=row["reason"],
        over=bool(row["over"]),
        started_ms=row["started_ms"],
        stopped_ms=row["stopped_ms"],
        seen=row["seen"],
        owner=row["owner"],
        tries=row["tries"],
        losses=row["losses"],
        settled=bool(row["settled"]),
    )


def _decoded(document: bytes | None, kind: type[T]) -> T | None:
    return None if document is None else msgspec.json.decode(document, type=kind)


def _warn(text: str) -> None:
    sys.stderr.write(f"submit: {text}\n")
