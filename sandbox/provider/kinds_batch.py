"""AWS Batch: compute environments and job queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sandbox.provider.cloud import Cloud, Failed
from sandbox.provider.kind import Kind, changed_tags, tags_of, with_tags
from sandbox.provider.wire import Properties

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
_NEVER_IN_PLACE = frozenset({"placementGroup", "spotIamFleetRole"})
_LISTS_OF_FIXED_LENGTH = frozenset({"ec2Configurations", "launchTemplate"})
"""To have one or to have none is another environment, whatever is in it."""
_SETS = frozenset({"instanceTypes", "securityGroupIds", "subnets"})
_IF_REMOVED: dict[str, Any] = {
    "bidPercentage": 0,
    "desiredvCpus": 0,
    "ec2KeyPair": "",
    "imageId": "",
    "instanceRole": "",
    "minvCpus": 0,
    "tags": {},
}
"""What the provider sends for a member that was there and is no more."""


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
    required = frozenset({"type"})
    outputs = inputs | {
        "arn",
        "ecsClusterArn",
        "eksConfiguration",
        "status",
        "statusReason",
        "tagsAll",
    }
    replaces = frozenset({"type"})
    name_length = 128

    def comparable(self, inputs: Properties) -> Properties:
        inputs = super().comparable(inputs)
        resources = inputs.get("computeResources")
        if isinstance(resources, dict):
            inputs["computeResources"] = resources | {
                key: sorted(resources[key]) for key in _SETS if isinstance(resources.get(key), list)
            }
        return inputs

    def also_replaces(self, old: Properties, new: Properties) -> set[str]:
        """As the provider decides: nearly all is updated in place with the service-linked role
        and a strategy that allows it, nearly nothing without (User Guide, Updating compute
        environments).
        """
        before = self.comparable(old).get("computeResources")
        after = self.comparable(new).get("computeResources")
        if not isinstance(before, dict) or not isinstance(after, dict):
            return {"computeResources"}
        changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
        in_place = not {
            _updatable(inputs.get("serviceRole"), resources.get("allocationStrategy"))
            for inputs, resources in ((old, before), (new, after))
        } - {True}
        frozen = changed & _NEVER_IN_PLACE if in_place else changed - _ALWAYS_IN_PLACE
        frozen |= {
            key
            for key in changed & _LISTS_OF_FIXED_LENGTH
            if _length(before.get(key)) != _length(after.get(key))
        }
        return {"computeResources"} if frozen else set()

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        optional = _tagged(inputs)
        if inputs.get("serviceRole"):
            optional["serviceRole"] = inputs["serviceRole"]
        if inputs.get("computeResources"):
            optional["computeResources"] = _to_batch(inputs["computeResources"])
        cloud.client("batch").create_compute_environment(
            computeEnvironmentName=name,
            type=inputs["type"],
            state=inputs.get("state", "ENABLED"),
            **optional,
        )
        return name

    def complete(self, cloud: Cloud, resource_id: str, inputs: Properties) -> None:
        """Waits, and sets the update policy, which can't be given before."""
        found = self._settled(cloud, resource_id)
        policy = found["updatePolicy"] | inputs.get("updatePolicy", {})
        if policy != found["updatePolicy"]:
            cloud.client("batch").update_compute_environment(
                computeEnvironment=resource_id, updatePolicy=policy
            )
            self._settled(cloud, resource_id)

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
        changed = set(self.changes(old, new))
        request: dict[str, Any] = {}
        if "state" in changed:
            request["state"] = new.get("state", "ENABLED")
        if "serviceRole" in changed:
            request["serviceRole"] = new.get("serviceRole", "")
        if "computeResources" in changed:
            request["computeResources"] = _resources_update(old, new)
        if request:
            cloud.client("batch").update_compute_environment(
                computeEnvironment=resource_id, **request
            )
        self.complete(cloud, resource_id, new)
        _update_tags(cloud, self._detail(cloud, resource_id)["computeEnvironmentArn"], old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        batch = cloud.client("batch")
        found = self._detail(cloud, resource_id)
        if found is None:
            return
        if found["status"] != "DELETING":
            self._settled(cloud, resource_id, invalid_too=True)
            if found["state"] != "DISABLED":
                batch.update_compute_environment(computeEnvironment=resource_id, state="DISABLED")
                self._settled(cloud, resource_id, invalid_too=True)
            batch.delete_compute_environment(computeEnvironment=resource_id)

        def gone() -> bool:
            left = self._detail(cloud, resource_id)
            if left and left["status"] == "INVALID":
                raise Failed(f"it is INVALID: {left.get('statusReason')}")
            return left is None

        cloud.wait(f"deleting {resource_id}", gone)

    def _settled(self, cloud: Cloud, name: str, *, invalid_too: bool = False) -> Any:
        return _settled(cloud, name, self._detail, invalid_too=invalid_too)

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
            "schedulingPolicyArn",
            "state",
            "tags",
        }
    )
    nested: ClassVar = {
        "computeEnvironmentOrders": frozenset({"computeEnvironment", "order"}),
        "jobStateTimeLimitActions": frozenset({"action", "maxTimeSeconds", "reason", "state"}),
    }
    required = frozenset({"priority", "state"})
    outputs = inputs | {"arn", "tagsAll", "timeouts"}
    name_length = 128

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        made = cloud.client("batch").create_job_queue(
            jobQueueName=name,
            state=inputs["state"],
            priority=inputs["priority"],
            computeEnvironmentOrder=inputs.get("computeEnvironmentOrders", []),
            jobStateTimeLimitActions=inputs.get("jobStateTimeLimitActions", []),
            **_tagged(inputs),
            **_scheduled(inputs),
        )
        return str(made["jobQueueArn"])

    def complete(self, cloud: Cloud, resource_id: str, inputs: Properties) -> None:
        _ = inputs
        _settled(cloud, resource_id, self._detail)

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
        if old.get("schedulingPolicyArn") != new.get("schedulingPolicyArn"):
            if not new.get("schedulingPolicyArn"):
                raise Failed("cannot remove the fair share scheduling policy")
            request |= _scheduled(new)
        if request:
            cloud.client("batch").update_job_queue(jobQueue=resource_id, **request)
        self.complete(cloud, resource_id, new)
        _update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        batch = cloud.client("batch")
        found = self._detail(cloud, resource_id)
        if found is None:
            return
        if found["status"] != "DELETING":
            _settled(cloud, resource_id, self._detail, invalid_too=True)
            if found["state"] != "DISABLED":
                batch.update_job_queue(jobQueue=resource_id, state="DISABLED")
                _settled(cloud, resource_id, self._detail, invalid_too=True)
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


def _tagged(inputs: Properties) -> dict[str, Any]:
    """The tags as an argument: Batch takes no empty ones."""
    tags = tags_of(inputs)
    return {"tags": tags} if tags else {}


def _settled(
    cloud: Cloud,
    resource_id: str,
    detail: Callable[[Cloud, str], Any],
    *,
    invalid_too: bool = False,
) -> Any:
    """The detail of something that is no longer changing.

    Raises Failed when it is INVALID, with AWS's reason.
    """

    def found() -> Any:
        now = detail(cloud, resource_id)
        if now is None:
            raise Failed(f"{resource_id} is gone")
        return now if now["status"] in {"VALID", "INVALID"} else None

    now = cloud.wait(f"waiting for {resource_id}", found)
    if now["status"] == "INVALID" and not invalid_too:
        raise Failed(f"it is INVALID: {now.get('statusReason')}")
    return now


class SchedulingPolicy(Kind):
    token = "aws:batch/schedulingPolicy:SchedulingPolicy"  # noqa: S105 # Pulumi's word for a type
    label = "Batch Scheduling Policy"
    inputs = frozenset({"fairSharePolicy", "name", "region", "tags"})
    nested: ClassVar = {
        "fairSharePolicy": frozenset(
            {"computeReservation", "shareDecaySeconds", "shareDistributions"}
        ),
        "fairSharePolicy.shareDistributions": frozenset({"shareIdentifier", "weightFactor"}),
    }
    outputs = inputs | {"arn", "tagsAll"}
    name_length = 128

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        made = cloud.client("batch").create_scheduling_policy(
            name=name, fairsharePolicy=_to_shares(inputs), **_tagged(inputs)
        )
        return str(made["arn"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
        found = cloud.client("batch").describe_scheduling_policies(arns=[resource_id])
        if not found["schedulingPolicies"]:
            return None
        policy = found["schedulingPolicies"][0]
        shares = policy["fairsharePolicy"]
        state = {
            "arn": policy["arn"],
            "fairSharePolicy": {
                "computeReservation": shares["computeReservation"],
                "shareDecaySeconds": shares["shareDecaySeconds"],
                "shareDistributions": shares["shareDistribution"],
            },
            "name": policy["name"],
            "region": cloud.region,
        }
        return with_tags(state, policy["tags"])

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        if "fairSharePolicy" in self.changes(old, new):
            cloud.client("batch").update_scheduling_policy(
                arn=resource_id, fairsharePolicy=_to_shares(new)
            )
        _update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        if self.read(cloud, resource_id, state) is not None:
            cloud.client("batch").delete_scheduling_policy(arn=resource_id)


def _to_shares(inputs: Properties) -> dict[str, Any]:
    given = inputs.get("fairSharePolicy", {})
    return {
        "computeReservation": given.get("computeReservation", 0),
        "shareDecaySeconds": given.get("shareDecaySeconds", 0),
        "shareDistribution": given.get("shareDistributions", []),
    }


def _updatable(service_role: str | None, strategy: str | None) -> bool:
    linked = not service_role or "/aws-service-role/batch.amazonaws.com/" in service_role
    return linked and strategy in _IN_PLACE


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else int(value is not None)


def _resources_update(old: Properties, new: Properties) -> dict[str, Any]:
    """What is to be changed. maxvCpus always: something must be named."""
    before, after = _to_batch(old["computeResources"]), _to_batch(new["computeResources"])
    changes = {
        key: value for key, value in after.items() if before.get(key) != value or key == "maxvCpus"
    }
    removed = {key: _IF_REMOVED[key] for key in set(before) - set(after) if key in _IF_REMOVED}
    return changes | removed


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


KINDS: tuple[Kind, ...] = (ComputeEnvironment(), JobQueue(), SchedulingPolicy())
