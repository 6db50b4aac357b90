"""Batch scheduling policies. Speaks boto3."""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import Kind, with_tags
from sandbox.provider.kinds.batch import tagged, update_tags
from sandbox.provider.wire import Properties


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
            name=name, fairsharePolicy=_to_shares(inputs), **tagged(inputs)
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
        update_tags(cloud, resource_id, old, new)

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
