"""W&B's own client tells a stand-in server of our runs, and its public API tells us of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("wandb", reason="wandb is not installed")

from submit.errors import Refused, ServiceFailed, SubmitError, WrongUse
from submit.experiment import Axis, Experiment, experiment_id, nth_run
from submit.records import Kept, Scope
from submit.runside import encode_grid, encode_runs, script
from submit.tracking import server
from submit.tracking.records import Tracked
from tests.submit.tracking.standin import KEY, Standin, standin

pytestmark = pytest.mark.slow

TRAIN = """
import os, wandb
with wandb.init() as run:
    for step in range(3):
        run.log({"return": step * 10 + int(os.environ["RUNFLEET_SEED"]), "note": "text"})
    if os.environ["RUNFLEET_SEED"] == "2":
        raise SystemExit(3)
"""
EXPERIMENT = Experiment(
    command=(sys.executable, "-c", TRAIN, "--"),
    axes=(Axis(names=("env-id",), rows=(("Pong-v5",),)),),
    seeds=(1, 2),
    image="i",
    name="ppo",
    group="paper",
    project="atari",
    entity="lab",
)
KEPT = Kept(
    scope=Scope("123456789012", "eu-west-1"),
    id=experiment_id(EXPERIMENT),
    stack="rl",
    name="ppo",
    log_group="l",
    experiment=EXPERIMENT,
    created=0.0,
)


@pytest.fixture
def wandb_server() -> Iterator[Standin]:
    with standin() as found:
        yield found


@pytest.fixture
def environ(wandb_server: Standin, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in list(os.environ):
        if name.startswith("WANDB_"):
            monkeypatch.delenv(name)
    own = {"WANDB_BASE_URL": wandb_server.url, "WANDB_API_KEY": KEY}
    for name, value in (own | {"WANDB_SILENT": "true"}).items():
        monkeypatch.setenv(name, value)
    return own


def train(folder: Path, environ: dict[str, str], index: int) -> subprocess.CompletedProcess[str]:
    """Runs one run as the run side starts it."""
    told = encode_grid(EXPERIMENT) | encode_runs(str(index))
    base = {"PATH": os.environ["PATH"], "HOME": str(folder), "WANDB_DIR": str(folder)}
    return subprocess.run(
        ["sh", "-c", script(), "runfleet"],
        env=base | environ | told,
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )


def test_what_a_run_logs_comes_back(
    tmp_path: Path, wandb_server: Standin, environ: dict[str, str]
) -> None:
    for index in (0, 1, 0):  # the first is tried again
        done = train(tmp_path, environ, index)
        assert done.returncode == (3 if index else 0), done.stderr
    ids = [nth_run(EXPERIMENT, index).wandb_run_id for index in (0, 1)]
    assert sorted(wandb_server.runs) == sorted(ids)
    first = wandb_server.runs[ids[0]]
    assert (first["group"], first["displayName"]) == ("paper", "ppo env-id=Pong-v5 seed=1")
    assert len(first["history"]) == 6, "the second try did not go on in the first one's run"

    assert server.fetch_tracked(environ, "lab/atari", ["failed"]) == [
        Tracked(experiment=KEPT.id, index=1, state="failed")
    ]
    outcomes = server.fetch_outcomes(environ, KEPT, "lab/atari", curves=True)
    assert [(one.run.index, one.metrics) for one in outcomes] == [
        (0, {"return": 21.0}),
        (1, {"return": 22.0}),
    ]
    curve = [(point.step, point.metrics["return"]) for point in outcomes[1].points]
    assert curve == [(0.0, 2.0), (1.0, 12.0), (2.0, 22.0)]
    holes = msgspec.structs.replace(EXPERIMENT, exclude=((("seed", "1"),),))
    kept = msgspec.structs.replace(KEPT, experiment=holes)
    outcomes = server.fetch_outcomes(environ, kept, "lab/atari", curves=False)
    assert [one.run.index for one in outcomes] == [1], "of a grid with holes what is in it"


def test_a_run_without_a_network_is_the_same_run_when_it_is_synced(
    tmp_path: Path, wandb_server: Standin, environ: dict[str, str]
) -> None:
    """Wandb's offline mode keeps the id, the group and the name that runfleet gave."""
    done = train(tmp_path, {"WANDB_MODE": "offline"}, 0)
    assert done.returncode == 0, done.stderr
    assert wandb_server.operations == []
    run_id = nth_run(EXPERIMENT, 0).wandb_run_id
    (folder,) = tmp_path.glob(f"wandb/offline-run-*-{run_id}")
    sync = [sys.executable, "-m", "wandb", "sync", str(folder)]
    subprocess.run(
        sync, env=os.environ | environ, cwd=tmp_path, check=True, capture_output=True, timeout=120
    )
    synced = wandb_server.runs[run_id]
    assert (synced["group"], synced["displayName"]) == ("paper", "ppo env-id=Pong-v5 seed=1")
    assert [row["return"] for row in synced["history"]] == [1, 11, 21]


def test_only_runs_of_ours_in_that_state_are_found(
    wandb_server: Standin, environ: dict[str, str]
) -> None:
    """Over as many pages as there are."""
    for number in range(server.AT_ONCE + 5):
        wandb_server.run(f"{KEPT.id}-{number}", "crashed")
    wandb_server.run(f"{KEPT.id}-900", "finished")
    for other in ("a1b2c3d4", "abcdefabcdef-x", "ABCDEFABCDEF-1", "abcdefabcdef-1-2"):
        wandb_server.run(other, "crashed")
    found = server.fetch_tracked(environ, "lab/atari", ["crashed", "failed"])
    assert [one.index for one in found] == list(range(server.AT_ONCE + 5))
    assert wandb_server.operations.count("Runs") == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, b'{"data": {"project": {"runs', True), "unexpected EOF"),
        ((200, b"<html>", False), "invalid character"),
        ((200, b"{}", False), "no project lab/atari"),
        ((401, b"{}", False), "401"),
        ((403, b'{"errors": [{"message": "permission denied"}]}', False), "permission denied"),
        ((404, b"nope", False), "nope"),
        ((429, b"slow down", False), "lab/atari"),
        ((500, b"oops", False), "lab/atari"),
        ((200, b'{"data": {"project": {"runs": {"edges": [{}]}}}}', False), "lab/atari"),
    ],
)
def test_an_odd_answer_is_a_message(
    wandb_server: Standin,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    answer: Any,
    said: str,
) -> None:
    monkeypatch.setattr(server, "TIMEOUT_S", 2)
    wandb_server.answer_with = answer
    with pytest.raises((ServiceFailed, WrongUse)) as found:
        server.fetch_tracked(environ, "lab/atari", ["crashed"])
    assert said in found.value.message
    assert KEY not in found.value.message + found.value.hint


def test_who_can_not_be_asked(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TIMEOUT_S", 2)
    cases: list[tuple[dict[str, str], str, type[SubmitError], str]] = [
        (environ, "lab", WrongUse, "no ENTITY/PROJECT"),
        (environ, "lab/none", WrongUse, "no project lab/none"),
        ({"HOME": "/nowhere"}, "lab/atari", Refused, "no key here"),
    ]
    for own, path, kind, said in cases:
        with pytest.raises(kind) as found:
            server.fetch_tracked(own, path, ["crashed"])
        assert said in found.value.message
    closed = environ | {"WANDB_BASE_URL": "http://127.0.0.1:9"}
    with pytest.raises(ServiceFailed, match="could not be asked"):
        server.fetch_tracked(closed, "lab/atari", ["crashed"])


def test_a_helper_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is asked to end and does not: nobody waits for it, and it does not stay."""
    monkeypatch.setattr(server, "ENDS_WITHIN_S", 0.2)
    with subprocess.Popen(["sleep", "600"]) as stuck:
        monkeypatch.setattr(server, "_helper", lambda: stuck)
        server._end_helper(stuck.communicate)
        assert stuck.returncode == -signal.SIGKILL


def test_the_helper_is_where_it_is_looked_for(environ: dict[str, str]) -> None:
    with server._asking(environ, "lab/atari"):
        helper = server._helper()
        assert helper
        assert helper.poll() is None
    assert helper.poll() is not None


def test_numbers_alone_are_metrics() -> None:
    logged = {"a": 1, "b": True, "c": "x", "_step": 4, "_runtime": 2.5, "d": {"e": 1}, "f": 0.5}
    assert server.numbers(logged) == {"a": 1.0, "_step": 4.0, "f": 0.5}
    assert msgspec.json.encode(server.numbers({})) == b"{}"
