"""submit.experiment: identity, grid, arguments."""

from __future__ import annotations

import itertools
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.checks import check_experiment
from submit.errors import WrongUse
from submit.experiment import (
    Axis,
    Experiment,
    Resources,
    experiment_id,
    iter_runs,
    nth_run,
    retries_of,
    run_arguments,
    run_count,
)


def axis(name: str, *values: str) -> Axis:
    return Axis(names=(name,), rows=tuple((value,) for value in values))


ENVS = axis("env-id", "CartPole-v1", "Acrobot-v1")
BASE = Experiment(command=("python", "train.py"), axes=(ENVS,), seeds=(1, 2, 3), image="cleanrl:1")


def test_the_seed_turns_fastest_and_axes_in_their_order() -> None:
    both = msgspec.structs.replace(BASE, axes=(ENVS, axis("lr", "1e-3", "1e-4")), seeds=(1, 2))
    cells = [(*(value for _, value in run.parameters), run.seed) for run in iter_runs(both)]
    want = itertools.product(("CartPole-v1", "Acrobot-v1"), ("1e-3", "1e-4"), (1, 2))
    assert cells == list(want)


def test_parameters_that_go_together_are_one_axis() -> None:
    pairs = Axis(names=("env-id", "steps"), rows=(("Pong", "10"), ("Breakout", "20")))
    runs = list(iter_runs(msgspec.structs.replace(BASE, axes=(pairs,), seeds=())))
    assert [dict(run.parameters) for run in runs] == [
        {"env-id": "Pong", "steps": "10"},
        {"env-id": "Breakout", "steps": "20"},
    ]
    assert runs[0].seed is None


def test_no_grid_and_no_seeds_is_one_run_of_the_command_as_it_is() -> None:
    plain = Experiment(command=("echo", "hi"), image="i")
    assert [run_arguments(plain, run) for run in iter_runs(plain)] == [("echo", "hi")]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (("p",), ("p", "--env-id", "CartPole-v1", "--seed", "1")),
        (("p", "--game={env-id}"), ("p", "--game=CartPole-v1", "--seed", "1")),
        (("p", "{seed}-{env-id}.log"), ("p", "1-CartPole-v1.log")),
        (("p", "{{seed}}"), ("p", "{seed}", "--env-id", "CartPole-v1", "--seed", "1")),
        (("p", "{other}", "{"), ("p", "{other}", "{", "--env-id", "CartPole-v1", "--seed", "1")),
        (("p", "{{seed}"), ("p", "{1", "--env-id", "CartPole-v1")),
        (("p", "{seed}}"), ("p", "1}", "--env-id", "CartPole-v1")),
        (("p", ""), ("p", "", "--env-id", "CartPole-v1", "--seed", "1")),
    ],
)
def test_arguments(command: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    """A parameter that the command names fills its place; the others are appended."""
    experiment = msgspec.structs.replace(BASE, command=command)
    assert run_arguments(experiment, nth_run(experiment, 0)) == arguments


def test_id_is_a_digest_of_the_request_and_of_nothing_else() -> None:
    """The same request has the same id on every machine and in every process."""
    same = msgspec.structs.replace(BASE, name="for people", group="paper")
    assert experiment_id(same) == experiment_id(BASE)
    code = (
        "from submit.experiment import *; print(experiment_id(Experiment(command=('python',"
        "'train.py'),axes=(Axis(names=('env-id',),rows=(('CartPole-v1',),('Acrobot-v1',))),),"
        "seeds=(1,2,3),image='cleanrl:1')))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert out == experiment_id(BASE)
    assert len(out) == 12
    assert set(out) <= set("abcdefghijklmnopqrstuvwxyz234567")


@pytest.mark.parametrize(
    "change",
    [
        {"command": ("python", "other.py")},
        {"axes": ()},
        {"seeds": (1, 2)},
        {"image": "cleanrl:2"},
        {"resources": Resources(gpus=1)},
        {"environment": (("A", "1"),)},
        {"secrets": ("wandb",)},
        {"retries": 0},
        {"generation": 1},
    ],
    ids=str,
)
def test_each_part_of_the_request_changes_the_id(change: dict[str, object]) -> None:
    assert experiment_id(msgspec.structs.replace(BASE, **change)) != experiment_id(BASE)


def test_the_usual_number_of_retries_is_no_other_request_than_none_said() -> None:
    assert retries_of(BASE) == 3
    assert experiment_id(msgspec.structs.replace(BASE, retries=3)) == experiment_id(BASE)


def test_a_new_field_with_a_default_would_not_change_ids() -> None:
    """Ids outlive versions: what is at its default is not part of the digest."""
    plain = Experiment(command=("c",), image="i")
    assert msgspec.json.encode(plain) == b'{"command":["c"],"image":"i"}'


def test_wandb_ids_are_distinct_and_legal() -> None:
    ids = [run.wandb_run_id for run in iter_runs(BASE)]
    assert len(set(ids)) == run_count(BASE)
    assert not set("".join(ids)) & set("/\\#?%:")


def test_a_run_outside_the_grid() -> None:
    for index in (-1, run_count(BASE)):
        with pytest.raises(IndexError):
            nth_run(BASE, index)


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        ({"command": ()}, "no-command"),
        ({"command": ("",)}, "no-command"),
        ({"command": ("a\0b",)}, "nul"),
        ({"command": ("a\udc80",)}, "not-utf8"),
        ({"axes": (axis("", "1"),)}, "parameter-name"),
        ({"axes": (axis("a b", "1"),)}, "parameter-name"),
        ({"axes": (axis("-x", "1"),)}, "parameter-name"),
        ({"axes": (axis("é", "1"),)}, "parameter-name"),
        ({"axes": (axis("a\n", "1"),)}, "parameter-name"),
        ({"axes": (axis("seed", "1"),)}, "parameter-clash"),
        ({"axes": (axis("Seed", "1"),)}, "parameter-clash"),
        ({"axes": (axis("a-b", "1"), axis("a.b", "1"))}, "parameter-clash"),
        ({"axes": (axis("a", "1"), axis("a", "2"))}, "parameter-twice"),
        ({"axes": (Axis(names=("a", "a"), rows=(("1", "2"),)),)}, "parameter-twice"),
        ({"axes": (axis("a"),)}, "no-values"),
        ({"axes": (axis("a", "1", "2", "1"),)}, "value-twice"),
        ({"axes": (axis("a", "x\0"),)}, "nul"),
        ({"seeds": (1, 1)}, "seed-twice"),
        ({"seeds": (-1,)}, "seed-negative"),
        ({"environment": (("1A", "x"),)}, "environment-name"),
        ({"environment": (("AWS_BATCH_JOB_ID", "x"),)}, "environment-reserved"),
        ({"environment": (("RUNFLEET_RUN", "x"),)}, "environment-reserved"),
        ({"environment": (("WANDB_API_KEY", "x"),)}, "environment-secret"),
        ({"environment": (("OPENAI_KEY", "x"),)}, "environment-secret"),
        ({"environment": (("AWS_ACCESS_KEY_ID", "x"),)}, "environment-secret"),
        ({"environment": (("GITHUB_PAT", "x"),)}, "environment-secret"),
        ({"environment": (("A", "1"), ("A", "2"))}, "environment-twice"),
        ({"environment": (("A", "1"),), "secrets": ("A",)}, "environment-twice"),
        ({"secrets": ("wandb", "wandb")}, "environment-twice"),
        ({"name": "a\udc80"}, "not-utf8"),
        ({"group": "a\udc80"}, "not-utf8"),
        ({"group": "g" * 129}, "group"),
        ({"environment": (("A", "x\0"),)}, "nul"),
    ],
    ids=str,
)
def test_refused_before_anything_is_planned(change: dict[str, object], slug: str) -> None:
    with pytest.raises(WrongUse) as caught:
        check_experiment(msgspec.structs.replace(BASE, **change))
    assert caught.value.slug == slug


def test_a_secret_is_not_repeated_in_the_refusal() -> None:
    with pytest.raises(WrongUse) as caught:
        check_experiment(msgspec.structs.replace(BASE, environment=(("MY_TOKEN", "hunter2"),)))
    assert "hunter2" not in f"{caught.value.message}{caught.value.hint}"


@given(st.lists(st.integers(1, 5), max_size=4), st.integers(0, 4))
def test_every_cell_has_exactly_one_index(sizes: list[int], seeds: int) -> None:
    grid = Experiment(
        command=("c",),
        axes=tuple(axis(f"p{n}", *map(str, range(size))) for n, size in enumerate(sizes)),
        seeds=tuple(range(seeds)),
        image="i",
    )
    cells = {(run.parameters, run.seed) for run in iter_runs(grid)}
    assert len(cells) == run_count(grid)
    assert [run.index for run in iter_runs(grid)] == list(range(run_count(grid)))
