"""Metrics from files that runs have written, one JSON object a line. Reads files, and S3.

A line may bear the mark that it would have in a log. The last may be cut off: the run may be
writing it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from submit.backends.aws_errors import answered
from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Run
from submit.results import MARK, Metrics, Outcome, outcome, parse_metrics

_PLACE = re.compile(r"\{([A-Za-z][A-Za-z0-9_.-]*)\}")


def read_outcomes(
    pattern: str, experiment: str, runs: Sequence[Run], *, region: str
) -> list[Outcome]:
    """The metrics of each run whose file has any. `pattern` is a path, or an s3:// address, in
    which {experiment}, {run}, {seed} and the parameters' names stand for a run's values.

    Raises WrongUse for a pattern that leads several runs to one file, ServiceFailed for files
    that stand but can't be read.
    """
    places = {run.index: run_file(pattern, experiment, run) for run in runs}
    _check_distinct(pattern, places)
    read = _s3_reader(region) if pattern.startswith("s3://") else _read_local
    found = []
    for run in runs:
        text = read(places[run.index])
        said = [] if text is None else list(parse_lines(text))
        if said:
            found.append(outcome(run, [said]))
    return found


def run_file(pattern: str, experiment: str, run: Run) -> str:
    """Where that run's file is. Raises WrongUse for a place that names no parameter."""
    values = {"experiment": experiment, "run": str(run.index), **dict(run.parameters)}
    if run.seed is not None:
        values["seed"] = str(run.seed)

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise WrongUse(
                "metrics-file",
                f"there is no {match[0]} (there is: {', '.join(f'{{{name}}}' for name in values)})",
                "--file 'runs/{run}.jsonl'",
            )
        return values[match[1]]

    return _PLACE.sub(value, pattern)


def parse_lines(text: str) -> Iterator[Metrics]:
    """The numbers of each line that has any."""
    for line in text.splitlines():
        bare = line.strip().removeprefix(MARK)
        metrics = parse_metrics(f"{MARK} {bare}")
        if metrics:
            yield metrics


def _check_distinct(pattern: str, places: Mapping[int, str]) -> None:
    seen: dict[str, int] = {}
    for index, place in places.items():
        other = seen.setdefault(place, index)
        if other != index:
            raise WrongUse(
                "metrics-file",
                f"the runs {other} and {index} have one file, {place}",
                f"--file {pattern.rpartition('.')[0] or pattern}-{{run}}.jsonl",
            )


def _read_local(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as err:
        raise ServiceFailed(
            "metrics-file", f"{path} can't be read: {err.strerror}", f"ls -l {path}"
        ) from err


def _s3_reader(region: str) -> Callable[[str], str | None]:
    import boto3  # noqa: PLC0415 # only for S3

    client = answered(boto3.session.Session(region_name=region).client, service_name="s3")
    missing = client.exceptions.NoSuchKey

    def read(address: str) -> str | None:
        bucket, _, key = address.removeprefix("s3://").partition("/")
        try:
            answer = answered(client.get_object, passing=missing, Bucket=bucket, Key=key)
        except missing:
            return None
        data: bytes = answer["Body"].read()
        return data.decode(errors="replace")

    return read
