"""For all tests: hypothesis times nothing, since a loaded machine is no fault of the code; what
all of a machine's users share is the tests' own.
"""

from __future__ import annotations

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
