"""Looks at what a fleet consists of, for `submit doctor`. Speaks boto3; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from submit.backends.aws_errors import answered
from submit.errors import ServiceFailed
from submit.findings import Quota

AT_ONCE = 100
"""DescribeJobQueues and DescribeComputeEnvironments: at most 100 names; ListServiceQuotas: results."""
NOT_THERE = frozenset({"NoSuchEntity", "ResourceNotFoundException", "NoSuchResourceException"})


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Whose credentials these are, and what time it is at AWS (seconds since 1970)."""

    arn: str
    account: str
    time_s: float


class Inspector:
    """AWS in one region, with the credentials of the environment.

    Each deed raises ServiceFailed when AWS does not answer, or does not allow it.
    """

    def __init__(self, region: str) -> None:
        self._region = region
        self._clients: dict[str, Any] = {}

    def caller(self) -> Caller:
        """GetCallerIdentity: it needs no right."""
        found = self._ask("sts", "get_caller_identity")
        date = found["ResponseMetadata"]["HTTPHeaders"]["date"]
        return Caller(
            arn=found["Arn"],
            account=found["Account"],
            time_s=parsedate_to_datetime(date).timestamp(),
        )

    def queues(self, arns: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Queues by ARN; one that is not there is left out."""
        return self._described("job_queues", "jobQueues", "jobQueueArn", arns)

    def environments(self, arns: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Compute environments by ARN; one that is not there is left out."""
        key = "computeEnvironments"
        return self._described("compute_environments", key, "computeEnvironmentArn", arns)

    def role(self, arn: str) -> Mapping[str, Any] | None:
        """A role, None when it is not there."""
        return self._find("iam", "get_role", RoleName=arn.rpartition("/")[2])

    def secret(self, arn: str) -> Mapping[str, Any] | None:
        """A secret, never its value; None when it is not there."""
        return self._find("secretsmanager", "describe_secret", SecretId=arn)

    def has_log_group(self, name: str) -> bool:
        """Whether there is a log group of that name."""
        found = self._ask("logs", "describe_log_groups", logGroupNamePrefix=name)
        return any(group["logGroupName"] == name for group in found["logGroups"])

    def quotas(self) -> list[Quota]:
        """EC2's quotas in this account and region."""
        request: dict[str, Any] = {"ServiceCode": "ec2", "MaxResults": AT_ONCE}
        found: list[Quota] = []
        while True:
            page = self._ask("service-quotas", "list_service_quotas", **request)
            found += [
                Quota(code=item["QuotaCode"], name=item["QuotaName"], value=item["Value"])
                for item in page["Quotas"]
            ]
            if not page.get("NextToken"):
                return found
            request["NextToken"] = page["NextToken"]

    def _described(
        self, what: str, key: str, arn: str, wanted: Iterable[str]
    ) -> dict[str, Mapping[str, Any]]:
        names = list(dict.fromkeys(wanted))
        found: dict[str, Mapping[str, Any]] = {}
        for start in range(0, len(names), AT_ONCE):
            page = self._ask("batch", f"describe_{what}", **{key: names[start : start + AT_ONCE]})
            found |= {item[arn]: item for item in page[key]}
        return found

    def _find(self, service: str, operation: str, **request: Any) -> Mapping[str, Any] | None:
        try:
            return self._ask(service, operation, **request)
        except ServiceFailed as err:
            if err.slug.removeprefix("aws-") in NOT_THERE:
                return None
            raise

    def _ask(self, service: str, operation: str, **request: Any) -> Mapping[str, Any]:
        if service not in self._clients:
            self._clients[service] = self._client(service)
        call: Callable[..., Mapping[str, Any]] = getattr(self._clients[service], operation)
        return answered(call, **request)

    def _client(self, service: str) -> Any:
        import boto3  # noqa: PLC0415 # with AWS alone
        from botocore.config import Config  # noqa: PLC0415 # with boto3

        config = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 3})
        make: Callable[..., Any] = boto3.client
        return make(service, region_name=self._region, config=config)
