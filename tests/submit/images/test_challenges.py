"""submit.images.challenges: what registries write into WWW-Authenticate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.images.challenges import Challenge, parse_challenges


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], []),
        (["Basic"], [Challenge("basic", {})]),
        (["Negotiate, Basic"], [Challenge("negotiate", {}), Challenge("basic", {})]),
        (
            ['Basic realm="a, b", Bearer realm="https://x/t",service=y'],
            [
                Challenge("basic", {"realm": "a, b"}),
                Challenge("bearer", {"realm": "https://x/t", "service": "y"}),
            ],
        ),
        ([r'Bearer realm="a\"b\\"'], [Challenge("bearer", {"realm": 'a"b\\'})]),
        (['realm="x"', "Basic"], [Challenge("basic", {})]),
    ],
)
def test_challenges(headers: list[str], found: list[Challenge]) -> None:
    assert parse_challenges(headers) == found


@given(st.lists(st.text(max_size=60), max_size=3))
def test_whatever_is_written_there_is_read_to_its_end(headers: list[str]) -> None:
    assert all(one.scheme for one in parse_challenges(headers))
