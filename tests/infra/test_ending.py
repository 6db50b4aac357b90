"""infra.ending: jobs counted, and in words."""

from __future__ import annotations

from infra.ending import Jobs, count, told


def test_an_array_is_one_job_of_many_runs() -> None:
    summaries = [{"arrayProperties": {"size": 10_000}}, {"jobId": "a"}]
    assert count("PENDING", summaries) == Jobs(status="PENDING", jobs=2, runs=10_001)


def test_words() -> None:
    found = {
        "c6g-medium": [
            count("PENDING", [{"arrayProperties": {"size": 9}}]),
            count("RUNNING", [{}]),
        ],
        "c5a-large": [count("RUNNABLE", [{}, {}])],
    }
    assert told(found) == "c6g-medium: 1 PENDING (9 runs), 1 RUNNING; c5a-large: 2 RUNNABLE"
