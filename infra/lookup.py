"""Asks AWS, through Pulumi's provider, what the plan has to know. Creates nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pulumi_aws as aws

from infra.mistakes import Mistake, Refused
from infra.plans import Account, Image, Subnet
from infra.settings import NAMESPACE, Settings

VPC_KEY = f"{NAMESPACE}:vpcId"
SUBNETS_KEY = f"{NAMESPACE}:subnetIds"


class NoAnswer(Exception):
    """AWS, or the provider on the way to it, did not say what was asked."""

    def told(self, stack: str) -> str:
        if re.search(r"://(127\.|localhost)", str(self)):
            return (
                f"stack {stack} can not be planned: the sandbox that AWS_ENDPOINT_URL names does "
                "not answer\nType: python -m sandbox up, then "
                'eval "$(python -m sandbox env)" and pulumi stack init TEAM && pulumi up'
            )
        return (
            f"stack {stack} can not be planned: {self}\n"
            "Check the credentials (aws sts get-caller-identity) and the region "
            "(pulumi config get aws:region), then type: pulumi up"
        )


def fetch_account(settings: Settings, instance_types: Iterable[str]) -> Account:
    """What stands in the account and region that the provider is set up for.

    Six calls, and one more per subnet and image. Raises Refused where the settings name what is not there,
    NoAnswer where AWS does not say.
    """
    identity = _ask(aws.get_caller_identity)
    partition = _ask(aws.get_partition)
    vpc_id, subnets = _fetch_network(settings)
    return Account(
        account=identity.account_id,
        region=_ask(aws.get_region).region,
        partition=partition.partition,
        dns_suffix=partition.dns_suffix,
        vpc_id=vpc_id,
        subnets=subnets,
        zones_by_type=_fetch_zones(sorted(instance_types)),
        images=_fetch_images(settings),
    )


def _fetch_network(settings: Settings) -> tuple[str, tuple[Subnet, ...]]:
    """The VPC and its subnets: those named, else all of the VPC named, else of the default one."""
    if not settings.subnet_ids:
        vpc_id = settings.vpc_id or _default_vpc()
        found = [_ask(aws.ec2.get_subnet, id=name) for name in _subnets_of(vpc_id)]
    else:
        found = _named_subnets(settings.subnet_ids)
        vpc_id = settings.vpc_id or found[0].vpc_id
    strangers = [
        Mistake(
            path=f"{SUBNETS_KEY}[{index}]",
            problem=f"{subnet.id} lies in {subnet.vpc_id}, not in {vpc_id}; a fleet has one VPC",
        )
        for index, subnet in enumerate(found)
        if subnet.vpc_id != vpc_id
    ]
    if strangers:
        raise Refused(strangers)
    return vpc_id, tuple(Subnet(id=s.id, zone=s.availability_zone) for s in found)


def _default_vpc() -> str:
    vpc = _ask(aws.ec2.get_vpc, default=True, or_none=True)
    if vpc is None:
        problem = f"the region has no default VPC; name one here, or subnets in {SUBNETS_KEY}"
        command = f"pulumi config set {VPC_KEY} vpc-…"
        raise Refused([Mistake(path=VPC_KEY, problem=problem, command=command)])
    return str(vpc.id)


def _subnets_of(vpc_id: str) -> Sequence[str]:
    in_vpc = aws.ec2.GetSubnetsFilterArgs(name="vpc-id", values=[vpc_id])
    ids: list[str] = _ask(aws.ec2.get_subnets, filters=[in_vpc]).ids
    if not ids:
        problem = f"the account has no VPC {vpc_id} with a subnet in this region"
        raise Refused([Mistake(path=VPC_KEY, problem=problem)])
    return sorted(ids)


def _named_subnets(subnet_ids: Sequence[str]) -> list[Any]:
    found = [_ask(aws.ec2.get_subnet, id=name, or_none=True) for name in subnet_ids]
    missing = [
        Mistake(
            path=f"{SUBNETS_KEY}[{index}]",
            problem=f"the account has no subnet {subnet_id} in this region",
        )
        for index, (subnet_id, subnet) in enumerate(zip(subnet_ids, found, strict=True))
        if subnet is None
    ]
    if missing:
        raise Refused(missing)
    return found


def _fetch_zones(instance_types: Sequence[str]) -> dict[str, frozenset[str]]:
    wanted = aws.ec2.GetInstanceTypeOfferingsFilterArgs(
        name="instance-type", values=list(instance_types)
    )
    offered = _ask(
        aws.ec2.get_instance_type_offerings, location_type="availability-zone", filters=[wanted]
    )
    zones: defaultdict[str, set[str]] = defaultdict(set)
    for instance_type, zone in zip(offered.instance_types, offered.locations, strict=True):
        zones[instance_type].add(zone)
    return {instance_type: frozenset(found) for instance_type, found in zones.items()}


def _fetch_images(settings: Settings) -> dict[str, Image]:
    """The machine images that the settings name."""
    images: dict[str, Image] = {}
    missing = []
    for index, item in enumerate(settings.instance_types):
        if item is None or item.image_id is None or item.image_id in images:
            continue
        wanted = aws.ec2.GetAmiFilterArgs(name="image-id", values=[item.image_id])
        found = _ask(aws.ec2.get_ami, filters=[wanted], include_deprecated=True, or_none=True)
        if found is None:
            problem = f"there is no image {item.image_id} in this region that the account may start"
            path = f"{NAMESPACE}:instanceTypes[{index}].imageId"
            missing.append(Mistake(path=path, problem=problem))
            continue
        images[item.image_id] = _image(found)
    if missing:
        raise Refused(missing)
    return images


def _image(found: Any) -> Image:
    sizes = [
        int(mapping.ebs.get("volume_size") or 0)
        for mapping in found.block_device_mappings
        if mapping.device_name == found.root_device_name
    ]
    return Image(
        id=found.id,
        arch=found.architecture,
        root_device=found.root_device_name,
        root_volume_gib=max(sizes, default=0),
        platform=found.platform or "",
    )


def _ask(function: Callable[..., Any], *, or_none: bool = False, **arguments: Any) -> Any:
    """What `function` answers. Where AWS knows no such thing: None if `or_none`, else NoAnswer."""
    try:
        return function(**arguments)
    except Exception as err:  # Pulumi raises a bare Exception when a provider's function fails
        if or_none and re.search(
            r"no matching|returned no results|\.NotFound\b|empty result", str(err)
        ):
            return None
        raise NoAnswer(str(err).strip()) from err
