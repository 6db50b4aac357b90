"""submit.metrics_files: what runs leave in files, near and in S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.testing import running
from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Axis, Experiment, iter_runs
from submit.metrics_files import parse_lines, read_outcomes, run_file

RUNS = list(
    iter_runs(
        Experiment(
            command=("x",),
            axes=(Axis(names=("env-id",), rows=(("A",), ("B/b",))),),
            seeds=(1, 2),
            image="i",
        )
    )
)


def test_the_lines_of_a_file() -> None:
    text = '{"step": 1, "v": 2}\n\nnoise\nrunfleet-metrics {"v": 3}\n{"v": "x"}\n{"v": 4'
    assert list(parse_lines(text)) == [{"step": 1.0, "v": 2.0}, {"v": 3.0}]


def test_a_pattern_leads_to_a_file_for_each_run(tmp_path: Path) -> None:
    for index in (0, 2):
        (tmp_path / f"{index}.jsonl").write_text(f'{{"v": {index}}}\n{{"v": 1{index}}}\n')
    (tmp_path / "1.jsonl").write_text("")
    found = read_outcomes(f"{tmp_path}/{{run}}.jsonl", "abc", RUNS, region="us-east-1")
    assert [(one.run.index, one.metrics, len(one.points)) for one in found] == [
        (0, {"v": 10.0}, 2),
        (2, {"v": 12.0}, 2),
    ]


def test_what_a_pattern_may_say() -> None:
    place = run_file("{experiment}/{env-id}-{seed}/{run}.jsonl", "abc", RUNS[3])
    assert place == "abc/B/b-2/3.jsonl"
    with pytest.raises(
        WrongUse, match=r"no \{lr\} \(there is: \{experiment\}, \{run\}, \{env-id\}"
    ):
        run_file("{lr}", "abc", RUNS[0])


def test_a_pattern_that_is_no_file_of_one_run() -> None:
    with pytest.raises(WrongUse, match="runs 0 and 2 have one file") as found:
        read_outcomes("m-{seed}.jsonl", "abc", RUNS, region="us-east-1")
    assert found.value.hint == "--file m-{seed}-{run}.jsonl"


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "0.jsonl").mkdir()
    with pytest.raises(ServiceFailed, match=r"0\.jsonl can't be read: Is a directory"):
        read_outcomes(f"{tmp_path}/{{run}}.jsonl", "abc", RUNS, region="us-east-1")


@pytest.mark.slow
def test_files_in_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as sandbox:
        for name, value in sandbox.env().items():
            monkeypatch.setenv(name, value)
        s3 = sandbox.client("s3")
        s3.create_bucket(Bucket="rl-artifacts")
        s3.put_object(Bucket="rl-artifacts", Key="abc/1.jsonl", Body=b'{"v": 5}\n')
        pattern = "s3://rl-artifacts/{experiment}/{run}.jsonl"
        found = read_outcomes(pattern, "abc", RUNS, region="us-east-1")
        assert [(one.run.index, one.metrics) for one in found] == [(1, {"v": 5.0})]
        with pytest.raises(ServiceFailed, match="NoSuchBucket"):
            read_outcomes("s3://none-such/{run}", "abc", RUNS, region="us-east-1")
