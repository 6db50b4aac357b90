"""What is known of a run at W&B. Pure."""

from __future__ import annotations

import msgspec


class Tracked(msgspec.Struct, frozen=True, kw_only=True):
    """A run of ours: which it is, and the state in which W&B has it."""

    experiment: str
    index: int
    state: str
