"""Log groups of CloudWatch Logs. Speaks boto3."""

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
        cloud.client("logs").create_log_group(logGroupName=name, tags=tags_of(inputs))
        return name

    def complete(self, cloud: Cloud, resource_id: str, inputs: Properties) -> None:
        logs = cloud.client("logs")
        days = inputs.get("retentionInDays", 0)
        if days:
            logs.put_retention_policy(logGroupName=resource_id, retentionInDays=days)
        else:
            logs.delete_retention_policy(logGroupName=resource_id)

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
        self.complete(cloud, resource_id, new)
        logs = cloud.client("logs")
        put, gone = changed_tags(tags_of(old), tags_of(new))
        arn = self._group(cloud, resource_id)["arn"].removesuffix(":*")
        if put:
            logs.tag_resource(resourceArn=arn, tags=put)
        if gone:
            logs.untag_resource(resourceArn=arn, tagKeys=gone)

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
        pages = (
            cloud.client("logs")
            .get_paginator("describe_log_groups")
            .paginate(logGroupNamePrefix=name)
        )
        found = (group for page in pages for group in page["logGroups"])
        return next((group for group in found if group["logGroupName"] == name), None)
