"""For all tests: hypothesis times nothing, since a loaded machine is no fault of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
