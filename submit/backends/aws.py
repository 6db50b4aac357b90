"""Jobs on AWS Batch. Speaks boto3, which is loaded when a client is first needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from submit.backends import Found, JobStatus, LogLine, RunStatus, Standing
from submit.backends.aws_errors import answered, answered_once
from submit.definitions import MAIN_NODE, Definition, image_of
from submit.errors import ServiceFailed
from submit.plan import DIGEST_TAG, USER_TAG, Job
from submit.runside import RUNS_VARIABLE
from submit.states import BATCH_STATES, CANCEL_REASON, OVER, RunState, may_be, run_state
from submit.waiting import MachinesFacts, QueueFacts

if TYPE_CHECKING:
    from mypy_boto3_batch import BatchClient
    from mypy_boto3_batch.type_defs import (
        ComputeEnvironmentDetailTypeDef,
        JobDetailTypeDef,
        JobSummaryTypeDef,
        KeyValuePairTypeDef,
    )
    from mypy_boto3_logs import CloudWatchLogsClient

T = TypeVar("T")

DESCRIBE_AT_ONCE = 100
"""DescribeJobs, jobs: at most 100 ids."""
STREAMS_AT_ONCE = 100
"""FilterLogEvents, logStreamNames: at most 100."""
CANCEL_AT_ONCE = 50
"""TerminateJobs, jobs: at most 50 ids."""
EMPTY_PAGES = 10
"""GetLogEvents may answer with nothing while there is more: a stream that was silent for hours."""
TRIES = 6


class AwsBackend:
    """AWS Batch and CloudWatch Logs in one region, with the credentials of the environment."""

    prompt = False

    def __init__(self, region: str) -> None:
        self._region = region
        self._clients: dict[tuple[str, int], Any] = {}

    def definitions(self, name: str) -> list[Standing]:
        describe = self._batch().describe_job_definitions
        pages = _pages(describe, jobDefinitionName=name, status="ACTIVE")
        return [
            Standing(
                arn=one["jobDefinitionArn"],
                revision=one["revision"],
                image=image_of(one),
            )
            for page in pages
            for one in page["jobDefinitions"]
        ]

    def register(self, definition: Definition) -> tuple[str, bool]:
        register: Callable[..., Any] = self._batch().register_job_definition
        made = answered(register, **definition.request)
        # Revisions are counted on over those that were deregistered.
        return str(made["jobDefinitionArn"]), made["revision"] > 1

    def send(self, job: Job, definition_arn: str) -> str:
        # SubmitJob has no token that would make a second call harmless: one try.
        submit: Callable[..., Any] = self._client("batch", tries=1).submit_job
        return str(answered_once(submit, jobDefinition=definition_arn, **job.request)["jobId"])

    def find(self, queue_arn: str, prefix: str) -> list[Found]:
        pages = _pages(
            self._batch().list_jobs,
            jobQueue=queue_arn,
            filters=[{"name": "JOB_NAME", "values": [prefix + "*"]}],
        )
        try:
            jobs = [job for page in pages for job in page["jobSummaryList"]]
        except ServiceFailed as err:
            if err.slug == "aws-ClientException":  # a queue that is gone has no jobs
                return []
            raise
        return [
            Found(name=job["jobName"], job_id=job["jobId"], created_ms=job["createdAt"])
            for job in jobs
            if job["jobName"].startswith(prefix)  # the filter does not mind upper and lower case
        ]

    def poll(self, job_ids: Sequence[str]) -> dict[str, JobStatus]:
        return {job["jobId"]: _job_status(job) for job in self._with_main_nodes(job_ids)}

    def runs(self, job_id: str, size: int, children: Sequence[int]) -> list[RunStatus]:
        ids = [f"{job_id}:{child}" for child in children] if size > 1 else [job_id]
        return [_run_status(job) for job in self._with_main_nodes(ids)]

    def node(self, job_id: str, node: int) -> RunStatus | None:
        found = list(self._describe([f"{job_id}#{node}"]))
        return _run_status(found[0]) if found else None

    def children(self, job_id: str, states: Collection[RunState]) -> list[RunStatus]:
        found: list[RunStatus] = []
        for status in [one for one in BATCH_STATES if may_be(one, states)]:
            pages = _pages(self._batch().list_jobs, arrayJobId=job_id, jobStatus=status)
            try:
                found += [_listed_run(job) for page in pages for job in page["jobSummaryList"]]
            except ServiceFailed as err:
                if err.slug == "aws-ClientException":  # a job that is forgotten has no children
                    return []
                raise
        return [run for run in found if run.state in states]

    def facts(self, queue_arn: str) -> QueueFacts | None:
        batch = self._batch()
        queues = answered(batch.describe_job_queues, jobQueues=[queue_arn])["jobQueues"]
        if not queues:
            return None
        order = sorted(queues[0]["computeEnvironmentOrder"], key=lambda one: one["order"])
        names = [one["computeEnvironment"] for one in order]
        found = answered(batch.describe_compute_environments, computeEnvironments=names)
        machines = {one["computeEnvironmentArn"]: one for one in found["computeEnvironments"]}
        return QueueFacts(
            name=queues[0]["jobQueueName"],
            state=queues[0]["state"],
            status=queues[0].get("status", "VALID"),
            reason=queues[0].get("statusReason"),
            machines=tuple(_machines(machines[name]) for name in names if name in machines),
        )

    def tail(self, group: str, stream: str, lines: int) -> list[LogLine]:
        token: str | None = None
        for _ in range(EMPTY_PAGES):
            after = {"nextToken": token} if token else {}
            page = self._log_page(group, stream, limit=lines, startFromHead=False, **after)
            if page["events"] or page.get("nextBackwardToken") == token:
                return _log_lines(page)
            token = page.get("nextBackwardToken")
        return []

    def follow(
        self, group: str, stream: str, token: str | None, since_ms: int | None = None
    ) -> tuple[list[LogLine], str | None]:
        after: dict[str, Any] = {"nextToken": token} if token else {}
        after |= {"startTime": since_ms} if since_ms is not None else {}
        page = self._log_page(group, stream, startFromHead=True, **after)
        return _log_lines(page), page.get("nextForwardToken") or token

    def search(self, group: str, streams: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
        logs = self._logs()
        missing = logs.exceptions.ResourceNotFoundException
        for some in _pieces(streams, STREAMS_AT_ONCE):
            pages = _pages(
                logs.filter_log_events,
                missing,
                logGroupName=group,
                logStreamNames=list(some),
                filterPattern=f'"{text}"',
            )
            try:
                found = [event for page in pages for event in page["events"]]
            except missing:
                # One that does not exist spoils the call for the others (FilterLogEvents, Errors).
                halves = _pieces(some, -(-len(some) // 2)) if len(some) > 1 else ()
                for half in halves:
                    yield from self.search(group, half, text)
                continue
            yield from ((event["logStreamName"], event["message"]) for event in found)

    def cancel(self, job_ids: Sequence[str]) -> None:
        batch = self._batch()
        if not hasattr(batch, "terminate_jobs"):  # botocore has it since 1.44
            for job_id in job_ids:
                answered(batch.terminate_job, jobId=job_id, reason=CANCEL_REASON)
            return
        failures: list[Any] = []
        for some in _pieces(job_ids, CANCEL_AT_ONCE):
            done = answered(batch.terminate_jobs, jobs=list(some), reason=CANCEL_REASON)
            failures += done.get("errors", [])
        # The call answers 200 whatever becomes of each. A job that is forgotten needs no stopping.
        failed = [one for one in failures if one.get("code") != "ClientException"]
        if failed:
            raise ServiceFailed(
                "not-stopped",
                f"{len(failed)} of {len(job_ids)} jobs were not stopped; the first, "
                f"{failed[0].get('job')}: {failed[0].get('code')}: {failed[0].get('message')}",
                "the same line again",
            )

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients = {}

    def _with_main_nodes(self, job_ids: Sequence[str]) -> list[JobDetailTypeDef]:
        """The jobs; those of several nodes with what only their main node tells: how its container
        ended, and where it has logged. One call more for 100 of these.
        """
        jobs = list(self._describe(job_ids))
        several = {f"{job['jobId']}#{MAIN_NODE}": job for job in jobs if "nodeProperties" in job}
        for main in self._describe(list(several)):
            job = several[main["jobId"]]
            job["container"] = main.get("container", {})
            job["attempts"] = main.get("attempts", [])
        return jobs

    def _describe(self, job_ids: Sequence[str]) -> Iterator[JobDetailTypeDef]:
        for some in _pieces(job_ids, DESCRIBE_AT_ONCE):
            yield from answered(self._batch().describe_jobs, jobs=list(some))["jobs"]

    def _log_page(self, group: str, stream: str, **request: Any) -> Any:
        """An empty one of a stream that is not there: a job names its stream before it prints."""
        logs = self._logs()
        missing = logs.exceptions.ResourceNotFoundException
        get: Callable[..., Any] = logs.get_log_events
        try:
            return answered(
                get, passing=missing, logGroupName=group, logStreamName=stream, **request
            )
        except missing:
            return {"events": []}

    def _batch(self) -> BatchClient:
        client: BatchClient = self._client("batch", tries=TRIES)
        return client

    def _logs(self) -> CloudWatchLogsClient:
        client: CloudWatchLogsClient = self._client("logs", tries=TRIES)
        return client

    def _client(self, service: str, *, tries: int) -> Any:
        key = service, tries
        if key not in self._clients:
            self._clients[key] = answered(
                _connect, service=service, region=self._region, tries=tries
            )
        return self._clients[key]


def _connect(service: str, region: str, tries: int) -> Any:
    import boto3  # noqa: PLC0415 # takes a third of a second, and a dry run does without
    from botocore.config import Config  # noqa: PLC0415 # likewise

    config = Config(
        user_agent_extra="runfleet",
        retries={"total_max_attempts": tries, "mode": "standard"},
        connect_timeout=10,
        read_timeout=60,
    )
    connect: Any = boto3.session.Session(region_name=region).client
    return connect(service, config=config)


def _log_lines(page: Any) -> list[LogLine]:
    return [LogLine(at_ms=event["timestamp"], text=event["message"]) for event in page["events"]]


def _pages(
    call: Callable[..., Any], passing: type[Exception] | tuple[()] = (), **request: Any
) -> Iterator[Any]:
    after: dict[str, str] = {}
    while True:
        page = answered(call, passing=passing, **request, **after)
        yield page
        if not page.get("nextToken"):
            return
        after = {"nextToken": page["nextToken"]}


def _job_status(job: JobDetailTypeDef) -> JobStatus:
    reason = job.get("statusReason")
    state = run_state(job["status"], reason)
    counts: dict[RunState, int] = {}
    array = job.get("arrayProperties", {})
    # Of an array's children only the status is told here; a reason given to it is theirs too.
    summary = array.get("statusSummary", {}) if array.get("size") else {job["status"]: 1}
    for status, count in summary.items():
        one = run_state(status, reason)
        if count:
            counts[one] = counts.get(one, 0) + count
    environment = {pair["name"]: pair.get("value", "") for pair in _environment(job)}
    return JobStatus(
        job_id=job["jobId"],
        over=state in OVER,
        counts=counts,
        reason=reason,
        started_ms=job.get("startedAt") or None,
        stopped_ms=job.get("stoppedAt") or None,
        run=None if array.get("size") else _run_status(job),
        runs=environment.get(RUNS_VARIABLE, ""),
        definition=job["jobDefinition"],
        owner=job.get("tags", {}).get(USER_TAG),
        digest=job.get("tags", {}).get(DIGEST_TAG),
    )


def _environment(job: JobDetailTypeDef) -> Sequence[KeyValuePairTypeDef]:
    """Of several nodes the first's stands for all."""
    if "nodeProperties" in job:
        node = job["nodeProperties"]["nodeRangeProperties"][0]
        return node.get("container", {}).get("environment", [])
    return job.get("container", {}).get("environment", [])


def _listed_run(job: JobSummaryTypeDef) -> RunStatus:
    container = job.get("container", {})
    return RunStatus(
        child=job.get("arrayProperties", {}).get("index", 0),
        state=run_state(job["status"], job.get("statusReason")),
        reason=_why(job.get("statusReason"), container.get("reason")),
        exit_code=container.get("exitCode"),
        started_ms=job.get("startedAt") or None,
        stopped_ms=job.get("stoppedAt") or None,
        brief=True,
    )


def _machines(one: ComputeEnvironmentDetailTypeDef) -> MachinesFacts:
    resources = one.get("computeResources", {})
    return MachinesFacts(
        name=one["computeEnvironmentName"],
        state=one.get("state", "ENABLED"),
        status=one.get("status", "VALID"),
        reason=one.get("statusReason"),
        instance_types=tuple(resources.get("instanceTypes", ())),
        spot=resources.get("type") == "SPOT",
        max_vcpus=resources.get("maxvCpus"),
        desired_vcpus=resources.get("desiredvCpus"),
    )


def _run_status(job: JobDetailTypeDef) -> RunStatus:
    container = job.get("container", {})
    attempts = job.get("attempts", [])
    state = run_state(job["status"], job.get("statusReason"))
    streams = [attempt.get("container", {}).get("logStreamName") for attempt in attempts]
    streams.append(container.get("logStreamName"))
    losses = [
        one for one in attempts if run_state("FAILED", one.get("statusReason")) is RunState.LOST
    ]
    return RunStatus(
        child=job.get("arrayProperties", {}).get("index", 0),
        state=state,
        reason=_why(job.get("statusReason"), container.get("reason")),
        exit_code=container.get("exitCode"),
        attempts=len(attempts) + (state in {RunState.STARTING, RunState.RUNNING}),
        started_ms=job.get("startedAt") or None,
        stopped_ms=job.get("stoppedAt") or None,
        streams=tuple(dict.fromkeys(stream for stream in streams if stream)),
        losses=len(losses),
    )


def _why(*reasons: str | None) -> str | None:
    return ": ".join(reason for reason in reasons if reason) or None


def _pieces(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
