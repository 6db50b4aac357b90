"""Every setting, edited on a fleet that stands: what the engine plans, and that AWS then has it.

Each edit is asked about by itself; then those of a round are made together, and the next round
stands on what they have left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT, Account, Failed, Stack, Workshop
from .edits import BASE, EDITS, Edit

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TOLD_ELSEWHERE = {"shareDecayHours", "shareReservation"}
"""In test_shares."""


def test_every_key_has_an_edit() -> None:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    told = {key.partition(",")[0] for key in EDITS}
    told |= {key for edit in EDITS.values() for key in edit.change}
    assert told | TOLD_ELSEWHERE == set(declared)


def test_edits(account: Account, project: Path, workshop: Workshop) -> None:
    empty = account.everything()
    stack = workshop(project, "edits")
    settings = dict(BASE)
    stack.configure(**settings)
    stack.up()
    subnet = account.sandbox.client("ec2").describe_subnets()["Subnets"][0]
    real = {"subnetIds": [subnet["SubnetId"]], "vpcId": subnet["VpcId"]}
    for number in sorted({edit.round for edit in EDITS.values()}):
        before = dict(settings)
        for key, edit in EDITS.items():
            if edit.round != number:
                continue
            change = {name: real.get(name, value) for name, value in edit.change.items()}
            ask(stack, key, before | change, edit)
            if not edit.refused:
                settings |= change
        stack.configure(**settings)
        stack.up()
        assert stack.plan() == {}, number
    stack.up("--refresh", "--expect-no-changes")
    stack.destroy()
    assert account.everything() == empty


def ask(stack: Stack, key: str, settings: dict[str, Any], edit: Edit) -> None:
    stack.configure(**settings)
    if edit.refused:
        with pytest.raises(Failed, match=edit.refused):
            stack.plan()
    else:
        assert stack.plan() == edit.plan, key


def test_shares(account: Account, project: Path, workshop: Workshop) -> None:
    """How a queue shares may be changed; whether it does, not."""
    stack = workshop(project, "shares")
    fair = {"instanceTypes": ["c6g.medium"], "spot": False, "fairShare": True}
    stack.configure(**fair)
    stack.up()
    for change in ({"shareDecayHours": 1}, {"shareReservation": 10}, {"shares": {"a*": 0.5}}):
        stack.configure(**fair, **change)
        assert stack.plan() == {"SchedulingPolicy shares-share": "update"}
    stack.up()
    stack.configure(**fair | {"fairShare": False})
    with pytest.raises(Failed, match="Batch fixes when a queue is made"):
        stack.plan()
    stack.destroy()
    assert account.environments("shares") == {}
