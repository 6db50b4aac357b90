"""What is left to send of a submission when jobs of it stand already. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from submit.job_names import job_name
from submit.plan import Job, Submission, recut_job
from submit.ranges import decode_ranges, encode_ranges


def remainder(submission: Submission, standing: Mapping[int, str]) -> tuple[Job, ...]:
    """The jobs that are missing: those whose chunk is not in `standing`, which has the runs
    (submit.ranges) of each chunk that stands.

    Where these are not the runs planned for their chunks (another version may cut an experiment
    at other places), the runs that are left, in jobs numbered on.
    """
    planned = {job.chunk: job.runs for job in submission.jobs}
    if all(planned.get(chunk) == runs for chunk, runs in standing.items()):
        return tuple(job for job in submission.jobs if job.chunk not in standing)
    return tuple(_iter_cut_anew(submission, standing))


def _iter_cut_anew(submission: Submission, standing: Mapping[int, str]) -> Iterator[Job]:
    stands = {run for runs in standing.values() for run in decode_ranges(runs)}
    following = max(*standing, *(job.chunk for job in submission.jobs)) + 1
    for job in submission.jobs:
        left = encode_ranges(run for run in decode_ranges(job.runs) if run not in stands)
        for piece in recut_job(job, left):
            name = job_name(
                submission.experiment_id, submission.number, following, submission.experiment.name
            )
            request = piece.request | {"jobName": name}
            yield msgspec.structs.replace(piece, name=name, chunk=following, request=request)
            following += 1
