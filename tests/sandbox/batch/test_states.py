"""The tables of legal moves."""

from __future__ import annotations

import botocore.session
import pytest

from sandbox.batch.states import JOB_MOVES, OVER, RESOURCE_MOVES, move
from tests.sandbox.batch.ruling import proves

MODEL = botocore.session.get_session().get_service_model("batch")


@proves("states")
@pytest.mark.parametrize(
    ("table", "shape"), [(JOB_MOVES, "JobStatus"), (RESOURCE_MOVES, "CEStatus")]
)
def test_the_tables_have_exactly_the_models_states(
    table: dict[str, frozenset[str]], shape: str
) -> None:
    states = set(MODEL.shape_for(shape).enum)
    assert set(table) == states
    assert set().union(*table.values()) <= states


@proves("states")
@pytest.mark.parametrize("table", [JOB_MOVES, RESOURCE_MOVES], ids=["jobs", "resources"])
def test_what_is_not_in_the_table_is_refused(table: dict[str, frozenset[str]]) -> None:
    for old, legal in table.items():
        for new in table:
            if new in legal:
                assert move(table, old, new) == new
            else:
                with pytest.raises(AssertionError, match=f"no way from {old} to {new}"):
                    move(table, old, new)


def test_what_is_over_stays_so() -> None:
    assert all(not JOB_MOVES[state] for state in OVER)
