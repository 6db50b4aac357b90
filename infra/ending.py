"""What ends with a queue that goes: jobs, counted and in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of a queue that are in one state."""

    status: str
    jobs: int
    """An array is one."""
    runs: int
    """Jobs and, of arrays, what they have in them."""

    def told(self) -> str:
        runs = f" ({self.runs} runs)" if self.runs != self.jobs else ""
        return f"{self.jobs} {self.status}{runs}"


def count(status: str, summaries: Iterable[Mapping[str, Any]]) -> Jobs:
    """The jobs that Batch lists in a state (ListJobs, jobSummaryList)."""
    sizes = [summary.get("arrayProperties", {}).get("size", 1) for summary in summaries]
    return Jobs(status=status, jobs=len(sizes), runs=sum(sizes))


def told(ending: Mapping[str, Sequence[Jobs]]) -> str:
    """`c6g-medium: 1 RUNNING, 2 RUNNABLE; …`, queue by queue."""
    return "; ".join(
        f"{queue}: {', '.join(jobs.told() for jobs in found)}" for queue, found in ending.items()
    )
