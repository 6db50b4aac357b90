"""IAM instance profiles. Speaks boto3."""

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


class InstanceProfile(Kind):
    token = "aws:iam/instanceProfile:InstanceProfile"  # noqa: S105 # Pulumi's word for a type
    label = "IAM Instance Profile"
    inputs = frozenset({"name", "namePrefix", "path", "role", "tags"})
    outputs = inputs | {"arn", "createDate", "tagsAll", "uniqueId"}
    replaces = frozenset({"path"})
    name_length = 128

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        cloud.client("iam").create_instance_profile(
            InstanceProfileName=name,
            Path=inputs.get("path", "/"),
            Tags=key_values(tags_of(inputs)),
        )
        return name

    def complete(self, cloud: Cloud, resource_id: str, inputs: Properties) -> None:
        """Gives it its role, in place of any other: it has room for one."""
        iam = cloud.client("iam")
        now = [role["RoleName"] for role in self._profile(cloud, resource_id)["Roles"]]
        wanted = [inputs["role"]] if inputs.get("role") else []
        for role in now:
            if role not in wanted:
                iam.remove_role_from_instance_profile(
                    InstanceProfileName=resource_id, RoleName=role
                )
        for role in wanted:
            if role not in now:
                iam.add_role_to_instance_profile(InstanceProfileName=resource_id, RoleName=role)

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        profile = self._profile(cloud, resource_id)
        if profile is None:
            return None
        roles = [role["RoleName"] for role in profile["Roles"]]
        state = {
            "arn": profile["Arn"],
            "createDate": profile["CreateDate"].isoformat(),
            "name": profile["InstanceProfileName"],
            "namePrefix": inputs.get("namePrefix", ""),
            "path": profile["Path"],
            "role": roles[0] if roles else None,
            "uniqueId": profile["InstanceProfileId"],
        }
        return with_tags(state, from_key_values(profile.get("Tags")))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        self.complete(cloud, resource_id, new)
        iam = cloud.client("iam")
        put, gone = changed_tags(tags_of(old), tags_of(new))
        if put:
            iam.tag_instance_profile(InstanceProfileName=resource_id, Tags=key_values(put))
        if gone:
            iam.untag_instance_profile(InstanceProfileName=resource_id, TagKeys=gone)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        profile = self._profile(cloud, resource_id)
        if profile is None:
            return
        iam = cloud.client("iam")
        for role in profile["Roles"]:
            iam.remove_role_from_instance_profile(
                InstanceProfileName=resource_id, RoleName=role["RoleName"]
            )
        iam.delete_instance_profile(InstanceProfileName=resource_id)

    @staticmethod
    def _profile(cloud: Cloud, name: str) -> Any:
        iam = cloud.client("iam")
        try:
            return iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        except iam.exceptions.NoSuchEntityException:
            return None
