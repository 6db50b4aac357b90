"""IAM policies that stand by themselves. Speaks boto3."""

from __future__ import annotations

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import (
    Kind,
    changed_tags,
    from_key_values,
    key_values,
    tags_of,
    with_tags,
)
from sandbox.provider.kinds.policies import same_json
from sandbox.provider.wire import Properties


class Policy(Kind):
    token = "aws:iam/policy:Policy"  # noqa: S105 # Pulumi's word for a type
    label = "IAM Policy"
    inputs = frozenset({"description", "name", "namePrefix", "path", "policy", "tags"})
    required = frozenset({"policy"})
    outputs = inputs | {
        "arn",
        "attachmentCount",
        "delayAfterPolicyCreationInMs",
        "policyId",
        "tagsAll",
    }
    replaces = frozenset({"description", "path"})
    name_length = 128

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        made = cloud.client("iam").create_policy(
            PolicyName=name,
            Path=inputs.get("path", "/"),
            PolicyDocument=inputs["policy"],
            Description=inputs.get("description", ""),
            Tags=key_values(tags_of(inputs)),
        )
        return str(made["Policy"]["Arn"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        iam = cloud.client("iam")
        try:
            found = iam.get_policy(PolicyArn=resource_id)["Policy"]
        except iam.exceptions.NoSuchEntityException:
            return None
        version = iam.get_policy_version(
            PolicyArn=resource_id, VersionId=found["DefaultVersionId"]
        )["PolicyVersion"]
        state = {
            "arn": found["Arn"],
            "attachmentCount": found["AttachmentCount"],
            "delayAfterPolicyCreationInMs": None,
            "description": found.get("Description", ""),
            "name": found["PolicyName"],
            "namePrefix": inputs.get("namePrefix", ""),
            "path": found["Path"],
            "policy": same_json(inputs.get("policy"), version["Document"]),
            "policyId": found["PolicyId"],
        }
        return with_tags(state, from_key_values(found.get("Tags")))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        iam = cloud.client("iam")
        if old["policy"] != new["policy"]:
            for version in iam.list_policy_versions(PolicyArn=resource_id)["Versions"]:
                if not version["IsDefaultVersion"]:  # IAM keeps five, and no more
                    iam.delete_policy_version(PolicyArn=resource_id, VersionId=version["VersionId"])
            iam.create_policy_version(
                PolicyArn=resource_id, PolicyDocument=new["policy"], SetAsDefault=True
            )
        put, gone = changed_tags(tags_of(old), tags_of(new))
        if put:
            iam.tag_policy(PolicyArn=resource_id, Tags=key_values(put))
        if gone:
            iam.untag_policy(PolicyArn=resource_id, TagKeys=gone)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        iam = cloud.client("iam")
        try:
            for version in iam.list_policy_versions(PolicyArn=resource_id)["Versions"]:
                if not version["IsDefaultVersion"]:
                    iam.delete_policy_version(PolicyArn=resource_id, VersionId=version["VersionId"])
            iam.delete_policy(PolicyArn=resource_id)
        except iam.exceptions.NoSuchEntityException:
            return
