"""Grids with cells taken out and put in: against a plain list of all cells."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submit.cells import kept_spans
from submit.checks import check_experiment
from submit.errors import WrongUse
from submit.experiment import (
    Axis,
    Experiment,
    experiment_id,
    has_run,
    iter_indexes,
    iter_runs,
    nth_run,
    parameter_values,
    run_count,
    run_spans,
)

GRID = Experiment(
    command=("c",),
    axes=(
        Axis(names=("lr",), rows=(("1",), ("2",), ("3",))),
        Axis(names=("env", "steps"), rows=(("A", "10"), ("B", "20"))),
    ),
    seeds=(5, 7),
    image="i",
)


def changed(**change: Any) -> Experiment:
    return msgspec.structs.replace(GRID, **change)


def cell(text: str) -> tuple[tuple[str, str], ...]:
    name_values = (pair.partition("=") for pair in text.split(","))
    return tuple((name, value) for name, _, value in name_values)


def test_an_excluded_cell_keeps_the_indexes_of_the_others() -> None:
    """So a run's W&B id says the same cell whatever is left out beside it."""
    experiment = changed(exclude=(cell("lr=2,env=B"),))
    check_experiment(experiment)
    assert [run.index for run in iter_runs(experiment)] == [0, 1, 2, 3, 4, 5, 8, 9, 10, 11]
    assert run_spans(experiment) == ((0, 5), (8, 11))
    assert nth_run(experiment, 9).parameters == nth_run(GRID, 9).parameters
    assert not has_run(experiment, 7)
    with pytest.raises(IndexError):
        nth_run(experiment, 7)


def test_a_seed_can_be_excluded_alone_and_with_others() -> None:
    experiment = changed(exclude=(cell("seed=7,lr=1"), cell("lr=3,steps=20")))
    left = [
        (dict(run.parameters)["lr"], dict(run.parameters)["env"], run.seed)
        for run in iter_runs(experiment)
    ]
    assert left == [
        ("1", "A", 5), ("1", "B", 5), ("2", "A", 5), ("2", "A", 7), ("2", "B", 5), ("2", "B", 7),
        ("3", "A", 5), ("3", "A", 7),
    ]  # fmt: skip


def test_included_cells_follow_the_grid_and_have_every_seed() -> None:
    experiment = changed(include=(cell("steps=99,lr=9,env=Z"),), exclude=(cell("env=A"),))
    check_experiment(experiment)
    last = list(iter_runs(experiment))[-2:]
    assert [run.index for run in last] == [12, 13]
    assert [run.seed for run in last] == [5, 7]
    assert last[0].parameters == (("lr", "9"), ("env", "Z"), ("steps", "99"))
    assert parameter_values(experiment, "env") == ["A", "B", "Z"]
    assert run_count(experiment) == 8


def test_without_axes_the_included_cells_are_all() -> None:
    experiment = changed(axes=(), include=(cell("a=1,b=2"), cell("b=4,a=3")))
    check_experiment(experiment)
    assert [run.parameters for run in iter_runs(experiment)][::2] == [
        (("a", "1"), ("b", "2")),
        (("a", "3"), ("b", "4")),
    ]


def test_what_was_excluded_may_come_back_in() -> None:
    back = changed(exclude=(cell("lr=2"),), include=(cell("lr=2,env=A,steps=10"),))
    check_experiment(back)
    assert run_count(back) == 10


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        ({"include": (cell("lr=9"),)}, "include-incomplete"),
        ({"include": (cell("lr=9,env=A,steps=1,x=1"),)}, "unknown-parameter"),
        ({"include": (cell("lr=9,env=A,steps=1,seed=1"),)}, "include-seed"),
        ({"include": (cell("lr=1,env=A,steps=10"),)}, "include-twice"),
        ({"include": (cell("lr=9,env=A,steps=1"), cell("lr=9,steps=1,env=A"))}, "include-twice"),
        ({"include": (cell("lr=9,env=A,steps=1,lr=9"),)}, "parameter-twice"),
        ({"axes": (), "include": (cell("a b=1"),)}, "parameter-name"),
        ({"axes": (), "include": (cell("a=1"), cell("b=1"))}, "unknown-parameter"),
        ({"exclude": (cell("x=1"),)}, "unknown-parameter"),
        ({"exclude": (cell("lr=9"),)}, "exclude-nothing"),
        ({"exclude": (cell("seed=6"),)}, "exclude-nothing"),
        ({"axes": (), "include": (cell("a=1"),), "exclude": (cell("seed=5"),)}, "exclude-nothing"),
        ({"exclude": (cell("seed=5"),), "seeds": ()}, "unknown-parameter"),
        ({"exclude": tuple(cell(f"lr={n}") for n in "123")}, "no-runs"),
        ({"include": ((("lr", "a\0"), ("env", "A"), ("steps", "1")),)}, "nul"),
    ],
    ids=str,
)
def test_refused(change: dict[str, Any], slug: str) -> None:
    with pytest.raises(WrongUse) as caught:
        check_experiment(changed(**change))
    assert caught.value.slug == slug


def test_ids_from_before_there_were_cells_stand() -> None:
    """Written down once: an id that changes would send everything again."""
    assert experiment_id(GRID) == "bn62k2peowu5"
    assert experiment_id(changed(tags=("a",), share="b")) == experiment_id(GRID)
    assert experiment_id(changed(exclude=(cell("lr=1"),))) != experiment_id(GRID)


GRIDS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(deadline=None)
@given(data=st.data(), radices=GRIDS)
def test_spans_are_what_a_walk_over_all_cells_finds(
    data: st.DataObject, radices: list[int]
) -> None:
    patterns = data.draw(
        st.lists(
            st.dictionaries(
                st.integers(0, len(radices) - 1), st.frozensets(st.integers(0, 3)), max_size=4
            ),
            max_size=4,
        )
    )
    walk = itertools.product(*map(range, radices))
    kept = [
        number
        for number, digits in enumerate(walk)
        if not any(all(digits[at] in wanted for at, wanted in p.items()) for p in patterns)
    ]
    spans = kept_spans(tuple(radices), tuple(tuple(sorted(p.items())) for p in patterns))
    assert [n for first, last in spans for n in range(first, last + 1)] == kept
    assert all(after[0] > before[1] + 1 for before, after in itertools.pairwise(spans))


@settings(deadline=None)
@given(st.sets(st.sampled_from(["lr=1", "lr=2,env=A", "env=B,seed=5", "steps=20", "seed=7,lr=3"])))
def test_runs_are_found_by_their_index_and_no_other(excluded: set[str]) -> None:
    experiment = changed(
        exclude=tuple(map(cell, sorted(excluded))), include=(cell("lr=0,env=C,steps=0"),)
    )
    runs = list(iter_runs(experiment))
    assert len(runs) == run_count(experiment)
    assert [run.index for run in runs] == list(iter_indexes(experiment))
    assert [nth_run(experiment, run.index) for run in runs] == runs
    assert [n for n in range(20) if has_run(experiment, n)] == [run.index for run in runs]
