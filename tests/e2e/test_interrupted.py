"""Whatever breaks off half-way is completed by the same command, typed again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.faults import Fault

from .conftest import Account, Failed, Stack, open_workshop

pytestmark = [pytest.mark.engine, pytest.mark.slow]

LOOKS = re.compile("(Describe|Get|List|Head)[A-Z]|HEAD$|GET$")
STEPS = 60
"""More than a fleet of one queue takes: a bound, so that a test that gets nowhere ends."""


class Gate:
    """Lets so many changes of the account through, and refuses all that come after."""

    def __init__(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.changes = 0
        self._meet: Callable[[str, str], Fault | None] = account.sandbox.app.faults.meet
        monkeypatch.setattr(account.sandbox.app.faults, "meet", self.meet)

    def meet(self, service: str, operation: str) -> Fault | None:
        if LOOKS.match(operation):
            return self._meet(service, operation)
        if self.left is not None and self.left <= 0:
            return Fault(kind="error")
        if self.left is not None:
            self.left -= 1
        self.changes += 1
        return self._meet(service, operation)


@pytest.fixture
def gate(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(account, monkeypatch)
    yield gate
    gate.left = None


@pytest.fixture
def stack(project: Path, environment: dict[str, str]) -> Iterator[Stack]:
    """One queue. A call that is refused is not tried again, and one is made at a time."""
    with open_workshop(environment | {"AWS_MAX_ATTEMPTS": "1"}) as make:
        stack = make(project, "broken")
        stack.configure(instanceTypes=["c6g.medium"], onDemand=False, maxVcpus=4)
        yield stack


def steps(command: Callable[[], str], gate: Gate) -> int:
    """Does the command one change at a time; how many times it broke off."""
    for broken in range(STEPS):
        gate.left = 1
        try:
            command()
        except Failed as failed:
            assert "InternalFailure" in str(failed), failed  # and nothing else
        else:
            return broken
    pytest.fail(f"not done after {STEPS} tries")


def test_up_and_destroy_go_on_where_they_broke_off(
    account: Account, stack: Stack, gate: Gate
) -> None:
    """After every single change of the account: nothing is lost, nothing is made twice."""
    empty = account.everything()
    assert steps(lambda: stack.up("--parallel", "1"), gate) >= 10
    gate.left = None
    assert stack.plan() == {}
    (name,) = account.environments("broken")
    assert name == "c6g-medium-spot"
    assert Counter(kind for kind, _ in account.everything() - empty) == {
        "compute environment": 1,
        "job queue": 1,
        "launch template": 1,
        "security group": 1,
        "security group rule": 2,
        "IAM role": 3,
        "instance profile": 1,
        "log group": 1,
    }
    assert steps(stack.destroy, gate) >= 10
    gate.left = None
    assert account.everything() == empty
