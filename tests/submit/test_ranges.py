"""submit.ranges: numbers as text, and text in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.ranges import count_ranges, decode_ranges, encode_ranges, split_ranges


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([0], "0"),
        (range(10_000), "0-9999"),
        ([1, 5, 7], "1,5,7"),
        ([0, 1, 2, 7, 9, 10], "0:6:e16"),
        ([0, 1, 2, 700, 1000, 1001], "0-2,700,1000-1001"),
        ([3, 2, 1], "3,2,1"),
        ([0, 2, 4, 6, 8, 10], "0:6:aaa"),
        (range(100, 400, 2), "100:128:" + "a" * 64 + ",356:22:" + "a" * 11),
    ],
)
def test_form(numbers: list[int], text: str) -> None:
    """Neighbours join, order is kept."""
    assert encode_ranges(numbers) == text
    assert list(decode_ranges(text)) == list(numbers)


@given(st.lists(st.integers(0, 10**6)) | st.lists(st.integers(0, 600)))
def test_round_trip(numbers: list[int]) -> None:
    text = encode_ranges(numbers)
    assert list(decode_ranges(text)) == numbers
    assert count_ranges(text) == len(numbers)


@given(
    st.sets(st.integers(0, 3000), max_size=800).map(sorted),
    st.integers(1, 200),
    st.integers(80, 600),
)
def test_pieces_hold_all_and_keep_their_limits(numbers: list[int], most: int, longest: int) -> None:
    pieces = list(split_ranges(encode_ranges(numbers), most=most, longest=longest))
    assert [n for piece in pieces for n in decode_ranges(piece)] == numbers
    assert all(0 < count_ranges(piece) <= most for piece in pieces)
    assert all(len(piece) <= longest for piece in pieces)


def test_splitting_a_long_range_does_not_walk_its_numbers() -> None:
    """A trillion runs are cut into their first piece at once."""
    first = next(split_ranges("0-999999999999", most=10_000, longest=8_000))
    assert first == "0-9999"


@pytest.mark.parametrize("step", [2, 3, 5])
def test_any_regular_or_random_half_of_a_grid_is_one_job(step: int) -> None:
    """8,192 characters hold 10,000 scattered runs where they are a third of the grid or more."""
    numbers = [n for n in range(30_000) if (n * 7919) % 30_011 % step == 0][:10_000]
    assert len(list(split_ranges(encode_ranges(numbers), most=10_000, longest=7_500))) <= 2
    assert len(encode_ranges(n for n in range(20_000) if n % 2)) < 6_500
