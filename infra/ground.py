"""What the account has against a fleet: its network, its zones, its machine images, whose its policies are. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.choices import Choice
from infra.mistakes import Mistake
from infra.plans import Account
from infra.settings import NAMESPACE, Settings

VPC_KEY = f"{NAMESPACE}:vpcId"
SUBNETS_KEY = f"{NAMESPACE}:subnetIds"
TYPES_KEY = f"{NAMESPACE}:instanceTypes"
_LIST_SUBNETS = "aws ec2 describe-subnets --query 'Subnets[].[VpcId,SubnetId]' --output text"


def no_ground(settings: Settings, choices: Sequence[Choice], account: Account) -> list[Mistake]:
    """Every reason why the fleet can not stand there, together."""
    return [
        *_wrong_network(settings, account),
        *_offered_nowhere(choices, account),
        *_wrong_images(settings, choices, account),
        *_foreign_boundary(settings, account),
    ]


def subnets_for(instance_type: str, account: Account) -> tuple[str, ...]:
    """The subnets in zones that offer the type: Batch fails in the others."""
    zones = account.zones_by_type.get(instance_type, frozenset())
    return tuple(sorted(s.id for s in account.subnets if s.zone in zones))


def _wrong_network(settings: Settings, account: Account) -> Iterator[Mistake]:
    known = {subnet.id: subnet for subnet in account.subnets}
    for index, name in enumerate(settings.subnet_ids):
        path = f"{SUBNETS_KEY}[{index}]"
        if name not in known:
            problem = f"the account has no subnet {name} in this region"
            yield Mistake(path=path, problem=problem, command=_LIST_SUBNETS)
        elif known[name].vpc_id != account.vpc_id:
            problem = (
                f"{name} lies in {known[name].vpc_id}, not in {account.vpc_id}; a fleet has one VPC"
            )
            yield Mistake(path=path, problem=problem)
    if settings.subnet_ids:
        return
    if not account.vpc_id:
        problem = f"the region has no default VPC; name one here, or subnets in {SUBNETS_KEY}"
        command = f"pulumi config set {VPC_KEY} vpc-…"
        yield Mistake(path=VPC_KEY, problem=problem, command=command)
    elif not account.subnets:
        problem = f"the account has no VPC {account.vpc_id} with a subnet in this region"
        yield Mistake(path=VPC_KEY, problem=problem, command=_LIST_SUBNETS)


def _offered_nowhere(choices: Sequence[Choice], account: Account) -> Iterator[Mistake]:
    own_zones = sorted({subnet.zone for subnet in account.subnets})
    for index, choice in enumerate(choices):
        name = choice.instance_type.name
        zones = account.zones_by_type.get(name, frozenset())
        if not zones:
            problem = (
                f"{account.region} does not offer {name}; drop it, or choose another aws:region"
            )
        elif own_zones and not subnets_for(name, account):
            problem = (
                f"{name} is offered in {', '.join(sorted(zones))} only, the subnets are in "
                f"{', '.join(own_zones)}; add a subnet there to {SUBNETS_KEY}, or drop {name}"
            )
        else:
            continue
        yield Mistake(path=f"{TYPES_KEY}[{index}]", problem=problem)


def _wrong_images(
    settings: Settings, choices: Sequence[Choice], account: Account
) -> Iterator[Mistake]:
    """Machine images that would not boot, or not take the root volume that is asked for."""
    for index, choice in enumerate(choices):
        if not choice.image_id:
            continue
        image, name = account.images.get(choice.image_id), choice.instance_type.name
        path = f"{TYPES_KEY}[{index}].imageId"
        if image is None:
            problem = (
                f"there is no image {choice.image_id} in this region that the account may start"
            )
            yield Mistake(path=path, problem=problem)
            continue
        if image.platform:
            problem = f"{image.id} for {name} is an image for {image.platform}; a fleet runs Linux"
            yield Mistake(path=path, problem=problem)
        if image.arch != choice.instance_type.arch:
            problem = (
                f"{image.id} is an image for {image.arch}, {name} is {choice.instance_type.arch}; "
                "name an image of that architecture"
            )
            yield Mistake(path=path, problem=problem)
        if image.root_volume_gib > settings.root_volume_gib:
            problem = f"{image.id} for {name} needs at least {image.root_volume_gib} GiB"
            command = f"pulumi config set {NAMESPACE}:rootVolumeGib {image.root_volume_gib}"
            yield Mistake(path=f"{NAMESPACE}:rootVolumeGib", problem=problem, command=command)


def _foreign_boundary(settings: Settings, account: Account) -> Iterator[Mistake]:
    """IAM takes a policy of the same account, or one of AWS's own in the same partition."""
    if not settings.permissions_boundary:
        return
    _, partition, _, _, owner, name = settings.permissions_boundary.split(":", 5)
    if partition != account.partition or owner not in {account.account, "aws"}:
        right = (
            f"arn:{account.partition}:iam::{owner if owner == 'aws' else account.account}:{name}"
        )
        yield Mistake(
            path=f"{NAMESPACE}:permissionsBoundary",
            problem=f"{settings.permissions_boundary} is no policy of account {account.account} in "
            f"partition {account.partition}; nearest: {right}",
            command=f"pulumi config set {NAMESPACE}:permissionsBoundary {right}",
        )
