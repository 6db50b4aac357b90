"""A double in place of AWS, for the tests of the program."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pulumi
import pytest

from .doubles import Double, Look


@pytest.fixture(scope="session")
def event_loop() -> None:
    """From Python 3.12 on, nobody else makes the loop that Pulumi's mocks work in.

    It stays open: its threads hold loops of the mocks' own, which nobody closes.
    """
    asyncio.set_event_loop(asyncio.new_event_loop())


@pytest.fixture
def account(
    monkeypatch: pytest.MonkeyPatch,
    event_loop: None,  # noqa: ARG001 # asked for, not used
) -> Iterator[Double]:
    double = Double()
    monkeypatch.setattr("infra.program.Look", Look)
    pulumi.runtime.set_mocks(double, project="runfleet", stack="rl", preview=False)
    yield double
    pulumi.runtime.settings.reset_options()
