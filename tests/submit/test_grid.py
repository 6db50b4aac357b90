"""submit.grid: what people type for a grid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.errors import WrongUse
from submit.grid import parse_axis, parse_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        ("a,", ("a", "")),
        ("", ("",)),
        (r"a\,b,c", ("a,b", "c")),
        (r"a\\,b", ("a\\", "b")),
        (r"C:\dir", ("C:\\dir",)),
        ("end\\", ("end\\",)),
        (" a , b ", (" a ", " b ")),
        ("x=1,y=2", ("x=1", "y=2")),
    ],
)
def test_values(text: str, values: tuple[str, ...]) -> None:
    assert parse_values(text) == values


@given(st.lists(st.text(), min_size=1))
def test_any_value_can_be_written(values: list[str]) -> None:
    text = ",".join(value.replace("\\", "\\\\").replace(",", "\\,") for value in values)
    assert parse_values(text) == tuple(values)


@pytest.mark.parametrize("text", ["lr", "=1", "", "="])
def test_no_axis(text: str) -> None:
    with pytest.raises(WrongUse, match="NAME=VALUE"):
        parse_axis(text)


def test_axis_keeps_what_follows_the_first_equals_sign() -> None:
    axis = parse_axis("overrides=a=1,b=2")
    assert (axis.names, axis.rows) == (("overrides",), (("a=1",), ("b=2",)))
