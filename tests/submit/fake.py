"""A backend in memory that is as strict as AWS about what it is given, with faults, and its clock."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from submit.backends import Found, JobStatus, LogLine, NotNow, RunStatus, Unclear
from submit.backends import Standing as Definable
from submit.definitions import Definition
from submit.errors import ServiceFailed
from submit.experiment import Experiment
from submit.fleet import Fleet, Queue
from submit.job_names import job_name
from submit.plan import DIGEST_TAG, Job, Submission, plan_submission
from submit.runside import RUNS_VARIABLE
from submit.states import BATCH_STATES, CANCEL_REASON, OVER, RunState, may_be, run_state
from submit.waiting import QueueFacts

FLEET = Fleet(
    version=1,
    stack="rl",
    account="123456789012",
    region="eu-west-1",
    queues={
        name: Queue(
            arn=f"arn:aws:batch:eu-west-1:123456789012:job-queue/rl-{name}",
            instance_type="c6g.medium",
            arch="arm64",
            vcpus=1,
            memory_mib=1760,
            spot=name.endswith("-spot"),
            max_vcpus=16,
        )
        for name in ("c6g-medium", "c6g-medium-spot")
    },
    job_role_arn="arn:aws:iam::123456789012:role/job",
    execution_role_arn="arn:aws:iam::123456789012:role/execution",
    log_group="/runfleet/rl",
    image="python:3.12-slim",
)


def submission(experiment: Experiment, queue: str = "c6g-medium", number: int = 0) -> Submission:
    return plan_submission(experiment, FLEET, queue, user="ada", number=number)


def in_chunks(experiment: Experiment, *pieces: str) -> Submission:
    """As if an array had room for so few runs: a job for each piece."""
    whole = submission(experiment)
    parts = [
        plan_submission(experiment, FLEET, whole.queue_name, user="ada", runs=piece).jobs[0]
        for piece in pieces
    ]
    names = [
        job_name(whole.experiment_id, 0, chunk, experiment.name) for chunk in range(len(parts))
    ]
    jobs = [
        msgspec.structs.replace(part, chunk=n, name=name, request=part.request | {"jobName": name})
        for n, (part, name) in enumerate(zip(parts, names, strict=True))
    ]
    return msgspec.structs.replace(whole, jobs=tuple(jobs))


def _environment(job: Job) -> dict[str, str]:
    nodes = job.request.get("nodeOverrides", {}).get("nodePropertyOverrides", [job.request])
    pairs = nodes[0]["containerOverrides"]["environment"]
    return {pair["name"]: pair["value"] for pair in pairs}


def unpinned(definition: Definition) -> dict[str, Any]:
    """The definition without its image."""
    if "containerProperties" not in definition.request:
        return definition.request
    container = {**definition.request["containerProperties"], "image": ""}
    return {**definition.request, "containerProperties": container}


class Killed(BaseException):
    """The process was killed here: nothing more of it is done."""


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float, /) -> None:
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


class Standing(msgspec.Struct, kw_only=True):
    """A job that was accepted. `children` has the status and the reason of each of its runs."""

    job_id: str
    name: str
    queue: str
    created: float
    children: list[tuple[str, str | None]]
    attempts: int = 1
    runs: str = ""
    definition: str = ""
    owner: str = "ada"
    digest: str | None = None

    @property
    def over(self) -> bool:
        return all(status in {"SUCCEEDED", "FAILED"} for status, _ in self.children)


class FakeBatch:
    """What happens next is in `faults`, one for each call to send: `lost` (done, no answer),
    `reset` (not done, no answer), `throttle` (not done), `refuse` (an error for good), or
    `dies before` and `dies after` (the caller is killed). "" is an answer as usual.
    """

    prompt = False

    def __init__(
        self, clock: Clock, *, listed_after: float = 0.0, described_after: float = 0.0
    ) -> None:
        self.clock = clock
        self.listed_after = listed_after
        self.described_after = described_after
        self.faults: list[str] = []
        self.calls: list[str] = []
        self.jobs: dict[str, Standing] = {}
        self.logs: dict[str, list[str]] = {}
        self.registered: dict[str, Definition] = {}
        self.forgotten: set[str] = set()
        self.queues = {q.arn: QueueFacts(name=name) for name, q in FLEET.queues.items()}

    def definitions(self, name: str) -> list[Definable]:
        self.calls.append("DescribeJobDefinitions")
        return [
            Definable(arn=arn, revision=revision, image=one.image)
            for revision, (arn, one) in enumerate(self.registered.items(), 1)
            if one.name == name
        ]

    def register(self, definition: Definition) -> tuple[str, bool]:
        self.calls.append("RegisterJobDefinition")
        before = [one for one in self.registered.values() if one.name == definition.name]
        assert definition not in before, "equal content is registered once"
        assert all(unpinned(one) == unpinned(definition) for one in before), (
            "one name, two contents"
        )
        arn = f"arn:aws:batch:::job-definition/{definition.name}:{len(before) + 1}"
        self.registered[arn] = definition
        return arn, bool(before)

    def send(self, job: Job, definition_arn: str) -> str:
        assert definition_arn in self.registered
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "dies before":
            raise Killed
        self.calls.append("SubmitJob")
        if fault == "throttle":
            raise NotNow from ServiceFailed("aws-TooManyRequestsException", "slow down")
        if fault == "refuse":
            raise ServiceFailed("aws-ClientException", "the queue is not ENABLED")
        if fault == "reset":
            raise Unclear("reset")
        job_id = f"job-{len(self.jobs)}"
        self.jobs[job_id] = Standing(
            job_id=job_id,
            name=job.name,
            queue=job.request["jobQueue"],
            created=self.clock.time(),
            runs=_environment(job)[RUNS_VARIABLE],
            definition=definition_arn,
            owner=job.request["tags"]["runfleet:user"],
            digest=job.request["tags"].get(DIGEST_TAG),
            children=[("RUNNABLE", None)] * job.request.get("arrayProperties", {"size": 1})["size"],
        )
        if fault == "dies after":
            raise Killed
        if fault == "lost":
            raise Unclear("lost")
        return job_id

    def find(self, queue_arn: str, prefix: str) -> list[Found]:
        self.calls.append("ListJobs")
        newest_first = sorted(self.jobs.values(), key=lambda job: job.created, reverse=True)
        return [
            Found(name=job.name, job_id=job.job_id, created_ms=int(job.created * 1000))
            for job in newest_first
            if job.queue == queue_arn
            and job.name.startswith(prefix)
            and self.clock.time() - job.created >= self.listed_after
        ]

    def poll(self, job_ids: Sequence[str]) -> dict[str, JobStatus]:
        self.calls += ["DescribeJobs"] * -(-len(job_ids) // 100)
        return {
            job_id: self._status(self.jobs[job_id])
            for job_id in job_ids
            if job_id not in self.forgotten
            and self.clock.time() - self.jobs[job_id].created >= self.described_after
        }

    def runs(self, job_id: str, size: int, children: Sequence[int]) -> list[RunStatus]:
        self.calls += ["DescribeJobs"] * -(-len(children) // 100)
        if job_id in self.forgotten:
            return []
        job = self.jobs[job_id]
        assert size == len(job.children)
        return [self._run(job, child) for child in children]

    def node(self, job_id: str, node: int) -> RunStatus | None:
        del job_id, node  # none of its jobs has several
        return None

    def children(self, job_id: str, states: Collection[RunState]) -> list[RunStatus]:
        job = self.jobs[job_id]
        assert len(job.children) > 1, "only an array has children"
        asked = [status for status in BATCH_STATES if may_be(status, states)]
        listed = [n for n, (status, _) in enumerate(job.children) if status in asked]
        self.calls += ["ListJobs"] * (len(asked) + len(listed) // 1001)
        if job_id in self.forgotten:
            return []
        found = [self._run(job, child) for child in listed]
        return [
            msgspec.structs.replace(run, attempts=0, streams=(), losses=0, brief=True)
            for run in found
            if run.state in states
        ]

    def facts(self, queue_arn: str) -> QueueFacts | None:
        self.calls += ["DescribeJobQueues", "DescribeComputeEnvironments"]
        return self.queues.get(queue_arn)

    def tail(self, group: str, stream: str, lines: int) -> list[LogLine]:
        assert group == FLEET.log_group
        self.calls.append("GetLogEvents")
        return self._lines(stream)[-lines:]

    def follow(
        self, group: str, stream: str, token: str | None, since_ms: int | None = None
    ) -> tuple[list[LogLine], str | None]:
        assert group == FLEET.log_group
        self.calls.append("GetLogEvents")
        if stream not in self.logs:
            return [], token
        start = int(token or 0)
        lines = self._lines(stream)[start : start + 3]
        following = str(start + len(lines))
        return [line for line in lines if line.at_ms >= (since_ms or 0)], following

    def search(self, group: str, streams: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
        assert group == FLEET.log_group
        assert streams
        self.calls.append("FilterLogEvents")
        for stream in streams:
            yield from ((stream, line) for line in self.logs.get(stream, []) if text in line)

    def cancel(self, job_ids: Sequence[str]) -> None:
        self.calls += ["TerminateJobs"] * -(-len(job_ids) // 50)
        for job_id in job_ids:
            parent, _, child = job_id.partition(":")
            children = self.jobs[parent].children
            for number, (status, _) in enumerate(children):
                if child in {"", str(number)} and status not in {"SUCCEEDED", "FAILED"}:
                    children[number] = "FAILED", CANCEL_REASON

    def close(self) -> None:
        """Nothing is held."""

    def names(self) -> list[str]:
        """Experiment, submission and chunk of all that was ever accepted."""
        return sorted("-".join(job.name.split("-")[:3]) for job in self.jobs.values())

    def end(self, job_id: str, *children: tuple[str, str | None]) -> None:
        """Brings the job's runs to their ends; all the same end when only one is given."""
        job = self.jobs[job_id]
        job.children = list(children) * (len(job.children) // len(children))

    def _status(self, job: Standing) -> JobStatus:
        reason = next((why for _, why in job.children if why == CANCEL_REASON), None)
        counts: dict[RunState, int] = {}
        single = len(job.children) == 1
        for status, why in job.children:
            state = run_state(status, why if single else reason)
            counts[state] = counts.get(state, 0) + 1
        return JobStatus(
            run=self._run(job, 0) if single else None,
            runs=job.runs,
            definition=job.definition,
            owner=job.owner,
            digest=job.digest,
            job_id=job.job_id,
            over=all(state in OVER for state in counts),
            counts=counts,
            reason=job.children[0][1] if single else reason,
            started_ms=int(job.created * 1000),
            stopped_ms=int(self.clock.time() * 1000) if job.over else None,
        )

    def _run(self, job: Standing, child: int) -> RunStatus:
        status, reason = job.children[child]
        state = run_state(status, reason)
        ends = {RunState.DONE: 0, RunState.FAILED: 1}
        return RunStatus(
            child=child,
            state=state,
            reason=reason,
            exit_code=ends.get(state),
            attempts=job.attempts,
            losses=job.attempts if state is RunState.LOST else 0,
            streams=tuple(f"{job.job_id}/{child}/{n}" for n in range(job.attempts)),
        )

    def _lines(self, stream: str) -> list[LogLine]:
        lines = self.logs.get(stream, [])
        return [LogLine(at_ms=number, text=text) for number, text in enumerate(lines)]


def session(home: Any, backend: FakeBatch) -> Any:
    """A session on the fake, whose ledger is in `home`."""
    from submit.session import Session  # noqa: PLC0415 # the modules above are the pure ones

    shared = f"{home}-shared"  # another machine's
    environ = {"RUNFLEET_HOME": str(home), "RUNFLEET_SHARED": shared, "USER": "ada"}
    return Session(environ=environ, cwd=home, clock=backend.clock, connect=lambda _scope: backend)
