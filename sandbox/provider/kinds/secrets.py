"""Secrets Manager: secrets and their values. Speaks boto3."""

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


class Secret(Kind):
    token = "aws:secretsmanager/secret:Secret"  # noqa: S105 # Pulumi's word for a type
    label = "Secrets Manager Secret"
    inputs = frozenset(
        {"description", "name", "namePrefix", "recoveryWindowInDays", "region", "tags"}
    )
    outputs = inputs | {
        "arn",
        "forceOverwriteReplicaSecret",
        "kmsKeyId",
        "policy",
        "replicas",
        "tagsAll",
        "type",
    }
    name_length = 512

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        made = cloud.client("secretsmanager").create_secret(
            Name=name,
            Description=inputs.get("description", ""),
            Tags=key_values(tags_of(inputs)),
        )
        return str(made["ARN"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        found = _described(cloud, resource_id)
        if found is None:
            return None
        state = {
            "arn": found["ARN"],
            "description": found.get("Description", ""),
            "forceOverwriteReplicaSecret": False,
            "kmsKeyId": found.get("KmsKeyId", ""),
            "name": found["Name"],
            "namePrefix": inputs.get("namePrefix", ""),
            "policy": "",
            "recoveryWindowInDays": inputs.get("recoveryWindowInDays", 30),
            "region": cloud.region,
            "replicas": [],
            "type": "",
        }
        return with_tags(state, from_key_values(found.get("Tags")))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        secrets = cloud.client("secretsmanager")
        if old.get("description") != new.get("description"):
            secrets.update_secret(SecretId=resource_id, Description=new.get("description", ""))
        put, gone = changed_tags(tags_of(old), tags_of(new))
        if put:
            secrets.tag_resource(SecretId=resource_id, Tags=key_values(put))
        if gone:
            secrets.untag_resource(SecretId=resource_id, TagKeys=gone)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        if _described(cloud, resource_id) is None:
            return
        days = state.get("recoveryWindowInDays", 30)
        how: dict[str, Any] = (
            {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
        )
        cloud.client("secretsmanager").delete_secret(SecretId=resource_id, **how)


class SecretVersion(Kind):
    token = "aws:secretsmanager/secretVersion:SecretVersion"  # noqa: S105 # Pulumi's word
    label = "Secrets Manager Secret Version"
    inputs = frozenset({"region", "secretId", "secretString"})
    required = frozenset({"secretId"})
    outputs = inputs | {
        "arn",
        "hasSecretStringWo",
        "secretArn",
        "secretBinary",
        "secretStringWo",
        "secretStringWoVersion",
        "versionId",
        "versionStages",
    }
    replaces = frozenset({"secretId", "secretString"})

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        _ = name
        made = cloud.client("secretsmanager").put_secret_value(
            SecretId=inputs["secretId"], SecretString=inputs["secretString"]
        )
        return f"{inputs['secretId']}|{made['VersionId']}"

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
        secret_id, _, version = resource_id.partition("|")
        if _described(cloud, secret_id) is None:
            return None
        secrets = cloud.client("secretsmanager")
        try:
            found = secrets.get_secret_value(SecretId=secret_id, VersionId=version)
        except secrets.exceptions.ResourceNotFoundException:
            return None
        return {
            "arn": found["ARN"],
            "hasSecretStringWo": False,
            "region": cloud.region,
            "secretArn": found["ARN"],
            "secretBinary": "",
            "secretId": secret_id,
            "secretString": found["SecretString"],
            "secretStringWo": None,
            "secretStringWoVersion": None,
            "versionId": version,
            "versionStages": found.get("VersionStages", []),
        }

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        """A version without stages is deprecated, and goes when its secret does; AWS lets no one
        take the current one's stage away.
        """
        _ = state
        secret_id, _, version = resource_id.partition("|")
        found = _described(cloud, secret_id)
        stages = (found or {}).get("VersionIdsToStages", {}).get(version, [])
        for stage in stages:
            if stage not in {"AWSCURRENT", "AWSPREVIOUS"}:
                cloud.client("secretsmanager").update_secret_version_stage(
                    SecretId=secret_id, VersionStage=stage, RemoveFromVersionId=version
                )


def _described(cloud: Cloud, secret_id: str) -> Any:
    """The secret, None where it is gone or waits for its deletion."""
    secrets = cloud.client("secretsmanager")
    try:
        found = secrets.describe_secret(SecretId=secret_id)
    except secrets.exceptions.ResourceNotFoundException:
        return None
    return None if found.get("DeletedDate") else found
