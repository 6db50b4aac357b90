"""What runs have printed, once or as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from submit.backends import Backend, LogLine
from submit.errors import WrongUse
from submit.experiment import Run
from submit.keeping import Details
from submit.progress import Progress
from submit.ranges import decode_ranges
from submit.runs import RunView, fetch_runs
from submit.session import Session
from submit.states import OVER, RunState

FOLLOW_AT_ONCE = 50
"""Runs that can be followed together: CloudWatch gives an account 25 GetLogEvents a second."""
CALLS_A_SECOND = 10
PATIENCE = 5
"""Empty pages in a row that end a log which is read once: silences of hours answer with some."""
LATE_S = 3.0
"""How long after a run's end its last lines may still come."""


def tried(view: RunView, attempt: int | None) -> RunView:
    """The run, with the log of that attempt alone (from 1)."""
    if attempt is None:
        return view
    return msgspec.structs.replace(view, streams=view.streams[attempt - 1 : attempt])


def of_node(progress: Progress, view: RunView, backend: Backend, node: int | None) -> RunView:
    """The run with the logs of that node (from 0) in its last job: one call; of None, its own.

    Raises WrongUse when it has no such node, or has not been on one yet.
    """
    nodes = progress.kept.experiment.resources.nodes or 1
    if node is None or (nodes == 1 and node == 0):
        return view
    if node >= nodes:
        has = f"it has {nodes}, from 0 to {nodes - 1}" if nodes > 1 else "it is on one machine"
        raise WrongUse(
            "no-such-node",
            f"run {view.run.index} has no node {node}: {has}",
            f"submit logs {progress.kept.id} --run {view.run.index}",
        )
    jobs = [
        row.job_id
        for row in progress.rows
        if row.stands and row.job_id and view.run.index in decode_ranges(row.runs)
    ]
    seen = backend.node(jobs[-1], node) if jobs else None
    if seen is None:
        raise WrongUse(
            "unseen-node",
            f"of node {node} of run {view.run.index} nothing is known",
            f"submit logs {progress.kept.id} --run {view.run.index}",
        )
    return msgspec.structs.replace(view, streams=seen.streams)


def read_log(
    group: str, view: RunView, backend: Backend, tail: int | None, since_ms: int | None = None
) -> Iterator[LogLine]:
    """What the run has printed (since then), its attempts one after the other; with `tail` the
    last so many lines of its last attempt that has any.
    """
    if tail is None:
        for stream in view.streams:
            for lines, _ in _pages(group, stream, backend, None, since_ms, patience=PATIENCE):
                yield from lines
        return
    for stream in reversed(view.streams):
        lines = backend.tail(group, stream, tail)
        lines = [line for line in lines if line.at_ms >= (since_ms or 0)]
        if lines:
            yield from lines
            return


def follow_logs(
    session: Session,
    look: Callable[[], Progress],
    runs: Sequence[Run],
    *,
    tail: int | None,
    attempt: int | None = None,
    node: int | None = None,
    since_ms: int | None = None,
) -> Iterator[tuple[RunView, LogLine]]:
    """Each line of the runs, with the run as it was when the line came, until all have ended.

    `look` tells how the experiment stands. With `tail` only the last lines of what is there
    already come.
    """
    followed = _Followed(tail, since_ms)
    ended_at: float | None = None
    while True:
        progress = look()
        backend = session.backend(progress.kept.scope)
        views = fetch_runs(progress, Details(session.ledger(), backend), runs)
        for view in views:
            shown = tried(of_node(progress, view, backend, node), attempt)
            for line in followed.new_lines(progress.kept.log_group, shown, backend):
                yield view, line
        now = session.clock.time()
        if all(view.state in OVER | {RunState.UNKNOWN, RunState.UNSENT} for view in views):
            ended_at = ended_at or now
            if now - ended_at >= LATE_S:
                return
        session.clock.sleep(max(1.0, len(runs) / CALLS_A_SECOND))


class _Followed:
    """Where the reading of each stream stands."""

    def __init__(self, tail: int | None, since_ms: int | None) -> None:
        self._tail = tail
        self._since_ms = since_ms
        self._tokens: dict[str, str | None] = {}

    def new_lines(self, group: str, view: RunView, backend: Backend) -> Iterator[LogLine]:
        for stream in view.streams:
            if stream not in self._tokens and self._tail:
                lines = list(self._read(group, stream, backend))
                yield from lines[-self._tail :]
            else:
                yield from self._read(group, stream, backend)

    def _read(self, group: str, stream: str, backend: Backend) -> Iterator[LogLine]:
        start = self._tokens.get(stream)
        for lines, token in _pages(group, stream, backend, start, self._since_ms):
            self._tokens[stream] = token
            yield from lines


def _pages(
    group: str,
    stream: str,
    backend: Backend,
    token: str | None,
    since_ms: int | None,
    patience: int = 2,
) -> Iterator[tuple[list[LogLine], str | None]]:
    """The stream from `token` on, with the token behind each page.

    Its end is the same token again; but GetLogEvents may also give a fresh one for ever, and empty
    pages before the end. So that many empty pages in a row are taken for the end, too: a few where
    it is looked at again soon.
    """
    empty = 0
    while empty < patience:
        lines, following = backend.follow(group, stream, token, since_ms)
        yield lines, following
        if following == token:
            return
        empty = 0 if lines else empty + 1
        token = following
