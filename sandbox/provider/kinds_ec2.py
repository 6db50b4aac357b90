"""EC2: security groups, their rules, launch templates."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from botocore.exceptions import ClientError

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
            TagSpecifications=_tag_specifications("security-group", inputs),
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
        _update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        _unless_gone(cloud.client("ec2").delete_security_group, GroupId=resource_id)


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
            TagSpecifications=_tag_specifications("security-group-rule", inputs),
        )
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        found = _unless_gone(
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
        _update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        ec2 = cloud.client("ec2")
        revoke = (
            ec2.revoke_security_group_egress if self.egress else ec2.revoke_security_group_ingress
        )
        _unless_gone(revoke, GroupId=state["securityGroupId"], SecurityGroupRuleIds=[resource_id])


class SecurityGroupEgressRule(_Rule):
    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"  # noqa: S105 # Pulumi's word
    label = "VPC Security Group Egress Rule"
    egress = True


class SecurityGroupIngressRule(_Rule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"  # noqa: S105 # likewise
    label = "VPC Security Group Ingress Rule"
    egress = False


_EBS = {
    "deleteOnTermination": "DeleteOnTermination",
    "encrypted": "Encrypted",
    "iops": "Iops",
    "throughput": "Throughput",
    "volumeSize": "VolumeSize",
    "volumeType": "VolumeType",
}
_EBS_BOOLEANS = frozenset({"deleteOnTermination", "encrypted"})
"""The provider has these as the strings "true" and "false"."""
_METADATA = {
    "httpEndpoint": "HttpEndpoint",
    "httpPutResponseHopLimit": "HttpPutResponseHopLimit",
    "httpTokens": "HttpTokens",
    "instanceMetadataTags": "InstanceMetadataTags",
}


_NOT_IN_A_VERSION = frozenset({"tags", "updateDefaultVersion"})


class LaunchTemplate(Kind):
    token = "aws:ec2/launchTemplate:LaunchTemplate"  # noqa: S105 # Pulumi's word for a type
    label = "EC2 Launch Template"
    inputs = frozenset(
        {
            "blockDeviceMappings",
            "description",
            "imageId",
            "metadataOptions",
            "name",
            "namePrefix",
            "region",
            "tagSpecifications",
            "tags",
            "updateDefaultVersion",
            "userData",
        }
    )
    nested: ClassVar = {
        "blockDeviceMappings": frozenset({"deviceName", "ebs"}),
        "blockDeviceMappings.ebs": frozenset(_EBS),
        "metadataOptions": frozenset(_METADATA),
        "tagSpecifications": frozenset({"resourceType", "tags"}),
    }
    outputs = inputs | {
        "arn",
        "capacityReservationSpecification",
        "cpuOptions",
        "creditSpecification",
        "defaultVersion",
        "disableApiStop",
        "disableApiTermination",
        "ebsOptimized",
        "enclaveOptions",
        "hibernationOptions",
        "iamInstanceProfile",
        "instanceInitiatedShutdownBehavior",
        "instanceMarketOptions",
        "instanceRequirements",
        "instanceType",
        "kernelId",
        "keyName",
        "latestVersion",
        "licenseSpecifications",
        "maintenanceOptions",
        "monitoring",
        "networkInterfaces",
        "networkPerformanceOptions",
        "placement",
        "privateDnsNameOptions",
        "ramDiskId",
        "secondaryInterfaces",
        "securityGroupNames",
        "tagsAll",
        "vpcSecurityGroupIds",
    }
    name_length = 125

    def recomputed(self, changed: set[str]) -> set[str]:
        return {"latestVersion", "defaultVersion"} if changed - _NOT_IN_A_VERSION else set()

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        made = cloud.client("ec2").create_launch_template(
            LaunchTemplateName=name,
            VersionDescription=inputs.get("description", ""),
            LaunchTemplateData=_template_data(inputs),
            TagSpecifications=_tag_specifications("launch-template", inputs),
        )
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        ec2 = cloud.client("ec2")
        found = _unless_gone(ec2.describe_launch_templates, LaunchTemplateIds=[resource_id])
        if not found or not found["LaunchTemplates"]:
            return None
        template = found["LaunchTemplates"][0]
        latest = str(template["LatestVersionNumber"])
        version = ec2.describe_launch_template_versions(
            LaunchTemplateId=resource_id, Versions=[latest]
        )["LaunchTemplateVersions"][0]
        state = dict.fromkeys(self.outputs) | {
            "arn": cloud.arn("ec2", f"launch-template/{resource_id}"),
            "defaultVersion": template["DefaultVersionNumber"],
            "description": version.get("VersionDescription") or None,
            "latestVersion": template["LatestVersionNumber"],
            "name": template["LaunchTemplateName"],
            "namePrefix": inputs.get("namePrefix", ""),
            "region": cloud.region,
            "updateDefaultVersion": inputs.get("updateDefaultVersion"),
            **_template_state(version["LaunchTemplateData"]),
        }
        # Asked for apart: moto's templates keep for ever the tags that they were made with.
        tags = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [resource_id]}])
        return with_tags(state, from_key_values(tags["Tags"]))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        ec2 = cloud.client("ec2")
        if set(self.changes(old, new)) - _NOT_IN_A_VERSION:
            made = ec2.create_launch_template_version(
                LaunchTemplateId=resource_id,
                VersionDescription=new.get("description", ""),
                LaunchTemplateData=_template_data(new),
            )
            if new.get("updateDefaultVersion"):
                number = str(made["LaunchTemplateVersion"]["VersionNumber"])
                ec2.modify_launch_template(LaunchTemplateId=resource_id, DefaultVersion=number)
        _update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        _unless_gone(
            cloud.client("ec2").delete_launch_template,
            LaunchTemplateId=resource_id,
        )


def _template_data(inputs: Properties) -> dict[str, Any]:
    data = {
        "ImageId": inputs.get("imageId"),
        "UserData": inputs.get("userData"),
        "BlockDeviceMappings": [
            {
                "DeviceName": mapping["deviceName"],
                "Ebs": {
                    _EBS[key]: value == "true" if key in _EBS_BOOLEANS else value
                    for key, value in mapping.get("ebs", {}).items()
                },
            }
            for mapping in inputs.get("blockDeviceMappings", [])
        ],
        "MetadataOptions": {
            _METADATA[key]: value for key, value in inputs.get("metadataOptions", {}).items()
        },
        "TagSpecifications": [
            {"ResourceType": spec["resourceType"], "Tags": key_values(spec["tags"])}
            for spec in inputs.get("tagSpecifications", [])
        ],
    }
    return {key: value for key, value in data.items() if value}


def _template_state(data: dict[str, Any]) -> Properties:
    def ebs(found: dict[str, Any]) -> Properties:
        values = {key: found.get(name) for key, name in _EBS.items()}
        for key in _EBS_BOOLEANS:
            if values[key] is not None:
                values[key] = str(values[key]).lower()
        return values

    metadata = data.get("MetadataOptions", {})
    return {
        "imageId": data.get("ImageId"),
        "userData": data.get("UserData"),
        "blockDeviceMappings": [
            {"deviceName": mapping["DeviceName"], "ebs": ebs(mapping.get("Ebs", {}))}
            for mapping in data.get("BlockDeviceMappings", [])
        ],
        "metadataOptions": {key: metadata.get(name) for key, name in _METADATA.items()},
        "tagSpecifications": [
            {"resourceType": spec["ResourceType"], "tags": from_key_values(spec["Tags"])}
            for spec in data.get("TagSpecifications", [])
            if spec["ResourceType"] != "launch-template"  # moto keeps the template's own here
        ],
    }


def _group(cloud: Cloud, group_id: str) -> Any:
    found = _unless_gone(
        cloud.client("ec2").describe_security_groups,
        GroupIds=[group_id],
    )
    return found["SecurityGroups"][0] if found and found["SecurityGroups"] else None


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


def _tag_specifications(resource_type: str, inputs: Properties) -> list[dict[str, Any]]:
    tags = key_values(tags_of(inputs))
    return [{"ResourceType": resource_type, "Tags": tags}] if tags else []


def _update_tags(cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
    put, gone = changed_tags(tags_of(old), tags_of(new))
    ec2 = cloud.client("ec2")
    if put:
        ec2.create_tags(Resources=[resource_id], Tags=key_values(put))
    if gone:
        ec2.delete_tags(Resources=[resource_id], Tags=[{"Key": key} for key in gone])


def _unless_gone(call: Any, **arguments: Any) -> Any:
    """What the call answers; None when what it names is gone."""
    try:
        return call(**arguments)
    except ClientError as err:
        if re.search(r"\.NotFound(Exception)?$", err.response["Error"]["Code"]):
            return None
        raise


KINDS: tuple[Kind, ...] = (
    SecurityGroup(),
    SecurityGroupEgressRule(),
    SecurityGroupIngressRule(),
    LaunchTemplate(),
)
