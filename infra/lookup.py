"""Asks AWS, through Pulumi's provider, what the plan has to know. Creates nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pulumi_aws as aws

from infra.plans import Account, Image, Subnet
from infra.settings import Settings


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

    What the settings name and is not there is left out. Six calls, and one more per subnet and
    image. Raises NoAnswer where AWS does not say.
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
    if settings.subnet_ids:
        answers = [_ask(aws.ec2.get_subnet, id=n, or_none=True) for n in settings.subnet_ids]
        found = [subnet for subnet in answers if subnet is not None]
        vpc_id = settings.vpc_id or (found[0].vpc_id if found else "")
    else:
        vpc_id = settings.vpc_id or _default_vpc()
        found = [_ask(aws.ec2.get_subnet, id=name) for name in _subnets_of(vpc_id)]
    subnets = (Subnet(id=s.id, vpc_id=s.vpc_id, zone=s.availability_zone) for s in found)
    return vpc_id, tuple(subnets)


def _default_vpc() -> str:
    vpc = _ask(aws.ec2.get_vpc, default=True, or_none=True)
    return "" if vpc is None else str(vpc.id)


def _subnets_of(vpc_id: str) -> Sequence[str]:
    if not vpc_id:
        return ()
    in_vpc = aws.ec2.GetSubnetsFilterArgs(name="vpc-id", values=[vpc_id])
    ids: list[str] = _ask(aws.ec2.get_subnets, filters=[in_vpc]).ids
    return sorted(ids)


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
    """The machine images that the settings name, as far as there are such."""
    images: dict[str, Image] = {}
    named = {item.image_id for item in settings.instance_types if item and item.image_id}
    for image_id in sorted(named):
        wanted = aws.ec2.GetAmiFilterArgs(name="image-id", values=[image_id])
        found = _ask(aws.ec2.get_ami, filters=[wanted], include_deprecated=True, or_none=True)
        if found is not None:
            images[found.id] = _image(found)
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
        # Of Linux some sources say so, EC2 itself says nothing.
        platform="windows" if (found.platform or "").lower() == "windows" else "",
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
