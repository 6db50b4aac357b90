"""IAM roles. Speaks boto3."""

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
