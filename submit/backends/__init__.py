"""What a backend is: where jobs are sent, found again, watched and stopped. Pure.

Its deeds take and give values; what must survive a crash lies in the ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

import msgspec

from submit.definitions import Definition
from submit.plan import Job
from submit.states import RunState
from submit.waiting import QueueFacts


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A job that stands in a queue, in whatever state."""

    name: str
    job_id: str
    created_ms: int


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A job definition that can be used."""

    arn: str
    revision: int
    image: str


class RunStatus(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One run of a job: `child` is its number in the job. `streams` are its logs, one an attempt;
    `losses` its attempts whose machine was taken.

    `brief` is what a list of runs tells: without attempts, losses and streams. The ledger keeps
    these values by the order of their fields: new ones come last, with a default.
    """

    child: int
    state: RunState
    reason: str | None = None
    exit_code: int | None = None
    attempts: int = 0
    started_ms: int | None = None
    stopped_ms: int | None = None
    streams: tuple[str, ...] = ()
    losses: int = 0
    brief: bool = False


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the service sees it. `counts` has its runs by state.

    What is learned of a job that somebody else has sent: `runs` (submit.ranges), `definition`,
    `owner` (the user who sent it), `digest` (of its image, if it is pinned). A backend that nobody shares leaves them empty.
    """

    job_id: str
    over: bool
    counts: dict[RunState, int]
    reason: str | None = None
    started_ms: int | None = None
    stopped_ms: int | None = None
    run: RunStatus | None = None
    """Of a job that is a single run, the run."""
    runs: str = ""
    definition: str = ""
    owner: str | None = None
    digest: str | None = None


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line and when it was written."""

    at_ms: int
    text: str


class Unclear(Exception):
    """The service may or may not have done it: ask by name before it is asked for again."""


class NotNow(Exception):
    """The service wants fewer calls, or could not be reached: nothing was done, ask again later.

    The cause says why, in words.
    """


class Backend(Protocol):
    """Where jobs go. Every method raises ServiceFailed, in words, when the service fails."""

    prompt: bool
    """Whether a job is listed as soon as it is sent, and only who has the ledger sends any."""

    def definitions(self, name: str) -> list[Standing]:
        """What stands under a definition's name, a revision for each image that its tag has meant;
        none where keeping a definition again changes nothing.
        """

    def register(self, definition: Definition) -> tuple[str, bool]:
        """The ARN of a new revision, and whether something was ever there under the name before."""

    def send(self, job: Job, definition_arn: str) -> str:
        """The id of the new job, of one call.

        Raises Unclear when it may have been sent; NotNow and ServiceFailed when it was not.
        """

    def find(self, queue_arn: str, prefix: str) -> list[Found]:
        """The queue's jobs whose names begin so. A new one may take a moment to be listed."""

    def poll(self, job_ids: Sequence[str]) -> dict[str, JobStatus]:
        """Status of each job now: one call per 100. A job that the service has forgotten is
        left out: the ledger's last word stands.
        """

    def runs(self, job_id: str, size: int, children: Sequence[int]) -> list[RunStatus]:
        """Those runs of a job: one call per 100."""

    def node(self, job_id: str, node: int) -> RunStatus | None:
        """A run of several nodes as that node of it has seen it: one call. None when there is no
        such node, or the service has forgotten it.
        """

    def children(self, job_id: str, states: Collection[RunState]) -> list[RunStatus]:
        """The runs of an array that are in one of these states, brief or not: one call per 1,000
        and status of the service's. None when the service has forgotten the job.
        """

    def facts(self, queue_arn: str) -> QueueFacts | None:
        """How the queue and the machines behind it are, to tell why jobs wait: 2 calls at most.
        None when there is no such queue.
        """

    def tail(self, group: str, stream: str, lines: int) -> list[LogLine]:
        """The last lines of a log; none when it does not exist yet."""

    def follow(
        self, group: str, stream: str, token: str | None, since_ms: int | None = None
    ) -> tuple[list[LogLine], str | None]:
        """What has come since `token` (None: from the start, or from that time on), and the next
        token, which is the same again when there is nothing new.
        """

    def search(self, group: str, streams: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
        """(stream, line) of all lines that hold `text`, in order within a stream: one call per
        100 streams and page. A stream that does not exist has none.
        """

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Stops the jobs, running or not, all runs of an array with it; `JOB:N` is run N of an
        array alone. One call for many where the service has it, else one each; what is over or
        forgotten already is no failure.
        """

    def close(self) -> None:
        """Lets go of connections and files; nothing is called after it."""
