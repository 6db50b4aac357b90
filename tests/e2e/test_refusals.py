"""Settings and surroundings with which there is no fleet: what is said, and that nothing is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Account, Failed, Stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture(scope="module")
def stack(project: Path, environment: dict[str, str]) -> Stack:
    return Stack(project, "wrong", environment)


@pytest.fixture(autouse=True)
def nothing_is_made(account: Account) -> Iterator[None]:
    before = account.everything()
    yield
    assert account.everything() == before


def said(stack: Stack, *command: str) -> str:
    with pytest.raises(Failed) as caught:
        stack.run(*command)
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


def test_all_mistakes_are_told_at_once(stack: Stack) -> None:
    """Each with its path, its value, the reason, and the nearest that there is."""
    wrong: dict[str, Any] = {
        "instanceTypes": ["g4dn.xlrage", "a1.medium", "g5g.xlarge", "p3.2xlarge"],
        "maxVpcus": 16,
        "rootVolumeGib": "big",
    }
    stack.configure(**wrong)
    message = said(stack, "up", "--stack", "wrong", "--yes", "--skip-preview")
    for expected in (
        "mistakes in the settings of stack wrong",
        "runfleet:instanceTypes[0]",
        "g4dn.xlrage",
        "g4dn.xlarge",
        "runfleet:instanceTypes[1]",
        "a1.medium",
        "runfleet:instanceTypes[2]",
        "g5g.xlarge",
        "runfleet:instanceTypes[3]",
        "p3.2xlarge",
        "imageId",
        "runfleet:maxVpcus",
        "nearest: maxVcpus",
        "runfleet:rootVolumeGib",
        "Nothing was changed",
    ):
        assert expected in message


def test_no_sandbox_is_told_as_such(stack: Stack, environment: dict[str, str]) -> None:
    """Without it the provider goes nowhere: never to a real account."""
    stack.configure(instanceTypes=["c6g.medium"])
    elsewhere = {key: value for key, value in environment.items() if key != "AWS_ENDPOINT_URL"}
    stack.environment = elsewhere
    try:
        message = said(stack, "preview", "--stack", "wrong")
    finally:
        stack.environment = environment
    assert "AWS_ENDPOINT_URL is not set: python -m sandbox up" in message
