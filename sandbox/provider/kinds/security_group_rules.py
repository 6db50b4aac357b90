"""Rules of EC2 security groups, one by one. Speaks boto3."""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import Kind, from_key_values, with_tags
from sandbox.provider.kinds.ec2 import tag_specifications, unless_gone, update_tags
from sandbox.provider.wire import Properties


class _Rule(Kind):
    inputs = frozenset(
        {
            "cidrIpv4",
            "cidrIpv6",
            "description",
            "fromPort",
            "ipProtocol",
            "prefixListId",
            "referencedSecurityGroupId",
            "region",
            "securityGroupId",
            "tags",
            "toPort",
        }
    )
    required = frozenset({"ipProtocol", "securityGroupId"})
    outputs = inputs | {"arn", "securityGroupRuleId", "tagsAll"}
    replaces = frozenset({"securityGroupId"})
    egress: ClassVar[bool]

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        _ = name
        ec2 = cloud.client("ec2")
        authorize = (
            ec2.authorize_security_group_egress
            if self.egress
            else ec2.authorize_security_group_ingress
        )
        answer = authorize(
            GroupId=inputs["securityGroupId"],
            IpPermissions=[_permission(inputs)],
            TagSpecifications=tag_specifications("security-group-rule", inputs),
        )
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        found = unless_gone(
            cloud.client("ec2").describe_security_group_rules,
            SecurityGroupRuleIds=[resource_id],
        )
        if not found or not found["SecurityGroupRules"]:
            return None
        rule = found["SecurityGroupRules"][0]
        referenced = rule.get("ReferencedGroupInfo", {}).get("GroupId")
        # moto forgets the description of a rule that names a group.
        forgotten = inputs.get("description") if referenced else None
        port = None if str(rule["IpProtocol"]) == "-1" else rule.get("FromPort")
        state = {
            "arn": cloud.arn("ec2", f"security-group-rule/{resource_id}"),
            "cidrIpv4": rule.get("CidrIpv4"),
            "cidrIpv6": rule.get("CidrIpv6"),
            "description": rule.get("Description") or forgotten,
            "fromPort": port,
            "ipProtocol": rule["IpProtocol"],
            "prefixListId": rule.get("PrefixListId"),
            "referencedSecurityGroupId": referenced,
            "region": cloud.region,
            "securityGroupId": rule["GroupId"],
            "securityGroupRuleId": resource_id,
            "toPort": None if port is None else rule.get("ToPort"),
        }
        return with_tags(state, from_key_values(rule.get("Tags")))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        rule = {
            "IpProtocol": new["ipProtocol"],
            "FromPort": new.get("fromPort", -1),
            "ToPort": new.get("toPort", -1),
            "CidrIpv4": new.get("cidrIpv4"),
            "CidrIpv6": new.get("cidrIpv6"),
            "PrefixListId": new.get("prefixListId"),
            "ReferencedGroupId": new.get("referencedSecurityGroupId"),
            "Description": new.get("description"),
        }
        if set(self.changes(old, new)) - {"tags"}:
            cloud.client("ec2").modify_security_group_rules(
                GroupId=new["securityGroupId"],
                SecurityGroupRules=[
                    {
                        "SecurityGroupRuleId": resource_id,
                        "SecurityGroupRule": {k: v for k, v in rule.items() if v is not None},
                    }
                ],
            )
        update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        ec2 = cloud.client("ec2")
        revoke = (
            ec2.revoke_security_group_egress if self.egress else ec2.revoke_security_group_ingress
        )
        unless_gone(revoke, GroupId=state["securityGroupId"], SecurityGroupRuleIds=[resource_id])


class SecurityGroupEgressRule(_Rule):
    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"  # noqa: S105 # Pulumi's word
    label = "VPC Security Group Egress Rule"
    egress = True


class SecurityGroupIngressRule(_Rule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"  # noqa: S105 # likewise
    label = "VPC Security Group Ingress Rule"
    egress = False


def _permission(rule: Properties) -> dict[str, Any]:
    permission: dict[str, Any] = {"IpProtocol": rule["ipProtocol"]}
    if rule["ipProtocol"] != "-1":
        permission |= {"FromPort": rule.get("fromPort", -1), "ToPort": rule.get("toPort", -1)}
    described = {"Description": rule["description"]} if rule.get("description") else {}
    if rule.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": rule["cidrIpv4"], **described}]
    if rule.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": rule["cidrIpv6"], **described}]
    if rule.get("prefixListId"):
        permission["PrefixListIds"] = [{"PrefixListId": rule["prefixListId"], **described}]
    if rule.get("referencedSecurityGroupId"):
        pair = {"GroupId": rule["referencedSecurityGroupId"], **described}
        permission["UserIdGroupPairs"] = [pair]
    return permission
