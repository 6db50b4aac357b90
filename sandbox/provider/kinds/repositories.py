"""ECR: repositories and their lifecycle policies. Speaks boto3."""

from __future__ import annotations

import json
from typing import Any, ClassVar

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


class Repository(Kind):
    token = "aws:ecr/repository:Repository"  # noqa: S105 # Pulumi's word for a type
    label = "ECR Repository"
    inputs = frozenset(
        {
            "forceDelete",
            "imageScanningConfiguration",
            "imageTagMutability",
            "name",
            "region",
            "tags",
        }
    )
    nested: ClassVar = {"imageScanningConfiguration": frozenset({"scanOnPush"})}
    outputs = inputs | {
        "arn",
        "encryptionConfigurations",
        "imageTagMutabilityExclusionFilters",
        "registryId",
        "repositoryUrl",
        "tagsAll",
    }
    name_length = 256

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        scanning = inputs.get("imageScanningConfiguration", {})
        cloud.client("ecr").create_repository(
            repositoryName=name,
            imageTagMutability=inputs.get("imageTagMutability", "MUTABLE"),
            imageScanningConfiguration={"scanOnPush": scanning.get("scanOnPush", False)},
            tags=key_values(tags_of(inputs)),
        )
        return name

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        ecr = cloud.client("ecr")
        try:
            found = ecr.describe_repositories(repositoryNames=[resource_id])["repositories"][0]
        except ecr.exceptions.RepositoryNotFoundException:
            return None
        arn = found["repositoryArn"]
        encryption = found.get("encryptionConfiguration", {"encryptionType": "AES256"})
        state = {
            "arn": arn,
            "encryptionConfigurations": [
                {
                    "encryptionType": encryption["encryptionType"],
                    "kmsKey": encryption.get("kmsKey", ""),
                }
            ],
            "forceDelete": inputs.get("forceDelete"),
            "imageScanningConfiguration": found["imageScanningConfiguration"],
            "imageTagMutability": found["imageTagMutability"],
            "imageTagMutabilityExclusionFilters": [],
            "name": found["repositoryName"],
            "region": cloud.region,
            "registryId": found["registryId"],
            "repositoryUrl": found["repositoryUri"],
        }
        return with_tags(
            state, from_key_values(ecr.list_tags_for_resource(resourceArn=arn)["tags"])
        )

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        ecr = cloud.client("ecr")
        changed = set(self.changes(old, new))
        if "imageScanningConfiguration" in changed:
            scanning = new.get("imageScanningConfiguration", {})
            ecr.put_image_scanning_configuration(
                repositoryName=resource_id,
                imageScanningConfiguration={"scanOnPush": scanning.get("scanOnPush", False)},
            )
        if "imageTagMutability" in changed:
            ecr.put_image_tag_mutability(
                repositoryName=resource_id,
                imageTagMutability=new.get("imageTagMutability", "MUTABLE"),
            )
        put, gone = changed_tags(tags_of(old), tags_of(new))
        arn = cloud.arn("ecr", f"repository/{resource_id}")
        if put:
            ecr.tag_resource(resourceArn=arn, tags=key_values(put))
        if gone:
            ecr.untag_resource(resourceArn=arn, tagKeys=gone)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        ecr = cloud.client("ecr")
        try:
            ecr.delete_repository(
                repositoryName=resource_id, force=bool(state.get("forceDelete", False))
            )
        except ecr.exceptions.RepositoryNotFoundException:
            return


class LifecyclePolicy(Kind):
    token = "aws:ecr/lifecyclePolicy:LifecyclePolicy"  # noqa: S105 # Pulumi's word for a type
    label = "ECR Lifecycle Policy"
    inputs = frozenset({"policy", "region", "repository"})
    required = frozenset({"policy", "repository"})
    outputs = inputs | {"registryId"}
    replaces = frozenset({"policy", "repository"})

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        _ = name
        cloud.client("ecr").put_lifecycle_policy(
            repositoryName=inputs["repository"], lifecyclePolicyText=inputs["policy"]
        )
        return str(inputs["repository"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        ecr = cloud.client("ecr")
        try:
            found = ecr.get_lifecycle_policy(repositoryName=resource_id)
        except (
            ecr.exceptions.LifecyclePolicyNotFoundException,
            ecr.exceptions.RepositoryNotFoundException,
        ):
            return None
        given: Any = inputs.get("policy")
        now = found["lifecyclePolicyText"]
        return {
            "policy": given if given and json.loads(given) == json.loads(now) else now,
            "region": cloud.region,
            "registryId": found["registryId"],
            "repository": resource_id,
        }

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        ecr = cloud.client("ecr")
        try:
            ecr.delete_lifecycle_policy(repositoryName=resource_id)
        except (
            ecr.exceptions.LifecyclePolicyNotFoundException,
            ecr.exceptions.RepositoryNotFoundException,
        ):
            return
