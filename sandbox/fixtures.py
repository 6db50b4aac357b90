"""A sandbox as a pytest fixture, for the tests of whoever uses AWS Batch.

In a conftest.py: `pytest_plugins = ["sandbox.fixtures"]`.
"""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest

from sandbox.client import UNSET
from sandbox.testing import Running, running


@pytest.fixture(name="sandbox")
def fixture_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A sandbox of the test's own, that boto3 and the AWS CLI find by the environment.

    Faults, conditions and the clock are its methods; its jobs end with the test.
    """
    with running() as sandbox:
        for name in UNSET:
            monkeypatch.delenv(name, raising=False)
        for name, value in sandbox.env().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it has the last test's credentials
        yield sandbox
