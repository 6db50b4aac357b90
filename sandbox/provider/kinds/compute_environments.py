"""Batch compute environments. Speaks boto3."""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.provider.cloud import Cloud, Failed
from sandbox.provider.kind import Kind, with_tags
from sandbox.provider.kinds.batch import settled, tagged, update_tags
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
_ON_EC2 = frozenset({"EC2", "SPOT"})
"""Compute resources for which the provider sends minvCpus when none is given."""
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
        optional = tagged(inputs)
        if inputs.get("serviceRole"):
            optional["serviceRole"] = inputs["serviceRole"]
        if inputs.get("computeResources"):
            needed = {"minvCpus": 0} if inputs["computeResources"].get("type") in _ON_EC2 else {}
            optional["computeResources"] = needed | _to_batch(inputs["computeResources"])
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
        state = {
            "arn": found["computeEnvironmentArn"],
            "computeResources": _from_batch(found["computeResources"]),
            "ecsClusterArn": found["ecsClusterArn"],
            "eksConfiguration": None,
            "name": found["computeEnvironmentName"],
            "namePrefix": inputs.get("namePrefix", ""),
            "region": cloud.region,
            "serviceRole": found["serviceRole"],
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
        update_tags(cloud, self._detail(cloud, resource_id)["computeEnvironmentArn"], old, new)

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
        return settled(cloud, name, self._detail, invalid_too=invalid_too)

    @staticmethod
    def _detail(cloud: Cloud, name: str) -> Any:
        found = cloud.client("batch").describe_compute_environments(computeEnvironments=[name])
        return (found["computeEnvironments"] or [None])[0]


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
