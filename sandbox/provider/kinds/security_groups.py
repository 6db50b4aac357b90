"""EC2 security groups. Speaks boto3."""

from __future__ import annotations

from typing import Any

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import Kind, from_key_values, with_tags
from sandbox.provider.kinds.ec2 import tag_specifications, unless_gone, update_tags
from sandbox.provider.wire import Properties


class SecurityGroup(Kind):
    token = "aws:ec2/securityGroup:SecurityGroup"  # noqa: S105 # Pulumi's word for a type
    label = "EC2 Security Group"
    inputs = frozenset({"description", "name", "namePrefix", "region", "tags", "vpcId"})
    outputs = inputs | {
        "arn",
        "egress",
        "ingress",
        "ownerId",
        "revokeRulesOnDelete",
        "tagsAll",
    }
    replaces = frozenset({"description", "vpcId"})
    name_length = 255

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        ec2 = cloud.client("ec2")
        vpc = {"VpcId": inputs["vpcId"]} if inputs.get("vpcId") else {}
        made = ec2.create_security_group(
            GroupName=name,
            Description=inputs.get("description", "Managed by Pulumi"),
            TagSpecifications=tag_specifications("security-group", inputs),
            **vpc,
        )
        return str(made["GroupId"])

    def complete(self, cloud: Cloud, resource_id: str, inputs: Properties) -> None:
        """Takes away the rule that lets everything out, which EC2 gives: so does the provider."""
        _ = inputs
        rules = _group(cloud, resource_id)["IpPermissionsEgress"]
        if rules:
            cloud.client("ec2").revoke_security_group_egress(
                GroupId=resource_id, IpPermissions=rules
            )

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        group = _group(cloud, resource_id)
        if group is None:
            return None
        state = {
            "arn": cloud.arn("ec2", f"security-group/{resource_id}"),
            "description": group["Description"],
            "egress": [_rule(rule) for rule in group["IpPermissionsEgress"]],
            "ingress": [_rule(rule) for rule in group["IpPermissions"]],
            "name": group["GroupName"],
            "namePrefix": inputs.get("namePrefix", ""),
            "ownerId": group["OwnerId"],
            "region": cloud.region,
            "revokeRulesOnDelete": False,
            "vpcId": group["VpcId"],
        }
        return with_tags(state, from_key_values(group.get("Tags")))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        unless_gone(cloud.client("ec2").delete_security_group, GroupId=resource_id)


def _group(cloud: Cloud, group_id: str) -> Any:
    found = unless_gone(
        cloud.client("ec2").describe_security_groups,
        GroupIds=[group_id],
    )
    return found["SecurityGroups"][0] if found and found["SecurityGroups"] else None


def _rule(permission: dict[str, Any]) -> Properties:
    """A rule as a group's own outputs have it."""
    return {
        "protocol": permission["IpProtocol"],
        "fromPort": permission.get("FromPort", 0),
        "toPort": permission.get("ToPort", 0),
        "cidrBlocks": [item["CidrIp"] for item in permission.get("IpRanges", [])],
        "ipv6CidrBlocks": [item["CidrIpv6"] for item in permission.get("Ipv6Ranges", [])],
        "securityGroups": [item["GroupId"] for item in permission.get("UserIdGroupPairs", [])],
    }
