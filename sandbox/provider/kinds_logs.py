"""CloudWatch Logs: log groups."""

from __future__ import annotations

from typing import Any

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import Kind, changed_tags, tags_of, with_tags
from sandbox.provider.wire import Properties


class LogGroup(Kind):
    token = "aws:cloudwatch/logGroup:LogGroup"  # noqa: S105 # Pulumi's word for a type
    label = "CloudWatch Log Group"
    inputs = frozenset({"name", "namePrefix", "region", "retentionInDays", "skipDestroy", "tags"})
    outputs = inputs | {
        "arn",
        "deletionProtectionEnabled",
        "kmsKeyId",
        "logGroupClass",
        "tagsAll",
    }
    name_length = 512

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        logs = cloud.client("logs")
        logs.create_log_group(logGroupName=name, tags=tags_of(inputs))
        if inputs.get("retentionInDays"):
            logs.put_retention_policy(logGroupName=name, retentionInDays=inputs["retentionInDays"])
        return name

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        logs = cloud.client("logs")
        group = self._group(cloud, resource_id)
        if group is None:
            return None
        arn = group["arn"].removesuffix(":*")
        state = {
            "arn": arn,
            "deletionProtectionEnabled": False,
            "kmsKeyId": group.get("kmsKeyId"),
            "logGroupClass": group.get("logGroupClass", "STANDARD"),
            "name": resource_id,
            "namePrefix": inputs.get("namePrefix", ""),
            "region": cloud.region,
            "retentionInDays": group.get("retentionInDays", 0),
            "skipDestroy": inputs.get("skipDestroy", False),
        }
        return with_tags(state, logs.list_tags_for_resource(resourceArn=arn)["tags"])

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        logs = cloud.client("logs")
        if old.get("retentionInDays") != new.get("retentionInDays"):
            if new.get("retentionInDays"):
                logs.put_retention_policy(
                    logGroupName=resource_id, retentionInDays=new["retentionInDays"]
                )
            else:
                logs.delete_retention_policy(logGroupName=resource_id)
        put, gone = changed_tags(tags_of(old), tags_of(new))
        group = self._group(cloud, resource_id)
        if put:
            logs.tag_resource(resourceArn=group["arn"].removesuffix(":*"), tags=put)
        if gone:
            logs.untag_resource(resourceArn=group["arn"].removesuffix(":*"), tagKeys=gone)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        if state.get("skipDestroy"):
            return
        logs = cloud.client("logs")
        try:
            logs.delete_log_group(logGroupName=resource_id)
        except logs.exceptions.ResourceNotFoundException:
            return

    @staticmethod
    def _group(cloud: Cloud, name: str) -> Any:
        found = cloud.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        return next((group for group in found if group["logGroupName"] == name), None)


KINDS: tuple[Kind, ...] = (LogGroup(),)
