"""For all tests: hypothesis times nothing, since a loaded machine is no fault of the code; what
all of a machine's users share is the tests' own; no module has another one's credentials.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _shared_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNFLEET_SHARED", str(tmp_path_factory.mktemp("machine") / "shared"))
        yield


@pytest.fixture(scope="module", autouse=True)
def _no_credentials_of_others() -> None:
    """boto3 remembers the ones that it has found first, also when they are another sandbox's."""
    boto3 = sys.modules.get("boto3")
    if boto3:
        boto3.DEFAULT_SESSION = None
