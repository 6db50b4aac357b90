"""submit.ledger: what is kept, and what becomes of a file that is no ledger."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest

from submit.backends import RunStatus
from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Axis, Experiment
from submit.ledger import Ledger
from submit.records import INTENDED, SENT, Fallback, Kept, Row, Scope
from submit.states import RunState

SCOPE = Scope("123456789012", "eu-west-1")
EXPERIMENT = Experiment(
    command=("python", "träin.py"),
    axes=(Axis(names=("lr", "n"), rows=(("1e-3", "\n'"), ("", "$x"))),),
    seeds=(1, 2),
    image="i:1",
)


def kept(identity: str, name: str = "", created: float = 1.0, scope: Scope = SCOPE) -> Kept:
    return Kept(
        scope=scope,
        id=identity,
        stack="rl",
        name=name,
        log_group="/runfleet/rl",
        experiment=EXPERIMENT,
        created=created,
    )


def row(owner: Kept, chunk: int = 0, number: int = 0) -> Row:
    return Row(
        scope=owner.scope,
        experiment=owner.id,
        number=number,
        chunk=chunk,
        name=f"{owner.id}-{number}-{chunk}",
        queue_name="q",
        queue_arn="arn:q",
        definition="arn:d:1",
        runs="0-3",
        size=4,
        request={"jobName": "x", "tags": {"a": "ä"}},
        state=INTENDED,
        intended=5.0,
    )


def intend(ledger: Ledger, *experiments: Kept) -> None:
    for one in experiments:
        ledger.intend(one, row(one))


def test_what_was_kept_is_there_for_the_next_process(tmp_path: Path) -> None:
    one = kept("aaaa")
    seen = {RunState.DONE: 3, RunState.FAILED: 1}
    with Ledger(tmp_path) as ledger:
        for chunk in (1, 0):
            ledger.intend(one, row(one, chunk))
        ledger.sent(row(one, 1), "job-1")
        ledger.saw(row(one, 1), counts=seen, reason="why", over=True, seen=9.0)
    with Ledger(tmp_path) as ledger:
        assert ledger.experiments() == [one]
        assert ledger.rows(one) == [
            row(one, 0),
            msgspec.structs.replace(
                row(one, 1),
                state=SENT,
                job_id="job-1",
                counts=seen,
                reason="why",
                over=True,
                seen=9.0,
            ),
        ]


def test_an_experiment_goes_with_its_last_row(tmp_path: Path) -> None:
    one, other = kept("aaaa"), kept("bbbb")
    with Ledger(tmp_path) as ledger:
        intend(ledger, one, other)
        ledger.intend(one, row(one, 1))
        ledger.forget(row(one, 0))
        assert len(ledger.experiments()) == 2
        ledger.forget(row(one, 1))
        assert ledger.experiments() == [other]
        assert not ledger.has(SCOPE, "aaaa")
        assert ledger.has(SCOPE, "bbbb")


def test_the_same_experiment_in_another_account_is_another(tmp_path: Path) -> None:
    here, there = kept("aaaa"), kept("aaaa", scope=Scope("999999999999", "eu-west-1"), created=2.0)
    with Ledger(tmp_path) as ledger:
        intend(ledger, here, there)
        ledger.sent(row(there), "job-1")
        assert [one.state for one in ledger.rows(here)] == [INTENDED]
        assert ledger.find("aaaa") == there


@pytest.mark.parametrize(
    ("reference", "found"),
    [("latest", "bbcc"), ("aaaa", "aaaa"), ("aa", "aaaa"), ("bbc", "bbcc"), ("ppo", "bbcc")],
)
def test_find(tmp_path: Path, reference: str, found: str) -> None:
    with Ledger(tmp_path) as ledger:
        intend(ledger, kept("aaaa", "ppo"), kept("bbdd", "dqn", 2.0), kept("bbcc", "ppo", 3.0))
        assert ledger.find(reference).id == found


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("bb", "'bb' could be any of bbcc, bbdd"),
        ("ppp", "there is no experiment 'ppp'; did you mean ppo? (the latest"),
        ("lates", "did you mean latest"),
        ("", "there is no experiment ''"),
    ],
)
def test_find_nothing(tmp_path: Path, reference: str, said: str) -> None:
    with Ledger(tmp_path) as ledger:
        intend(ledger, kept("aaaa", "ppo"), kept("bbdd", "dqn", 2.0), kept("bbcc", "ppo", 3.0))
        with pytest.raises(WrongUse) as err:
            ledger.find(reference)
    assert said in err.value.message
    assert err.value.hint == "submit status"


def test_find_in_an_empty_ledger(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger, pytest.raises(WrongUse, match="nothing was submitted"):
        ledger.find("latest")


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_kept_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "ledger.sqlite3"
    for number in (1, 2):
        path.write_bytes(content)
        with Ledger(tmp_path) as ledger:
            intend(ledger, kept("aaaa"))
        aside = tmp_path / f"ledger.sqlite3.damaged-{number}"
        assert aside.read_bytes() == content
        said = capsys.readouterr().err
        assert str(aside) in said
        assert "Nothing that runs is lost" in said


def test_a_database_of_somebody_else_is_kept_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as db:
        db.execute("create table jobs (mine)")
        db.execute("insert into jobs values (5)")
    db.close()
    with Ledger(tmp_path) as ledger:
        assert ledger.experiments() == []
    assert "another program's database" in capsys.readouterr().err
    kept_aside = sqlite3.connect(tmp_path / "ledger.sqlite3.damaged-1")
    assert kept_aside.execute("select mine from jobs").fetchall() == [(5,)]
    kept_aside.close()


def test_a_ledger_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    Ledger(tmp_path).close()
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as db:
        db.execute("pragma user_version = 99")
    db.close()
    with pytest.raises(ServiceFailed, match="newer runfleet") as err:
        Ledger(tmp_path)
    assert "--upgrade" in err.value.hint


OLD = Path(__file__).with_name("ledger-1.sql")
"""A ledger as version 1 wrote it, from an experiment of four runs in two jobs."""


def test_a_ledger_of_version_1_is_brought_up_to_date(tmp_path: Path) -> None:
    """And two processes that open it at once do it once."""
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as db:
        db.executescript(OLD.read_text())
    db.close()
    with Ledger(tmp_path) as ledger, Ledger(tmp_path) as again:
        (one,) = ledger.experiments()
        assert (one.id, one.name, one.fallback) == ("aaaa", "ppo", None)
        first, second = ledger.rows(one)
        assert (first.job_id, first.counts, first.over) == ("job-0", {RunState.DONE: 2}, True)
        assert (second.state, second.settled, second.owner) == (INTENDED, False, None)
        ledger.remember(first, {0: RunStatus(child=0, state=RunState.DONE)}, settled=True)
        assert again.history(first)[0].state is RunState.DONE
        again.fall_back(one, Fallback(queue="q2", after=2))
        assert ledger.find("ppo").fallback == Fallback(queue="q2", after=2)


def test_a_history_is_kept_for_the_next_process(tmp_path: Path) -> None:
    one = kept("aaaa")
    runs = {
        0: RunStatus(child=0, state=RunState.DONE, exit_code=0, attempts=3, losses=2),
        3: RunStatus(child=3, state=RunState.LOST, reason="Höst\n", streams=("a/b", "c")),
    }
    with Ledger(tmp_path) as ledger:
        ledger.intend(one, row(one))
        assert ledger.history(row(one)) == {}
        ledger.remember(row(one), runs, settled=False)
    with Ledger(tmp_path) as ledger:
        assert ledger.history(row(one)) == runs
        (found,) = ledger.rows(one)
        assert (found.tries, found.losses, found.settled) == (3, 2, False)
        ledger.forget(row(one))
        assert ledger.history(row(one)) == {}


def test_removed_is_all_that_was_known_of_it(tmp_path: Path) -> None:
    one, other = kept("aaaa"), kept("bbbb")
    with Ledger(tmp_path) as ledger:
        intend(ledger, one, other)
        for owner in (one, other):
            ledger.remember(row(owner), {0: RunStatus(child=0, state=RunState.DONE)}, settled=True)
        ledger.remove(one)
        assert ledger.experiments() == [other]
        assert ledger.history(row(one)) == {}
        assert ledger.rows(one) == []
        assert ledger.history(row(other))


def test_a_full_disk_is_no_damaged_ledger(tmp_path: Path) -> None:
    """Neither is it told to move the file away, nor is anything of it lost."""
    with Ledger(tmp_path) as ledger:
        intend(ledger, kept("aaaa"))
        (pages,) = ledger._db.execute("pragma page_count").fetchone()
        ledger._db.execute(f"pragma max_page_count = {pages}")
        many = [kept(f"e{number}") for number in range(500)]
        with pytest.raises(ServiceFailed, match=r"can't be written: .*disk is full") as err:
            intend(ledger, *many)
        assert err.value.hint.startswith("df -h")
    with Ledger(tmp_path) as ledger:
        assert ledger.has(SCOPE, "aaaa")


def test_a_file_damaged_within_is_named(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        for number in range(50):
            intend(ledger, kept(f"e{number}", created=float(number)))
    path = tmp_path / "ledger.sqlite3"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xee" * (len(content) - 4096)
    path.write_bytes(content)
    with Ledger(tmp_path) as ledger, pytest.raises(ServiceFailed) as err:
        ledger.experiments()
    assert str(path) in err.value.message
    assert err.value.hint.startswith(f"mv {path}")


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("experiments", "document"),
        ("jobs", "request"),
        ("jobs", "counts"),
        ("histories", "document"),
    ],
)
@pytest.mark.parametrize("content", [b'{"comm', b"\xff", b'{"command": 1}', b"7"])
def test_a_row_that_says_nothing_is_named(
    tmp_path: Path, table: str, column: str, content: bytes
) -> None:
    one = kept("aaaa")
    with Ledger(tmp_path) as ledger:
        ledger.intend(one, row(one))
        ledger.remember(row(one), {}, settled=False)
    path = tmp_path / "ledger.sqlite3"
    with sqlite3.connect(path) as db:
        db.execute(f"update {table} set {column} = ?", (content,))  # noqa: S608 # names from above
    db.close()
    if (column, content) in {("request", b'{"command": 1}'), ("request", b"7")}:
        return  # any JSON may be a request

    def look(ledger: Ledger) -> None:
        ledger.experiments()
        ledger.rows(one)
        ledger.history(row(one))

    with Ledger(tmp_path) as ledger, pytest.raises(ServiceFailed) as err:
        look(ledger)
    assert err.value.hint == f"mv {path} {path}.damaged"


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServiceFailed, match="can't be written"):
        Ledger(tmp_path / "file" / "home")


def test_others_can_not_read_the_folder(tmp_path: Path) -> None:
    Ledger(tmp_path / "home").close()
    assert (tmp_path / "home").stat().st_mode & 0o077 == 0
