"""Asks AWS, through Pulumi's provider, what the plan has to know. Creates nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pulumi_aws as aws

from infra.mistakes import Mistake, Refused
from infra.plan import Account, Subnet
from infra.settings import NAMESPACE, Settings

VPC_KEY = f"{NAMESPACE}:vpcId"
SUBNETS_KEY = f"{NAMESPACE}:subnetIds"


def fetch_account(settings: Settings, instance_types: Iterable[str]) -> Account:
    """What stands in the account and region that the provider is set up for.

    One call, and one more per subnet. Raises Refused where the settings name what is not there,
    and where AWS does not answer.
    """
    identity = _ask("aws:region", aws.get_caller_identity)
    partition = _ask("aws:region", aws.get_partition)
    vpc_id, subnets = _fetch_network(settings)
    return Account(
        account=identity.account_id,
        region=_ask("aws:region", aws.get_region).region,
        partition=partition.partition,
        dns_suffix=partition.dns_suffix,
        vpc_id=vpc_id,
        subnets=subnets,
        zones_by_type=_fetch_zones(sorted(instance_types)),
    )


def _fetch_network(settings: Settings) -> tuple[str, tuple[Subnet, ...]]:
    """The VPC and its subnets: those named, else all of the VPC named, else of the default one."""
    vpc_id = settings.vpc_id
    if not settings.subnet_ids:
        vpc_id = vpc_id or _default_vpc()
        subnet_ids = _subnets_of(vpc_id)
    else:
        subnet_ids = settings.subnet_ids
    found = {subnet_id: _subnet(subnet_id) for subnet_id in subnet_ids}
    vpc_id = vpc_id or next(iter(found.values())).vpc_id
    mistakes = [
        Mistake(
            path=f"{SUBNETS_KEY}[{index}]",
            problem=f"{subnet_id} lies in {subnet.vpc_id}, not in {vpc_id}; a fleet has one VPC",
        )
        for index, (subnet_id, subnet) in enumerate(found.items())
        if subnet.vpc_id != vpc_id
    ]
    if mistakes:
        raise Refused(mistakes)
    return vpc_id, tuple(
        Subnet(id=subnet_id, zone=subnet.availability_zone) for subnet_id, subnet in found.items()
    )


def _default_vpc() -> str:
    missing = (
        f"this region has no default VPC; name a VPC, or subnets of it in {SUBNETS_KEY}",
        f"pulumi config set {VPC_KEY} vpc-…",
    )
    return str(_ask(VPC_KEY, lambda: aws.ec2.get_vpc(default=True), missing=missing).id)


def _subnets_of(vpc_id: str) -> Sequence[str]:
    in_vpc = aws.ec2.GetSubnetsFilterArgs(name="vpc-id", values=[vpc_id])
    ids: list[str] = _ask(VPC_KEY, lambda: aws.ec2.get_subnets(filters=[in_vpc])).ids
    if not ids:
        problem = f"there is no VPC {vpc_id} with a subnet in this region and account"
        raise Refused([Mistake(path=VPC_KEY, problem=problem)])
    return sorted(ids)


def _subnet(subnet_id: str) -> Any:
    missing = (f"there is no subnet {subnet_id} in this region and account", "")
    return _ask(SUBNETS_KEY, lambda: aws.ec2.get_subnet(id=subnet_id), missing=missing)


def _fetch_zones(instance_types: Sequence[str]) -> dict[str, frozenset[str]]:
    offered = _ask(
        f"{NAMESPACE}:instanceTypes",
        lambda: aws.ec2.get_instance_type_offerings(
            location_type="availability-zone",
            filters=[{"name": "instance-type", "values": list(instance_types)}],
        ),
    )
    zones: defaultdict[str, set[str]] = defaultdict(set)
    for instance_type, zone in zip(offered.instance_types, offered.locations, strict=True):
        zones[instance_type].add(zone)
    return {instance_type: frozenset(found) for instance_type, found in zones.items()}


def _ask(path: str, call: Callable[[], Any], *, missing: tuple[str, str] | None = None) -> Any:
    """What `call` answers; Refused, on `path`, if it has no answer.

    `missing` is what to say, and to type, when AWS knows no such thing.
    """
    try:
        return call()
    except Exception as err:  # Pulumi raises a bare Exception when a provider's function fails
        said = str(err)
        if missing and re.search(r"no matching|NotFound|not found|empty result", said):
            problem, command = missing
        else:
            problem, command = f"AWS did not answer: {_first_line(said)}", ""
        raise Refused([Mistake(path=path, problem=problem, command=command)]) from err


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "without a reason"
