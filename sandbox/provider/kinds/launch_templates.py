"""EC2 launch templates. Speaks boto3."""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import Kind, from_key_values, key_values, with_tags
from sandbox.provider.kinds.ec2 import tag_specifications, unless_gone, update_tags
from sandbox.provider.wire import Properties

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
            TagSpecifications=tag_specifications("launch-template", inputs),
        )
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        ec2 = cloud.client("ec2")
        found = unless_gone(ec2.describe_launch_templates, LaunchTemplateIds=[resource_id])
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
        update_tags(cloud, resource_id, old, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        unless_gone(
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
