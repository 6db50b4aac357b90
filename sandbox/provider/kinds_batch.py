"""AWS Batch: compute environments and job queues."""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.provider.cloud import Cloud, TookTooLong, wait
from sandbox.provider.kind import HalfMade, Kind, changed_tags, tags_of, with_tags
from sandbox.provider.wire import Properties

WAIT_SECONDS = 60.0
_RESOURCES = {
    "allocationStrategy": "allocationStrategy",
    "bidPercentage": "bidPercentage",
    "desiredVcpus": "desiredvCpus",
    "ec2KeyPair": "ec2KeyPair",
    "imageId": "imageId",
    "instanceRole": "instanceRole",
    "instanceTypes": "instanceTypes",
    "launchTemplate": "launchTemplate",
    "maxVcpus": "maxvCpus",
    "minVcpus": "minvCpus",
    "placementGroup": "placementGroup",
    "securityGroupIds": "securityGroupIds",
    "spotIamFleetRole": "spotIamFleetRole",
    "subnets": "subnets",
    "tags": "tags",
    "type": "type",
}
"""Pulumi's names of computeResources' members → Batch's; ec2Configurations apart."""
_IN_PLACE = frozenset(
    {"BEST_FIT_PROGRESSIVE", "SPOT_CAPACITY_OPTIMIZED", "SPOT_PRICE_CAPACITY_OPTIMIZED"}
)
_ALWAYS_IN_PLACE = frozenset({"desiredVcpus", "maxVcpus", "minVcpus"})
_NEVER_IN_PLACE = frozenset({"spotIamFleetRole"})


class ComputeEnvironment(Kind):
    token = "aws:batch/computeEnvironment:ComputeEnvironment"  # noqa: S105 # Pulumi's word
    label = "Batch Compute Environment"
    inputs = frozenset(
        {
            "computeResources",
            "name",
            "namePrefix",
            "region",
            "serviceRole",
            "state",
            "tags",
            "type",
            "updatePolicy",
        }
    )
    nested: ClassVar = {
        "computeResources": frozenset(_RESOURCES) | {"ec2Configurations"},
        "computeResources.ec2Configurations": frozenset({"imageIdOverride", "imageType"}),
        "computeResources.launchTemplate": frozenset(
            {"launchTemplateId", "launchTemplateName", "version"}
        ),
        "updatePolicy": frozenset({"jobExecutionTimeoutMinutes", "terminateJobsOnUpdate"}),
    }
    required = frozenset({"computeResources", "type"})
    outputs = inputs | {
        "arn",
        "ecsClusterArn",
        "eksConfiguration",
        "status",
        "statusReason",
        "tagsAll",
    }
    replaces = frozenset({"type"})
    changing = frozenset({"status", "statusReason"})
    name_length = 128

    def also_replaces(self, old: Properties, new: Properties) -> set[str]:
        """As the provider decides: nearly all is updated in place with the service-linked role
        and a strategy that allows it, nearly nothing without (User Guide, Updating compute
        environments).
        """
        before, after = old.get("computeResources", {}), new.get("computeResources", {})
        changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
        in_place = (
            not old.get("serviceRole")
            and not new.get("serviceRole")
            and before.get("allocationStrategy") in _IN_PLACE
            and after.get("allocationStrategy") in _IN_PLACE
        )
        frozen = changed & _NEVER_IN_PLACE if in_place else changed - _ALWAYS_IN_PLACE
        replaced = {"computeResources"} if frozen else set()
        if old.get("serviceRole") != new.get("serviceRole") and not old.get("serviceRole"):
            replaced.add("serviceRole")
        return replaced

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        batch = cloud.client("batch")
        role = {"serviceRole": inputs["serviceRole"]} if inputs.get("serviceRole") else {}
        batch.create_compute_environment(
            computeEnvironmentName=name,
            type=inputs["type"],
            state=inputs.get("state", "ENABLED"),
            computeResources=_to_batch(inputs["computeResources"]),
            tags=tags_of(inputs),
            **role,
        )
        try:
            self._settled(cloud, name)
            if inputs.get("updatePolicy"):
                batch.update_compute_environment(
                    computeEnvironment=name, updatePolicy=inputs["updatePolicy"]
                )
                self._settled(cloud, name)
        except (RuntimeError, TookTooLong) as err:
            raise HalfMade(name, str(err)) from err
        return name

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        found = self._detail(cloud, resource_id)
        if found is None:
            return None
        linked = "/aws-service-role/" in found["serviceRole"]
        state = {
            "arn": found["computeEnvironmentArn"],
            "computeResources": _from_batch(found["computeResources"]),
            "ecsClusterArn": found["ecsClusterArn"],
            "eksConfiguration": None,
            "name": found["computeEnvironmentName"],
            "namePrefix": inputs.get("namePrefix", ""),
            "region": cloud.region,
            "serviceRole": found["serviceRole"] if inputs.get("serviceRole") or linked else None,
            "state": found["state"],
            "status": found["status"],
            "statusReason": found.get("statusReason"),
            "type": found["type"],
            "updatePolicy": found["updatePolicy"],
        }
        return with_tags(state, found["tags"])

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        batch = cloud.client("batch")
        request: dict[str, Any] = {}
        if old.get("state") != new.get("state"):
            request["state"] = new.get("state", "ENABLED")
        if old["computeResources"] != new["computeResources"]:
            before, after = _to_batch(old["computeResources"]), _to_batch(new["computeResources"])
            request["computeResources"] = {
                key: value for key, value in after.items() if before.get(key) != value
            }
        if new.get("updatePolicy") and old.get("updatePolicy") != new["updatePolicy"]:
            request["updatePolicy"] = new["updatePolicy"]
        if old.get("serviceRole") != new.get("serviceRole"):
            request["serviceRole"] = new.get("serviceRole")
        if request:
            batch.update_compute_environment(computeEnvironment=resource_id, **request)
            self._settled(cloud, resource_id)
        _update_tags(cloud, self._detail(cloud, resource_id)["computeEnvironmentArn"], old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        batch = cloud.client("batch")
        found = self._detail(cloud, resource_id)
        if found is None:
            return
        if found["status"] != "DELETING":
            if found["state"] != "DISABLED":
                batch.update_compute_environment(computeEnvironment=resource_id, state="DISABLED")
                self._settled(cloud, resource_id, invalid_too=True)
            batch.delete_compute_environment(computeEnvironment=resource_id)

        def gone() -> bool:
            left = self._detail(cloud, resource_id)
            if left and left["status"] == "INVALID":
                raise RuntimeError(f"it is INVALID: {left.get('statusReason')}")
            return left is None

        wait(f"deleting {resource_id}", gone, WAIT_SECONDS)

    def _settled(self, cloud: Cloud, name: str, *, invalid_too: bool = False) -> None:
        def settled() -> Any:
            found = self._detail(cloud, name)
            return found if found["status"] in {"VALID", "INVALID"} else None

        found = wait(f"{self.label} {name}", settled, WAIT_SECONDS)
        if found["status"] == "INVALID" and not invalid_too:
            raise RuntimeError(f"it is INVALID: {found.get('statusReason')}")

    @staticmethod
    def _detail(cloud: Cloud, name: str) -> Any:
        found = cloud.client("batch").describe_compute_environments(computeEnvironments=[name])
        return (found["computeEnvironments"] or [None])[0]


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
            "state",
            "tags",
        }
    )
    nested: ClassVar = {
        "computeEnvironmentOrders": frozenset({"computeEnvironment", "order"}),
        "jobStateTimeLimitActions": frozenset({"action", "maxTimeSeconds", "reason", "state"}),
    }
    required = frozenset({"priority", "state"})
    outputs = inputs | {"arn", "schedulingPolicyArn", "tagsAll", "timeouts"}
    name_length = 128

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        arn = str(
            cloud.client("batch").create_job_queue(
                jobQueueName=name,
                state=inputs["state"],
                priority=inputs["priority"],
                computeEnvironmentOrder=inputs.get("computeEnvironmentOrders", []),
                jobStateTimeLimitActions=inputs.get("jobStateTimeLimitActions", []),
                tags=tags_of(inputs),
            )["jobQueueArn"]
        )
        try:
            self._settled(cloud, arn)
        except (RuntimeError, TookTooLong) as err:
            raise HalfMade(arn, str(err)) from err
        return arn

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
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
            "timeouts": None,
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
        if request:
            cloud.client("batch").update_job_queue(jobQueue=resource_id, **request)
            self._settled(cloud, resource_id)
        _update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        batch = cloud.client("batch")
        found = self._detail(cloud, resource_id)
        if found is None:
            return
        if found["status"] != "DELETING":
            if found["state"] != "DISABLED":
                batch.update_job_queue(jobQueue=resource_id, state="DISABLED")
                self._settled(cloud, resource_id)
            batch.delete_job_queue(jobQueue=resource_id)
        wait(
            f"deleting {resource_id}",
            lambda: self._detail(cloud, resource_id) is None,
            WAIT_SECONDS,
        )

    def _settled(self, cloud: Cloud, arn: str) -> None:
        def settled() -> Any:
            found = self._detail(cloud, arn)
            return found if found["status"] in {"VALID", "INVALID"} else None

        found = wait(f"{self.label} {arn}", settled, WAIT_SECONDS)
        if found["status"] == "INVALID":
            raise RuntimeError(f"it is INVALID: {found.get('statusReason')}")

    @staticmethod
    def _detail(cloud: Cloud, arn: str) -> Any:
        found = cloud.client("batch").describe_job_queues(jobQueues=[arn])["jobQueues"]
        return (found or [None])[0]


def _to_batch(resources: Properties) -> dict[str, Any]:
    mapped = {_RESOURCES[key]: value for key, value in resources.items() if key in _RESOURCES}
    if resources.get("ec2Configurations"):
        mapped["ec2Configuration"] = resources["ec2Configurations"]
    return {key: value for key, value in mapped.items() if value is not None}


def _from_batch(resources: dict[str, Any]) -> Properties:
    mapped: Properties = {ours: resources.get(theirs) for ours, theirs in _RESOURCES.items()}
    mapped["ec2Configurations"] = resources.get("ec2Configuration", [])
    return mapped


def _update_tags(cloud: Cloud, arn: str, old: Properties, new: Properties) -> None:
    put, gone = changed_tags(tags_of(old), tags_of(new))
    batch = cloud.client("batch")
    if put:
        batch.tag_resource(resourceArn=arn, tags=put)
    if gone:
        batch.untag_resource(resourceArn=arn, tagKeys=gone)


KINDS: tuple[Kind, ...] = (ComputeEnvironment(), JobQueue())
