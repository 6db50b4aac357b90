"""Logs of which CloudWatch answers some pages empty: of runs that were silent for hours."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from submit.backends.aws import AwsBackend
from submit.experiment import Run
from submit.logs import read_log
from submit.runs import RunView
from submit.states import RunState

PAGES = [["a", "b"], [], [], [], ["c"], [], ["d", "e"]]
VIEW = RunView(
    run=Run(index=0, parameters=(), seed=None, wandb_run_id="x-0"),
    state=RunState.DONE,
    streams=("s",),
)


class Missing(Exception):
    """No such stream."""


class Logs:
    """Answers page by page, from the head or from the end; at either the same token comes again."""

    exceptions = SimpleNamespace(ResourceNotFoundException=Missing)

    def __init__(self, pages: Sequence[Sequence[str]]) -> None:
        self.pages = pages
        self.calls = 0

    def get_log_events(self, *, startFromHead: bool, **request: Any) -> dict[str, Any]:  # noqa: N803 # AWS's
        self.calls += 1
        if request["logStreamName"] != "s":
            raise Missing
        last = len(self.pages) - 1
        place = int(request.get("nextToken", 0 if startFromHead else last))
        inside = 0 <= place <= last
        texts = self.pages[place] if inside else []
        if not startFromHead:
            texts = texts[-request["limit"] :]
        return {
            "events": [{"timestamp": 1, "message": text} for text in texts],
            "nextForwardToken": str(place + inside),
            "nextBackwardToken": str(place - inside),
        }


def backend(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> AwsBackend:
    made = AwsBackend("us-east-1")
    monkeypatch.setattr(made, "_logs", lambda: logs)
    return made


@pytest.mark.parametrize(
    ("tail", "texts"), [(None, ["a", "b", "c", "d", "e"]), (1, ["e"]), (9, ["d", "e"])]
)
def test_silence_is_not_the_end(
    tail: int | None, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = backend(Logs(PAGES), monkeypatch)
    assert [line.text for line in read_log("g", VIEW, made, tail)] == texts


def test_the_last_lines_lie_before_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    made = backend(Logs([["a", "b"], [], [], []]), monkeypatch)
    assert [line.text for line in made.tail("g", "s", 1)] == ["b"]


@pytest.mark.parametrize("stream", ["s", "none"])
def test_an_empty_log_ends(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs([[]])
    made = backend(logs, monkeypatch)
    assert made.tail("g", stream, 5) == []
    assert made.follow("g", stream, None)[0] == []
    assert logs.calls <= 4
