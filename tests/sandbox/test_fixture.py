"""The pytest fixture, as a project that uses AWS Batch would take it up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]

THEIR_TESTS = """
import time

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

ONE_TRY = Config(retries={"total_max_attempts": 1})


def test_calls_that_fail(sandbox):
    batch = boto3.client("batch", config=ONE_TRY)
    batch.create_scheduling_policy(name="p")
    for kind, code in [
        ("throttle", "TooManyRequestsException"),
        ("expired", "ExpiredTokenException"),
        ("error", "InternalFailure"),
    ]:
        sandbox.fault(kind, operation="ListSchedulingPolicies")
        with pytest.raises(ClientError) as caught:
            batch.list_scheduling_policies()
        assert caught.value.response["Error"]["Code"] == code
    for kind, there in [("reset", False), ("lost", True)]:
        sandbox.fault(kind, operation="CreateSchedulingPolicy")
        with pytest.raises(ConnectionClosedError):
            batch.create_scheduling_policy(name=kind)
        arns = [policy["arn"] for policy in batch.list_scheduling_policies()["schedulingPolicies"]]
        assert any(arn.endswith("/" + kind) for arn in arns) is there
    sandbox.fault("latency", seconds=0.2)
    before = time.monotonic()
    batch.list_scheduling_policies()
    assert time.monotonic() - before >= 0.2
    kinds = [fault["kind"] for fault in sandbox.struck()]
    assert kinds == ["throttle", "expired", "error", "reset", "lost", "latency"]


def test_the_clock_and_the_conditions(sandbox):
    sandbox.conditions(capacity={"c6g.medium": 0}, lag_s=5, no_image="team/*", rates=True, seed=3)
    assert sandbox.app.conditions.now.seed == 3
    sandbox.conditions()
    assert sandbox.app.conditions.now.capacity == {}
    before = sandbox.app.clock()
    sandbox.advance(3600)
    sandbox.speed_up(50)
    assert sandbox.app.clock() - before >= 3600
    assert sandbox.struck() == [
        {"kind": "clock", "advance": "3600", "speed": "1"},
        {"kind": "clock", "advance": "0", "speed": "50"},
    ]


def test_another_test_has_a_sandbox_of_its_own(sandbox):
    assert boto3.client("batch").list_scheduling_policies()["schedulingPolicies"] == []
    assert sandbox.struck() == []
    assert sandbox.calls() == {"batch.ListSchedulingPolicies": 1}
"""


def test_a_project_breaks_its_own_aws(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["sandbox.fixtures"]\n')
    (tmp_path / "test_theirs.py").write_text(THEIR_TESTS)
    elsewhere = {"AWS_PROFILE": "work", "AWS_ENDPOINT_URL_BATCH": "http://127.0.0.1:9"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env=os.environ | elsewhere | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "3 passed" in ran.stdout, ran.stdout + ran.stderr
