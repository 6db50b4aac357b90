"""Names of jobs: by its beginning a job is found again, by its end people know it. Pure."""

from __future__ import annotations

import re

_LONGEST = 128
"""SubmitJob, jobName: at most 128 characters."""


def job_name(identity: str, number: int, chunk: int, label: str) -> str:
    """The Batch job's name: by its beginning a lost answer is looked up, its end is for people."""
    return f"{job_name_prefix(identity, number)}{chunk}-{slug(label)}"[:_LONGEST].rstrip("-")


def job_chunk(name: str) -> int:
    """The chunk that a job of that name has; what people read in the name plays no part."""
    return int(name.split("-")[2])


def job_number(name: str) -> int:
    """Likewise the submission that it belongs to."""
    return int(name.split("-")[1])


def job_name_prefix(identity: str, number: int | None = None) -> str:
    """What the names of an experiment's jobs begin with; with `number`, of one submission's."""
    return f"{identity}-" if number is None else f"{identity}-{number}-"


def slug(text: str) -> str:
    """`text` in the letters that Batch takes in a name: letters, digits, `-` and `_`."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")
