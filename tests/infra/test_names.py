"""infra.names: every name in AWS, for any stack name that Pulumi takes."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import names

STACKS = st.text("abcXYZ019._-", min_size=1, max_size=100)


@pytest.mark.parametrize(
    ("stack", "name"),
    [
        ("rl", "rl-g4dn-xlarge-spot"),
        ("team_a-2", "team_a-2-g4dn-xlarge-spot"),
        ("team.a", "team-a-??????-g4dn-xlarge-spot"),
        ("...", "??????-g4dn-xlarge-spot"),
        ("a" * 25, "aaaaaaaaaaaaaa-??????-g4dn-xlarge-spot"),
        ("a" * 13 + "-bcdefghijkl", "aaaaaaaaaaaaa-??????-g4dn-xlarge-spot"),
    ],
)
def test_form(stack: str, name: str) -> None:
    """The stack's name as it is, or as much of it as is legal and a digest (??????)."""
    found = names.named(stack, "-g4dn-xlarge-spot", limit=38)
    assert fnmatch.fnmatchcase(found, name)
    assert len(found) <= 38


@given(STACKS, st.sampled_from([names.ROLE_PREFIX, names.BATCH_PREFIX, names.BATCH_NAME]))
def test_legal_for_any_stack(stack: str, limit: int) -> None:
    found = names.named(stack, "-execution-", limit=limit)
    assert len(found) <= limit
    assert re.fullmatch("[A-Za-z0-9][A-Za-z0-9_-]*", found)
    assert found.endswith("-execution-")


@given(STACKS, STACKS)
def test_two_stacks_never_share_a_name(one: str, other: str) -> None:
    same = names.named(one, "-job-", limit=38) == names.named(other, "-job-", limit=38)
    assert same == (one == other)
