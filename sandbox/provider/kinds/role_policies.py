"""What IAM roles may do: policies of their own, and policies attached. Speaks boto3."""

from __future__ import annotations

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import Kind
from sandbox.provider.kinds.policies import same_json
from sandbox.provider.wire import Properties


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
