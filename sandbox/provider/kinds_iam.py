"""IAM: roles, their policies, instance profiles."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

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


class Role(Kind):
    token = "aws:iam/role:Role"  # noqa: S105 # Pulumi's word for a type
    label = "IAM Role"
    inputs = frozenset(
        {
            "assumeRolePolicy",
            "description",
            "forceDetachPolicies",
            "maxSessionDuration",
            "name",
            "namePrefix",
            "path",
            "permissionsBoundary",
            "tags",
        }
    )
    required = frozenset({"assumeRolePolicy"})
    outputs = inputs | {
        "arn",
        "createDate",
        "inlinePolicies",
        "managedPolicyArns",
        "tagsAll",
        "uniqueId",
    }
    replaces = frozenset({"path"})
    name_length = 64

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        optional = {
            "Description": inputs.get("description"),
            "PermissionsBoundary": inputs.get("permissionsBoundary"),
        }
        cloud.client("iam").create_role(
            RoleName=name,
            Path=inputs.get("path", "/"),
            AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
            MaxSessionDuration=inputs.get("maxSessionDuration", 3600),
            Tags=key_values(tags_of(inputs)),
            **{key: value for key, value in optional.items() if value is not None},
        )
        return name

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        iam = cloud.client("iam")
        try:
            role = iam.get_role(RoleName=resource_id)["Role"]
        except iam.exceptions.NoSuchEntityException:
            return None
        attached = iam.list_attached_role_policies(RoleName=resource_id)["AttachedPolicies"]
        state = {
            "arn": role["Arn"],
            "assumeRolePolicy": same_json(
                inputs.get("assumeRolePolicy"), role["AssumeRolePolicyDocument"]
            ),
            "createDate": role["CreateDate"].isoformat(),
            "description": role.get("Description") or None,
            "forceDetachPolicies": inputs.get("forceDetachPolicies", False),
            "inlinePolicies": [],
            "managedPolicyArns": [policy["PolicyArn"] for policy in attached],
            "maxSessionDuration": role.get("MaxSessionDuration", 3600),
            "name": role["RoleName"],
            "namePrefix": inputs.get("namePrefix", ""),
            "path": role["Path"],
            "permissionsBoundary": role.get("PermissionsBoundary", {}).get(
                "PermissionsBoundaryArn"
            ),
            "uniqueId": role["RoleId"],
        }
        return with_tags(state, from_key_values(role.get("Tags")))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        iam = cloud.client("iam")
        if old["assumeRolePolicy"] != new["assumeRolePolicy"]:
            iam.update_assume_role_policy(
                RoleName=resource_id, PolicyDocument=new["assumeRolePolicy"]
            )
        iam.update_role(
            RoleName=resource_id,
            Description=new.get("description", ""),
            MaxSessionDuration=new.get("maxSessionDuration", 3600),
        )
        if new.get("permissionsBoundary"):
            iam.put_role_permissions_boundary(
                RoleName=resource_id, PermissionsBoundary=new["permissionsBoundary"]
            )
        elif old.get("permissionsBoundary"):
            iam.delete_role_permissions_boundary(RoleName=resource_id)
        put, gone = changed_tags(tags_of(old), tags_of(new))
        if put:
            iam.tag_role(RoleName=resource_id, Tags=key_values(put))
        if gone:
            iam.untag_role(RoleName=resource_id, TagKeys=gone)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        iam = cloud.client("iam")
        try:
            if state.get("forceDetachPolicies"):
                attached = iam.list_attached_role_policies(RoleName=resource_id)
                for policy in attached["AttachedPolicies"]:
                    iam.detach_role_policy(RoleName=resource_id, PolicyArn=policy["PolicyArn"])
            iam.delete_role(RoleName=resource_id)
        except iam.exceptions.NoSuchEntityException:
            return


class RolePolicy(Kind):
    token = "aws:iam/rolePolicy:RolePolicy"  # noqa: S105 # Pulumi's word for a type
    label = "IAM Role Policy"
    inputs = frozenset({"name", "namePrefix", "policy", "role"})
    required = frozenset({"policy", "role"})
    outputs = inputs
    replaces = frozenset({"role"})
    name_length = 128

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        cloud.client("iam").put_role_policy(
            RoleName=inputs["role"], PolicyName=name, PolicyDocument=inputs["policy"]
        )
        return f"{inputs['role']}:{name}"

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        role, _, name = resource_id.partition(":")
        iam = cloud.client("iam")
        try:
            found = iam.get_role_policy(RoleName=role, PolicyName=name)
        except iam.exceptions.NoSuchEntityException:
            return None
        return {
            "name": name,
            "namePrefix": inputs.get("namePrefix", ""),
            "policy": same_json(inputs.get("policy"), found["PolicyDocument"]),
            "role": role,
        }

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        _ = old
        role, _, name = resource_id.partition(":")
        cloud.client("iam").put_role_policy(
            RoleName=role, PolicyName=name, PolicyDocument=new["policy"]
        )

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        role, _, name = resource_id.partition(":")
        iam = cloud.client("iam")
        try:
            iam.delete_role_policy(RoleName=role, PolicyName=name)
        except iam.exceptions.NoSuchEntityException:
            return


class RolePolicyAttachment(Kind):
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"  # noqa: S105 # Pulumi's word
    label = "IAM Role Policy Attachment"
    inputs = frozenset({"policyArn", "role"})
    required = inputs
    outputs = inputs
    replaces = inputs

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        _ = name
        cloud.client("iam").attach_role_policy(
            RoleName=inputs["role"], PolicyArn=inputs["policyArn"]
        )
        return f"{inputs['role']}/{inputs['policyArn']}"

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
        role, _, arn = resource_id.partition("/")
        iam = cloud.client("iam")
        try:
            attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        except iam.exceptions.NoSuchEntityException:
            return None
        if arn not in {policy["PolicyArn"] for policy in attached}:
            return None
        return {"policyArn": arn, "role": role}

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = resource_id
        iam = cloud.client("iam")
        try:
            iam.detach_role_policy(RoleName=state["role"], PolicyArn=state["policyArn"])
        except iam.exceptions.NoSuchEntityException:
            return


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


def same_json(given: str | None, now: Any) -> str:
    """The document as it was given, if it still says the same; else as it is."""
    document = json.loads(unquote(now)) if isinstance(now, str) else now
    if given is not None and json.loads(given) == document:
        return given
    return json.dumps(document)


KINDS: tuple[Kind, ...] = (
    Role(),
    RolePolicy(),
    RolePolicyAttachment(),
    InstanceProfile(),
    Policy(),
)
