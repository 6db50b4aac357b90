"""Jobs on AWS Batch. Speaks boto3, which is loaded when a client is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from submit.backends import JobStatus, LogLine, RunStatus, Unclear
from submit.errors import ServiceFailed
from submit.plan import Definition, Job
from submit.states import CANCEL_REASON, OVER, RunState, run_state

if TYPE_CHECKING:
    from mypy_boto3_batch import BatchClient
    from mypy_boto3_batch.type_defs import JobDetailTypeDef
    from mypy_boto3_logs import CloudWatchLogsClient

T = TypeVar("T")

DESCRIBE_AT_ONCE = 100
"""DescribeJobs, jobs: at most 100 ids."""
BULK_AT_ONCE = 50
"""TerminateJobs, jobs: at most 50 ids."""
STREAMS_AT_ONCE = 100
"""FilterLogEvents, logStreamNames: at most 100."""
THROTTLED = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})


class Throttled(Exception):
    """The service wants fewer calls; nothing was done."""


class AwsBackend:
    """AWS Batch and CloudWatch Logs in one region, with the credentials of the environment."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._clients: dict[str, Any] = {}

    def define(self, definition: Definition) -> tuple[str, bool]:
        batch = self._batch()
        found = _guard(
            lambda: batch.describe_job_definitions(
                jobDefinitionName=definition.name, status="ACTIVE"
            )
        )["jobDefinitions"]
        if found:
            latest = max(found, key=lambda item: item["revision"])
            return latest["jobDefinitionArn"], True
        request: Any = definition.request
        made = _guard(lambda: batch.register_job_definition(**request))
        return made["jobDefinitionArn"], False

    def send(self, job: Job, definition_arn: str) -> str:
        batch = self._client("batch", attempts=1)
        request: Any = job.request
        return str(
            _once(lambda: batch.submit_job(jobDefinition=definition_arn, **request))["jobId"]
        )

    def find(self, queue_arn: str, prefix: str) -> Mapping[str, str]:
        def ask() -> dict[str, str]:
            pages = (
                self._batch()
                .get_paginator("list_jobs")
                .paginate(
                    jobQueue=queue_arn, filters=[{"name": "JOB_NAME", "values": [prefix + "*"]}]
                )
            )
            jobs = [job for page in pages for job in page["jobSummaryList"]]
            # Newest first; of two with one name the older is the one that was meant.
            return {job["jobName"]: job["jobId"] for job in jobs}

        return {name: job_id for name, job_id in _guard(ask).items() if name.startswith(prefix)}

    def poll(self, job_ids: Sequence[str]) -> dict[str, JobStatus]:
        return {job["jobId"]: _job_status(job) for job in self._describe(job_ids)}

    def runs(self, job_id: str, size: int, children: Sequence[int]) -> list[RunStatus]:
        ids = [f"{job_id}:{child}" for child in children] if size > 1 else [job_id]
        return [_run_status(job) for job in self._describe(ids)]

    def failed_children(self, job_id: str, size: int) -> list[int]:
        if size == 1:
            return [0]
        found = _guard(lambda: self._batch().list_jobs(arrayJobId=job_id, jobStatus="FAILED"))
        indexes = [job["arrayProperties"].get("index", 0) for job in found["jobSummaryList"]]
        return sorted(indexes)

    def tail(self, group: str, stream: str, lines: int) -> list[LogLine]:
        events = self._log_events(group, stream, limit=lines, startFromHead=False)["events"]
        return [LogLine(at_ms=event["timestamp"], text=event["message"]) for event in events]

    def follow(
        self, group: str, stream: str, token: str | None
    ) -> tuple[list[LogLine], str | None]:
        after = {"nextToken": token} if token else {}
        answer = self._log_events(group, stream, startFromHead=True, **after)
        lines = [LogLine(at_ms=e["timestamp"], text=e["message"]) for e in answer["events"]]
        return lines, answer.get("nextForwardToken") or token

    def search(self, group: str, streams: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
        for some in _pieces(streams, STREAMS_AT_ONCE):
            after: dict[str, Any] = {}
            while True:
                page = _guard(
                    lambda some=some, after=after: self._logs().filter_log_events(  # type: ignore[misc] # bound for the loop
                        logGroupName=group,
                        logStreamNames=list(some),
                        filterPattern=f'"{text}"',
                        **after,
                    )
                )
                yield from ((event["logStreamName"], event["message"]) for event in page["events"])
                if not page.get("nextToken"):
                    break
                after = {"nextToken": page["nextToken"]}

    def cancel(self, job_ids: Sequence[str]) -> dict[str, str]:
        batch = self._batch()
        failed: dict[str, str] = {}
        if not hasattr(batch, "terminate_jobs"):  # botocore before 1.44
            for job_id in job_ids:
                _guard(
                    lambda job_id=job_id: batch.terminate_job(jobId=job_id, reason=CANCEL_REASON)  # type: ignore[misc] # bound for the loop
                )
            return failed
        for some in _pieces(job_ids, BULK_AT_ONCE):
            answer = _guard(
                lambda some=some: batch.terminate_jobs(jobs=list(some), reason=CANCEL_REASON)  # type: ignore[misc] # bound for the loop
            )
            failed |= {error["job"]: error["message"] for error in answer.get("errors", [])}
        return failed

    def _describe(self, job_ids: Sequence[str]) -> Iterator[JobDetailTypeDef]:
        batch = self._batch()
        for some in _pieces(job_ids, DESCRIBE_AT_ONCE):
            yield from _guard(lambda some=some: batch.describe_jobs(jobs=list(some)))["jobs"]  # type: ignore[misc] # bound for the loop

    def _log_events(self, group: str, stream: str, **request: Any) -> Any:
        logs = self._logs()
        missing = logs.exceptions.ResourceNotFoundException
        try:
            return _guard(
                lambda: logs.get_log_events(logGroupName=group, logStreamName=stream, **request),
                passing=(missing,),
            )
        except missing:
            return {"events": []}

    def _batch(self) -> BatchClient:
        client: BatchClient = self._client("batch", attempts=6)
        return client

    def _logs(self) -> CloudWatchLogsClient:
        client: CloudWatchLogsClient = self._client("logs", attempts=6)
        return client

    def _client(self, service: str, *, attempts: int) -> Any:
        """SubmitJob has no token that would make a repeated call harmless: one attempt only."""
        key = f"{service}-{attempts}"
        if key not in self._clients:
            import boto3  # noqa: PLC0415 # takes a third of a second, and a dry run does without
            from botocore.config import Config  # noqa: PLC0415 # likewise

            config = Config(
                user_agent_extra="runfleet",
                retries={"total_max_attempts": attempts, "mode": "standard"},
                connect_timeout=10,
                read_timeout=60,
            )
            connect: Any = boto3.session.Session(region_name=self._region).client
            self._clients[key] = connect(service, config=config)
        return self._clients[key]


def _guard(call: Callable[[], T], passing: tuple[type[Exception], ...] = ()) -> T:
    """What the call answers.

    Raises ServiceFailed, in words, for whatever else than an answer comes.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # with boto3

    try:
        return call()
    except passing:
        raise
    except (BotoCoreError, ClientError) as err:
        raise _in_words(err) from err


def _once(call: Callable[[], T]) -> T:
    """As _guard, for a call that must not be made twice.

    Raises Unclear where it may have been done, Throttled where it was put off.
    """
    from botocore.exceptions import (  # noqa: PLC0415 # with boto3
        BotoCoreError,
        ClientError,
        ConnectionError,  # noqa: A004 # botocore's
        HTTPClientError,
        ProxyConnectionError,
        ReadTimeoutError,
    )

    try:
        return call()
    except ClientError as err:
        if err.response["Error"]["Code"] in THROTTLED:
            raise Throttled from err
        if err.response["ResponseMetadata"].get("HTTPStatusCode", 500) >= 500:  # noqa: PLR2004 # HTTP
            raise Unclear(str(err)) from err
        raise _in_words(err) from err
    except ReadTimeoutError as err:
        raise Unclear(str(err)) from err
    except (ConnectionError, ProxyConnectionError) as err:
        if _never_left(err):
            raise _in_words(err) from err
        raise Unclear(str(err)) from err
    except HTTPClientError as err:
        raise Unclear(str(err)) from err
    except BotoCoreError as err:
        raise _in_words(err) from err


def _never_left(err: Exception) -> bool:
    """Whether the connection was not even made."""
    from botocore.exceptions import (  # noqa: PLC0415 # with boto3
        ConnectTimeoutError,
        EndpointConnectionError,
        ProxyConnectionError,
    )

    return isinstance(err, (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError))


def _in_words(err: Exception) -> ServiceFailed:
    from botocore.exceptions import (  # noqa: PLC0415 # with boto3
        ClientError,
        ConnectTimeoutError,
        EndpointConnectionError,
        NoCredentialsError,
    )

    if isinstance(err, NoCredentialsError):
        return ServiceFailed(
            "no-credentials", "there are no AWS credentials here", "aws sso login, or aws configure"
        )
    if isinstance(err, (EndpointConnectionError, ConnectTimeoutError)):
        endpoint = str(getattr(err, "kwargs", {}).get("endpoint_url", "AWS"))
        local = "://127." in endpoint or "://localhost" in endpoint
        return ServiceFailed(
            "unreachable",
            f"nothing answers at {endpoint.rstrip('/')}",
            'python -m sandbox up, then eval "$(python -m sandbox env)"'
            if local
            else "check the network, then type the same line again",
        )
    if isinstance(err, ClientError):
        error = err.response["Error"]
        code, message = error.get("Code", ""), error.get("Message", "")
        if code in _EXPIRED:
            return ServiceFailed(
                "expired", "the AWS credentials have expired", "aws sso login, then the same line"
            )
        return ServiceFailed(
            "aws-" + code, f"AWS refused {err.operation_name}: {code}: {message}", ""
        )
    return ServiceFailed("aws", f"AWS could not be asked: {err}", "")


def _job_status(job: JobDetailTypeDef) -> JobStatus:
    reason = job.get("statusReason")
    state = run_state(job["status"], reason)
    summary = job.get("arrayProperties", {}).get("statusSummary", {})
    if job.get("arrayProperties", {}).get("size"):
        counts: dict[RunState, int] = {}
        for status, count in summary.items():
            # Of children only the status is told here; a reason given to the parent is theirs.
            one = run_state(status, reason)
            counts[one] = counts.get(one, 0) + count
        counts = {one: count for one, count in counts.items() if count}
    else:
        counts = {state: 1}
    return JobStatus(
        job_id=job["jobId"],
        over=state in OVER,
        counts=counts,
        reason=reason,
        created_ms=job.get("createdAt"),
        started_ms=job.get("startedAt") or None,
        stopped_ms=job.get("stoppedAt"),
    )


def _run_status(job: JobDetailTypeDef) -> RunStatus:
    container = job.get("container", {})
    attempts = job.get("attempts", [])
    streams = [a.get("container", {}).get("logStreamName", "") for a in attempts]
    current = container.get("logStreamName", "")
    if current and current not in streams:
        streams.append(current)
    state = run_state(job["status"], job.get("statusReason"))
    own = container.get("reason")
    return RunStatus(
        child=job.get("arrayProperties", {}).get("index", 0),
        state=state,
        reason=": ".join(part for part in (job.get("statusReason"), own) if part) or None,
        exit_code=container.get("exitCode"),
        attempts=len(attempts) + (state in {RunState.STARTING, RunState.RUNNING}),
        started_ms=job.get("startedAt") or None,
        stopped_ms=job.get("stoppedAt"),
        streams=tuple(stream for stream in streams if stream),
    )


def _pieces(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
