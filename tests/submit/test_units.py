"""submit.units: what people type for seeds, memory and time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.errors import WrongUse
from submit.units import parse_duration, parse_memory, parse_seeds


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("1", (1,)),
        ("3", (1, 2, 3)),
        ("1,5,7", (1, 5, 7)),
        ("0,1", (0, 1)),
        ("1..4", (1, 2, 3, 4)),
        ("0..0", (0,)),
        (" 1 , 3 .. 5 ", (1, 3, 4, 5)),
        ("7,", None),
        ("0", None),
        ("abc", None),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("5..1", None),
        ("1..", None),
        ("1-4", None),
        ("٣", None),
        ("1..99999999999", None),
        ("99999999999", None),
    ],
)
def test_seeds(text: str, seeds: tuple[int, ...] | None) -> None:
    if seeds is None:
        with pytest.raises(WrongUse, match="seed"):
            parse_seeds(text)
    else:
        assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("3000", 3000),
        ("3000M", 3000),
        ("3G", 3072),
        ("3GiB", 3072),
        ("1.5 gb", 1536),
        ("0.5T", 524_288),
        ("3", None),
        ("0", None),
        ("-5", None),
        ("3 apples", None),
        ("", None),
        ("1e3", None),
    ],
)
def test_memory(text: str, mib: int | None) -> None:
    if mib is None:
        with pytest.raises(WrongUse):
            parse_memory(text)
    else:
        assert parse_memory(text) == mib


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 3600),
        ("1.5", 5400),
        ("90m", 5400),
        ("90min", 5400),
        ("45s", 45),
        ("2d", 172_800),
        ("12h", 43_200),
        ("an hour", None),
        ("9" * 400, None),
        ("600000", None),
        ("-1", None),
        ("", None),
    ],
)
def test_duration(text: str, seconds: int | None) -> None:
    if seconds is None:
        with pytest.raises(WrongUse):
            parse_duration(text)
    else:
        assert parse_duration(text) == seconds


@given(st.text())
def test_any_text_is_an_amount_or_wrong_use(text: str) -> None:
    for parse in (parse_seeds, parse_memory, parse_duration):
        try:
            parse(text)
        except WrongUse as err:
            assert repr(text) in err.message or repr(text.strip()) in err.message
