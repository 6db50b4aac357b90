"""Functions (invokes): what a program asks of the account before it makes anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import from_key_values
from sandbox.provider.wire import Properties

Function = Callable[[Cloud, Properties], Properties]


class NoAnswer(Exception):
    """The function has nothing to return; the message is as the real provider words it."""


def _get_caller_identity(cloud: Cloud, _: Properties) -> Properties:
    identity = cloud.client("sts").get_caller_identity()
    account = identity["Account"]
    return {
        "accountId": account,
        "arn": identity["Arn"],
        "id": account,
        "userId": identity["UserId"],
    }


def _get_partition(cloud: Cloud, _: Properties) -> Properties:
    partition = cloud.partition
    suffix = partition["outputs"]["dnsSuffix"]
    return {
        "dnsSuffix": suffix,
        "id": partition["id"],
        "partition": partition["id"],
        "reverseDnsPrefix": ".".join(reversed(suffix.split("."))),
    }


def _get_region(cloud: Cloud, arguments: Properties) -> Properties:
    region = arguments.get("name") or cloud.region
    known = cloud.partition["regions"].get(region)
    if known is None:
        raise NoAnswer(f"no region found with name {region!r}")
    return {
        "description": known["description"],
        "endpoint": f"ec2.{region}.{cloud.partition['outputs']['dnsSuffix']}",
        "id": region,
        "name": region,
        "region": region,
    }


def _get_vpc(cloud: Cloud, arguments: Properties) -> Properties:
    filters = _filters(arguments)
    if arguments.get("default"):
        filters.append({"Name": "isDefault", "Values": ["true"]})
    vpc = _only("EC2 VPC", cloud, "describe_vpcs", "Vpcs", "VpcIds", arguments, filters)
    blocks = [
        {
            "associationId": block["AssociationId"],
            "cidrBlock": block["CidrBlock"],
            "state": block["CidrBlockState"]["State"],
        }
        for block in vpc.get("CidrBlockAssociationSet", [])
    ]
    ec2 = cloud.client("ec2")

    def attribute(name: str) -> bool:
        answer = ec2.describe_vpc_attribute(VpcId=vpc["VpcId"], Attribute=name)
        return bool(answer[name[0].upper() + name[1:]]["Value"])

    tables = ec2.describe_route_tables(
        Filters=[
            {"Name": "vpc-id", "Values": [vpc["VpcId"]]},
            {"Name": "association.main", "Values": ["true"]},
        ]
    )["RouteTables"]
    return {
        "arn": cloud.arn("ec2", f"vpc/{vpc['VpcId']}"),
        "cidrBlock": vpc["CidrBlock"],
        "cidrBlockAssociations": blocks,
        "default": vpc["IsDefault"],
        "dhcpOptionsId": vpc.get("DhcpOptionsId", ""),
        "enableDnsHostnames": attribute("enableDnsHostnames"),
        "enableDnsSupport": attribute("enableDnsSupport"),
        "enableNetworkAddressUsageMetrics": attribute("enableNetworkAddressUsageMetrics"),
        "filters": arguments.get("filters"),
        "id": vpc["VpcId"],
        "instanceTenancy": vpc["InstanceTenancy"],
        "ipv6AssociationId": "",
        "ipv6CidrBlock": "",
        "ipv6CidrBlockAssociations": [],
        "mainRouteTableId": tables[0]["RouteTableId"] if tables else "",
        "ownerId": vpc["OwnerId"],
        "region": cloud.region,
        "state": vpc["State"],
        "tags": from_key_values(vpc.get("Tags")),
    }


def _get_subnets(cloud: Cloud, arguments: Properties) -> Properties:
    found = cloud.client("ec2").describe_subnets(Filters=_filters(arguments))["Subnets"]
    return {
        "filters": arguments.get("filters"),
        "id": cloud.region,
        "ids": [subnet["SubnetId"] for subnet in found],
        "region": cloud.region,
        "tags": arguments.get("tags", {}),
    }


def _get_subnet(cloud: Cloud, arguments: Properties) -> Properties:
    subnet = _only(
        "EC2 Subnet",
        cloud,
        "describe_subnets",
        "Subnets",
        "SubnetIds",
        arguments,
        _filters(arguments),
    )
    return {
        "arn": subnet["SubnetArn"],
        "assignIpv6AddressOnCreation": subnet.get("AssignIpv6AddressOnCreation", False),
        "availabilityZone": subnet["AvailabilityZone"],
        "availabilityZoneId": subnet.get("AvailabilityZoneId", ""),
        "availableIpAddressCount": subnet["AvailableIpAddressCount"],
        "cidrBlock": subnet["CidrBlock"],
        "customerOwnedIpv4Pool": "",
        "defaultForAz": subnet["DefaultForAz"],
        "enableDns64": False,
        "enableLniAtDeviceIndex": 0,
        "enableResourceNameDnsARecordOnLaunch": False,
        "enableResourceNameDnsAaaaRecordOnLaunch": False,
        "filters": arguments.get("filters"),
        "id": subnet["SubnetId"],
        "ipv6CidrBlock": "",
        "ipv6CidrBlockAssociationId": "",
        "ipv6Native": False,
        "mapCustomerOwnedIpOnLaunch": False,
        "mapPublicIpOnLaunch": subnet["MapPublicIpOnLaunch"],
        "outpostArn": "",
        "ownerId": subnet["OwnerId"],
        "privateDnsHostnameTypeOnLaunch": "ip-name",
        "region": cloud.region,
        "state": subnet["State"],
        "tags": from_key_values(subnet.get("Tags")),
        "vpcId": subnet["VpcId"],
    }


def _get_ami(cloud: Cloud, arguments: Properties) -> Properties:
    images = cloud.client("ec2").describe_images(Filters=_filters(arguments))["Images"]
    if not images:
        raise NoAnswer("Your query returned no results. Please change your search criteria")
    if len(images) > 1:
        raise NoAnswer("Your query returned more than one result")
    (image,) = images
    devices = image.get("BlockDeviceMappings", [])
    root = image.get("RootDeviceName", "")
    snapshots = [d["Ebs"].get("SnapshotId", "") for d in devices if d["DeviceName"] == root]
    return {
        "architecture": image["Architecture"],
        "arn": f"arn:{cloud.partition['id']}:ec2:{cloud.region}::image/{image['ImageId']}",
        "blockDeviceMappings": [
            {
                "deviceName": device["DeviceName"],
                "ebs": {key: _text(device["Ebs"].get(name)) for key, name in _EBS.items()},
                "noDevice": "",
                "virtualName": device.get("VirtualName", ""),
            }
            for device in devices
        ],
        "bootMode": image.get("BootMode", ""),
        "creationDate": image.get("CreationDate", ""),
        "deprecationTime": image.get("DeprecationTime", ""),
        "description": image.get("Description", ""),
        "enaSupport": image.get("EnaSupport", True),
        "filters": arguments.get("filters"),
        "hypervisor": image.get("Hypervisor", ""),
        "id": image["ImageId"],
        "imageId": image["ImageId"],
        "imageLocation": image.get("ImageLocation", ""),
        "imageOwnerAlias": image.get("ImageOwnerAlias", ""),
        "imageType": image.get("ImageType", ""),
        "imdsSupport": image.get("ImdsSupport", ""),
        "includeDeprecated": arguments.get("includeDeprecated", False),
        "kernelId": image.get("KernelId", ""),
        "lastLaunchedTime": "",
        "name": image.get("Name", ""),
        "ownerId": image.get("OwnerId", ""),
        "platform": image.get("Platform", "") or "",
        "platformDetails": image.get("PlatformDetails", ""),
        "productCodes": [],
        "public": image.get("Public", False),
        "ramdiskId": image.get("RamdiskId", ""),
        "region": cloud.region,
        "rootDeviceName": root,
        "rootDeviceType": image.get("RootDeviceType", ""),
        "rootSnapshotId": snapshots[0] if snapshots else "",
        "sriovNetSupport": image.get("SriovNetSupport", ""),
        "state": image.get("State", ""),
        "stateReason": {},
        "tags": from_key_values(image.get("Tags")),
        "tpmSupport": "",
        "usageOperation": image.get("UsageOperation", ""),
        "virtualizationType": image.get("VirtualizationType", ""),
    }


_EBS = {
    "delete_on_termination": "DeleteOnTermination",
    "encrypted": "Encrypted",
    "iops": "Iops",
    "snapshot_id": "SnapshotId",
    "throughput": "Throughput",
    "volume_size": "VolumeSize",
    "volume_type": "VolumeType",
}


def _text(value: Any) -> str:
    """A member of a map of texts, as the provider writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value or "")


def _get_instance_type_offerings(cloud: Cloud, arguments: Properties) -> Properties:
    pages = (
        cloud.client("ec2")
        .get_paginator("describe_instance_type_offerings")
        .paginate(LocationType=arguments.get("locationType", "region"), Filters=_filters(arguments))
    )
    found = [offering for page in pages for offering in page["InstanceTypeOfferings"]]
    return {
        "filters": arguments.get("filters"),
        "id": cloud.region,
        "instanceTypes": [offering["InstanceType"] for offering in found],
        "locationType": arguments.get("locationType"),
        "locationTypes": [offering["LocationType"] for offering in found],
        "locations": [offering["Location"] for offering in found],
        "region": cloud.region,
    }


def _filters(arguments: Properties) -> list[dict[str, Any]]:
    return [
        {"Name": item["name"], "Values": item["values"]} for item in arguments.get("filters") or []
    ] + [
        {"Name": f"tag:{key}", "Values": [value]}
        for key, value in (arguments.get("tags") or {}).items()
    ]


def _only(
    label: str,
    cloud: Cloud,
    call: str,
    member: str,
    ids: str,
    arguments: Properties,
    filters: list[dict[str, Any]],
) -> Any:
    request: dict[str, Any] = {"Filters": filters}
    if arguments.get("id"):
        request[ids] = [arguments["id"]]
    try:
        found = getattr(cloud.client("ec2"), call)(**request)[member]
    except ClientError as err:
        if not err.response["Error"]["Code"].endswith("NotFound"):
            raise
        found = []
    if not found:
        raise NoAnswer(f"no matching {label} found")
    if len(found) > 1:
        raise NoAnswer(f"multiple {label}s matched; use additional constraints")
    return found[0]


FUNCTIONS: Mapping[str, tuple[frozenset[str], Function]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": (frozenset(), _get_caller_identity),
    "aws:index/getPartition:getPartition": (frozenset(), _get_partition),
    "aws:index/getRegion:getRegion": (frozenset({"name"}), _get_region),
    "aws:ec2/getVpc:getVpc": (frozenset({"default", "filters", "id", "tags"}), _get_vpc),
    "aws:ec2/getSubnets:getSubnets": (frozenset({"filters", "tags"}), _get_subnets),
    "aws:ec2/getSubnet:getSubnet": (frozenset({"filters", "id", "tags"}), _get_subnet),
    "aws:ec2/getAmi:getAmi": (frozenset({"filters", "includeDeprecated"}), _get_ami),
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": (
        frozenset({"filters", "locationType"}),
        _get_instance_type_offerings,
    ),
}
"""By token: the arguments that it takes besides `region`, and what it does."""
