"""Systems Manager: parameters. Speaks boto3."""

from __future__ import annotations

from typing import Any

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import (
    Kind,
    changed_tags,
    from_key_values,
    key_values,
    tags_of,
    with_tags,
)
from sandbox.provider.wire import Properties


class Parameter(Kind):
    token = "aws:ssm/parameter:Parameter"  # noqa: S105 # Pulumi's word for a type
    label = "SSM Parameter"
    inputs = frozenset({"description", "insecureValue", "name", "region", "tags", "type"})
    required = frozenset({"type"})
    outputs = inputs | {
        "allowedPattern",
        "arn",
        "dataType",
        "hasValueWo",
        "keyId",
        "overwrite",
        "tagsAll",
        "tier",
        "value",
        "valueWo",
        "valueWoVersion",
        "version",
    }
    name_length = 2048

    def recomputed(self, changed: set[str]) -> set[str]:
        value = {"value"} if "insecureValue" in changed else set()
        return value | ({"version"} if changed - {"tags"} else set())

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        _put(cloud, name, inputs, Tags=key_values(tags_of(inputs)))
        return name

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
        found = self._described(cloud, resource_id)
        if found is None:
            return None
        ssm = cloud.client("ssm")
        parameter = ssm.get_parameter(Name=resource_id)["Parameter"]
        tags = ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId=resource_id)
        state = {
            "allowedPattern": found.get("AllowedPattern", ""),
            "arn": parameter["ARN"],
            "dataType": parameter.get("DataType", "text"),
            "description": found.get("Description", ""),
            "hasValueWo": False,
            "insecureValue": parameter["Value"],
            "keyId": found.get("KeyId", ""),
            "name": resource_id,
            "overwrite": None,
            "region": cloud.region,
            "tier": found.get("Tier") or "Standard",
            "type": parameter["Type"],
            "value": parameter["Value"],
            "valueWo": None,
            "valueWoVersion": None,
            "version": parameter["Version"],
        }
        return with_tags(state, from_key_values(tags["TagList"]))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        if set(self.changes(old, new)) - {"tags"}:
            _put(cloud, resource_id, new, Overwrite=True)
        put, gone = changed_tags(tags_of(old), tags_of(new))
        ssm = cloud.client("ssm")
        on = {"ResourceType": "Parameter", "ResourceId": resource_id}
        if put:
            ssm.add_tags_to_resource(**on, Tags=key_values(put))
        if gone:
            ssm.remove_tags_from_resource(**on, TagKeys=gone)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        ssm = cloud.client("ssm")
        try:
            ssm.delete_parameter(Name=resource_id)
        except ssm.exceptions.ParameterNotFound:
            return

    @staticmethod
    def _described(cloud: Cloud, name: str) -> Any:
        wanted = [{"Key": "Name", "Option": "Equals", "Values": [name]}]
        found = cloud.client("ssm").describe_parameters(ParameterFilters=wanted)["Parameters"]
        return (found or [None])[0]


def _put(cloud: Cloud, name: str, inputs: Properties, **options: Any) -> None:
    cloud.client("ssm").put_parameter(
        Name=name,
        Type=inputs["type"],
        Value=inputs["insecureValue"],
        Description=inputs.get("description", ""),
        **options,
    )
