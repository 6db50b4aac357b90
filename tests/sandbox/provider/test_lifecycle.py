"""Each resource type from its creation to its end, as the engine drives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.provider.kinds import BY_TOKEN
from sandbox.testing import Running

from .case import Case
from .cases import CASE_NAMES, Ground, cases
from .conftest import Engine, Made
from .declared import misfits


@pytest.fixture(scope="module")
def ground(sandbox: Running) -> Ground:
    return Ground(sandbox)


@pytest.fixture(params=CASE_NAMES)
def case(request: pytest.FixtureRequest, ground: Ground) -> Case:
    return cases(ground)[request.param]


@pytest.fixture
def made(engine: Engine, case: Case) -> Iterator[Made]:
    return engine.make(case.token, case.inputs)


def test_created_reads_back_as_it_was_asked_for(made: Made) -> None:
    """A refresh right after an update shows no change, and no property is forgotten."""
    assert made.read() == (made.inputs, made.state)
    assert set(made.state) <= BY_TOKEN[made.token].outputs


def test_outputs_have_the_declared_types(made: Made) -> None:
    assert misfits(made.token, made.state) == []


def test_preview_knows_what_the_program_gave(made: Made, case: Case) -> None:
    """And that all else is not known yet."""
    state = made.preview_create()
    assert {key: state[key] for key in case.inputs} == case.inputs
    assert set(state) == BY_TOKEN[made.token].outputs


def test_the_same_inputs_change_nothing(made: Made, case: Case) -> None:
    assert made.diff(case.inputs).changes == []


def test_edits_are_made_in_place(made: Made, case: Case) -> None:
    """The id stays, and AWS has then what the program says."""
    inputs = case.inputs
    for number, edit in enumerate(case.edits, start=1):
        gone = case.gone if number == len(case.edits) else ()
        inputs = {key: value for key, value in (inputs | edit).items() if key not in gone}
        diff = made.diff(inputs)
        assert diff.changes == sorted({*edit, *gone})
        assert diff.replaces == []
        foreseen = made.update(inputs, preview=True)
        after = made.update(inputs)
        assert {key for key in foreseen if not fits(foreseen[key], after.get(key))} == set()
        assert made.read() == (made.inputs, made.state)
        assert misfits(made.token, made.state) == []
        assert made.diff(inputs).changes == []


def test_what_can_not_be_changed_replaces(made: Made, case: Case) -> None:
    """Only a name that the program fixed makes the old one go first."""
    for change in case.replacing:
        new = {key: value for key, value in (case.inputs | change).items() if value is not None}
        diff = made.diff(new)
        assert diff.replaces == sorted(change), change
        assert diff.delete_first == ("name" in new)


def test_deleted_it_is_gone(made: Made, case: Case) -> None:
    """And to delete it again is no error: a destroy that broke off goes on."""
    made.delete()
    assert (made.read() is None) != case.stays
    made.delete()


def test_every_type_and_every_property_has_a_case(ground: Ground) -> None:
    """A property that the provider takes and then forgets would go unseen otherwise."""
    given: dict[str, set[str]] = {}
    for case in cases(ground).values():
        for inputs in (case.inputs, *case.edits, *case.replacing):
            given.setdefault(case.token, set()).update(paths(inputs))
    for token, kind in BY_TOKEN.items():
        nested = {f"{path}.{name}" for path, names in kind.nested.items() for name in names}
        assert kind.inputs | nested <= given[token], token


def fits(foreseen: Any, after: Any) -> bool:
    """Whether the preview said what came, or that it did not know. No tags are empty tags."""
    if foreseen == "04da6b54-80e4-46f7-96ec-b56ff0331ba9":
        return True
    if isinstance(foreseen, dict) and isinstance(after, dict):
        return all(fits(value, after.get(key)) for key, value in foreseen.items())
    if isinstance(foreseen, list) and isinstance(after, list) and len(foreseen) == len(after):
        return all(fits(a, b) for a, b in zip(foreseen, after, strict=True))
    return bool((foreseen or None) == (after or None))


def paths(inputs: Any, lead: str = "") -> set[str]:
    """Every property in the inputs, with dots."""
    if isinstance(inputs, list):
        return {path for item in inputs for path in paths(item, lead)}
    if not isinstance(inputs, dict):
        return set()
    found = {f"{lead}{key}" for key in inputs}
    return found.union(*(paths(value, f"{lead}{key}.") for key, value in inputs.items()))
