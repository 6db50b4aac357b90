"""Batch job queues. Speaks boto3."""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.provider.cloud import Cloud, Failed
from sandbox.provider.kind import Kind, with_tags
from sandbox.provider.kinds.batch import settled, tagged, update_tags
from sandbox.provider.wire import Properties


class JobQueue(Kind):
    token = "aws:batch/jobQueue:JobQueue"  # noqa: S105 # Pulumi's word for a type
    label = "Batch Job Queue"
    inputs = frozenset(
        {
            "computeEnvironmentOrders",
            "jobStateTimeLimitActions",
            "name",
            "priority",
            "region",
            "schedulingPolicyArn",
            "state",
            "tags",
            "timeouts",
        }
    )
    nested: ClassVar = {
        "computeEnvironmentOrders": frozenset({"computeEnvironment", "order"}),
        "jobStateTimeLimitActions": frozenset({"action", "maxTimeSeconds", "reason", "state"}),
        "timeouts": frozenset({"create", "delete", "update"}),
    }
    required = frozenset({"priority", "state"})
    outputs = inputs | {"arn", "tagsAll"}
    name_length = 128

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        made = cloud.client("batch").create_job_queue(
            jobQueueName=name,
            state=inputs["state"],
            priority=inputs["priority"],
            computeEnvironmentOrder=inputs.get("computeEnvironmentOrders", []),
            jobStateTimeLimitActions=inputs.get("jobStateTimeLimitActions", []),
            **tagged(inputs),
            **_scheduled(inputs),
        )
        return str(made["jobQueueArn"])

    def complete(self, cloud: Cloud, resource_id: str, inputs: Properties) -> None:
        _ = inputs
        settled(cloud, resource_id, self._detail)

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        found = self._detail(cloud, resource_id)
        if found is None:
            return None
        state = {
            "arn": found["jobQueueArn"],
            "computeEnvironmentOrders": found["computeEnvironmentOrder"],
            "jobStateTimeLimitActions": found.get("jobStateTimeLimitActions", []),
            "name": found["jobQueueName"],
            "priority": found["priority"],
            "region": cloud.region,
            "schedulingPolicyArn": found.get("schedulingPolicyArn"),
            "state": found["state"],
            "timeouts": inputs.get("timeouts"),  # the provider's own: AWS knows none
        }
        return with_tags(state, found["tags"])

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        names = {
            "state": "state",
            "priority": "priority",
            "computeEnvironmentOrders": "computeEnvironmentOrder",
            "jobStateTimeLimitActions": "jobStateTimeLimitActions",
        }
        empty: dict[str, Any] = {"jobStateTimeLimitActions": [], "computeEnvironmentOrders": []}
        request = {
            theirs: new.get(ours, empty.get(ours))
            for ours, theirs in names.items()
            if old.get(ours) != new.get(ours)
        }
        if old.get("schedulingPolicyArn") != new.get("schedulingPolicyArn"):
            if not new.get("schedulingPolicyArn"):
                raise Failed("cannot remove the fair share scheduling policy")
            request |= _scheduled(new)
        if request:
            cloud.client("batch").update_job_queue(jobQueue=resource_id, **request)
        self.complete(cloud, resource_id, new)
        update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        batch = cloud.client("batch")
        found = self._detail(cloud, resource_id)
        if found is None:
            return
        if found["status"] != "DELETING":
            settled(cloud, resource_id, self._detail, invalid_too=True)
            if found["state"] != "DISABLED":
                batch.update_job_queue(jobQueue=resource_id, state="DISABLED")
                settled(cloud, resource_id, self._detail, invalid_too=True)
            batch.delete_job_queue(jobQueue=resource_id)
        cloud.wait(f"deleting {resource_id}", lambda: self._detail(cloud, resource_id) is None)

    @staticmethod
    def _detail(cloud: Cloud, arn: str) -> Any:
        found = cloud.client("batch").describe_job_queues(jobQueues=[arn])["jobQueues"]
        return (found or [None])[0]


def _scheduled(inputs: Properties) -> dict[str, Any]:
    """The scheduling policy as an argument."""
    arn = inputs.get("schedulingPolicyArn")
    return {"schedulingPolicyArn": arn} if arn else {}
