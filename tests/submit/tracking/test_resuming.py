"""submit.tracking.resuming: of what crashed at W&B, what is put back."""

from __future__ import annotations

import msgspec
import pytest

from submit.experiment import Experiment, nth_run
from submit.records import Kept, Scope
from submit.runs import RunView
from submit.states import OVER, RunState
from submit.tracking.records import Tracked
from submit.tracking.resuming import comeback, sort_tracked

EXPERIMENT = Experiment(command=("x",), seeds=(1, 2, 3, 4), image="i")


def kept(identity: str, region: str = "eu-west-1") -> Kept:
    return Kept(
        scope=Scope("123456789012", region),
        id=identity,
        stack="rl",
        name="x",
        log_group="l",
        experiment=EXPERIMENT,
        created=0.0,
    )


def crashed(identity: str, index: int) -> Tracked:
    return Tracked(experiment=identity, index=index, state="crashed")


def test_runs_go_to_the_experiments_that_were_sent_from_here() -> None:
    later, earlier, other = kept("a" * 12, "us-east-1"), kept("a" * 12), kept("b" * 12)
    tracked = [
        *(crashed("a" * 12, index) for index in (3, 1, 1, 4)),
        crashed("b" * 12, 0),
        *(crashed("c" * 12, index) for index in (5, 6)),
    ]
    found = sort_tracked(tracked, [later, earlier, other])
    assert found.ours == ((later, (1, 3)), (other, (0,)))
    assert found.others == {"c" * 12: 2}


def test_of_a_grid_with_holes_each_run_that_there_is() -> None:
    holes = msgspec.structs.replace(EXPERIMENT, exclude=((("seed", "1"),), (("seed", "2"),)))
    ours = msgspec.structs.replace(kept("a" * 12), experiment=holes)
    found = sort_tracked([crashed("a" * 12, index) for index in range(6)], [ours])
    assert found.ours == ((ours, (2, 3)),)


@pytest.mark.parametrize("state", RunState)
def test_a_run_that_is_under_way_is_left_alone(state: RunState) -> None:
    views = [RunView(run=nth_run(EXPERIMENT, 2), state=state)]
    found = comeback(kept("a" * 12), views)
    if state in OVER:
        assert (found.runs, found.under_way) == ((2,), ())
    else:
        assert (found.runs, found.under_way) == ((), (2,))
