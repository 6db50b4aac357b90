"""What the ledger keeps: experiments, and one row for each job. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from submit.experiment import Experiment
from submit.states import RunState

INTENDED, SENT = "intended", "sent"
"""A row's state: whether the job stands in the queue is not known, or it does."""


class Scope(msgspec.Struct, frozen=True):
    """Whose experiments: an account in a region."""

    account: str
    region: str


class Fallback(msgspec.Struct, frozen=True, kw_only=True):
    """Where runs go on that have lost `after` spot machines."""

    queue: str
    after: int


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment in the ledger. `fallback` is no part of what it is: it may come later."""

    scope: Scope
    id: str
    stack: str
    name: str
    log_group: str
    experiment: Experiment
    created: float
    fallback: Fallback | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the ledger. `intended` is when it was about to be sent; `counts` the last that was
    seen of its runs, by state, at the time `seen`. `owner` is whose it is, once it was seen.

    `tries` and `losses` (of machines) are those of its runs as far as they are known; once a job
    that is over is `settled`, all that will ever be known of its runs is in the ledger.
    """

    scope: Scope
    experiment: str
    number: int
    chunk: int
    name: str
    queue_name: str
    queue_arn: str
    definition: str
    runs: str
    size: int
    request: dict[str, Any]
    state: str
    intended: float
    job_id: str | None = None
    counts: dict[RunState, int] | None = None
    reason: str | None = None
    over: bool = False
    started_ms: int | None = None
    stopped_ms: int | None = None
    seen: float | None = None
    owner: str | None = None
    tries: int = 0
    losses: int = 0
    settled: bool = False

    @property
    def stands(self) -> bool:
        """Whether the job is known to have been sent."""
        return self.state == SENT and self.job_id is not None
