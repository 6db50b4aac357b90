"""Stack configuration (`runfleet:` keys of Pulumi.<stack>.yaml) to typed Settings. Pure.

A new key is a field here (its camelCase name is the key), and its default and description in
Pulumi.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from infra.mistakes import Mistake
from infra.reading import Reader

NAMESPACE = "runfleet"
SECRET_KEYS = ("wandbApiKey", "secrets")
"""Keys that hold secrets: infra.secret_settings reads them, nothing else looks at them."""

MaxVcpus = Annotated[int, Meta(ge=1, le=100_000)]
BidPercentage = Annotated[int, Meta(ge=1, le=100)]
ImageId = Annotated[
    str,
    Meta(
        pattern="ami-([0-9a-f]{8}|[0-9a-f]{17})",
        description="the id of an AMI, ami- and 8 or 17 hexadecimal digits",
    ),
]
VpcId = Annotated[
    str,
    Meta(
        pattern="(vpc-([0-9a-f]{8}|[0-9a-f]{17}))?",
        description="the id of a VPC, vpc- and 8 or 17 hexadecimal digits; empty for the default VPC",
    ),
]
SubnetId = Annotated[
    str,
    Meta(
        pattern="subnet-([0-9a-f]{8}|[0-9a-f]{17})",
        description="the id of a subnet, subnet- and 8 or 17 hexadecimal digits",
    ),
]
Image = Annotated[
    str,
    Meta(
        pattern=r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}",
        description="a container image as docker pull takes it",
    ),
]
# The characters that every AWS service takes in tags (Tagging AWS resources, "Tag naming").
TagName = Annotated[
    str,
    Meta(
        pattern=r"(?![Aa][Ww][Ss]:)[\w .:/=+@-]{1,128}",
        description="a tag name of 1 to 128 letters, digits, spaces and _.:/=+-@ that does not begin with aws:",
    ),
]
TagValue = Annotated[
    str,
    Meta(
        pattern=r"[\w .:/=+@-]{0,256}",
        description="a tag value of at most 256 letters, digits, spaces and _.:/=+-@",
    ),
]
RolePath = Annotated[
    str,
    Meta(
        pattern=r"/([!-.0-~]{1,60}/){0,8}",
        description="a path of IAM roles that begins and ends with /, such as /teams/rl/",
    ),
]
PolicyArn = Annotated[
    str,
    Meta(
        pattern=r"(arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[!-~]{1,200})?",
        description="the ARN of an IAM policy; empty for none",
    ),
]
Priority = Annotated[int, Meta(ge=0, le=1000)]
"""Batch, CreateJobQueue: of queues that share machines the one with the greater number goes first."""
OnDemandStrategy = Literal["BEST_FIT_PROGRESSIVE", "BEST_FIT"]
SpotStrategy = Literal[
    "SPOT_PRICE_CAPACITY_OPTIMIZED", "SPOT_CAPACITY_OPTIMIZED", "BEST_FIT_PROGRESSIVE", "BEST_FIT"
]
OnDestroy = Literal["protect", "retain", "delete"]
"""Of bucket and repository: refuse to, leave them in the account, or delete them with all in them."""
Naming = Literal["stack", "plain"]
CapacityCheck = Literal["fail", "warn", "none"]
ShareId = Annotated[
    str,
    Meta(
        pattern=r"[A-Za-z0-9]{1,254}\*?",
        description="a share identifier of 1 to 255 letters and digits, * at the end for all that begin so",
    ),
]
ShareWeight = Annotated[float, Meta(ge=0.0001, le=999.9999)]
"""Batch, ShareAttributes: the smaller, the more the share gets."""
# What CloudWatch Logs accepts (PutRetentionPolicy).
RetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]  # fmt: skip


class TypeSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One item of instanceTypes. None: as the stack has it."""

    shorthand: ClassVar[str] = "type"

    type: Annotated[str, Meta(description="an EC2 instance type, such as c6g.medium")]
    spot: bool | None = None
    on_demand: bool | None = None
    max_vcpus: MaxVcpus | None = None
    spot_bid_percentage: BidPercentage | None = None
    image_id: ImageId | None = None
    instance_store: bool | None = None
    flex: bool | None = None
    priority: Priority | None = None
    allocation_strategy: OnDemandStrategy | None = None
    spot_allocation_strategy: SpotStrategy | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a team can choose. Each is well-formed; whether all go together is infra.choices'."""

    instance_types: tuple[TypeSettings | None, ...] = tuple(
        TypeSettings(type=name)
        for name in (
            "g4dn.4xlarge",
            "g4dn.xlarge",
            "r5ad.large",
            "c6g.medium",
            "m6gd.medium",
            "c5a.large",
        )
    )
    """None stands for an item that could not be read."""
    spot: bool = True
    on_demand: bool = True
    max_vcpus: MaxVcpus = 256
    """Of each queue."""
    spot_bid_percentage: BidPercentage = 100
    """Of the on-demand price."""
    flex: bool = False
    """A third queue per type: spot machines first, on-demand ones when there are none."""
    priority: Priority = 1
    allocation_strategy: OnDemandStrategy = "BEST_FIT_PROGRESSIVE"
    spot_allocation_strategy: SpotStrategy = "SPOT_PRICE_CAPACITY_OPTIMIZED"
    capacity_wait_hours: Annotated[int, Meta(ge=0, le=24)] = 0
    """How long a job may wait at the head of a queue for machines that AWS does not have; 0 for
    as long as it takes. Batch takes no more than a day."""
    fair_share: bool = False
    share_decay_hours: Annotated[int, Meta(ge=0, le=168)] = 24
    """How long use counts against a share; Batch takes no more than a week."""
    share_reservation: Annotated[int, Meta(ge=0, le=99)] = 0
    """Percentage of the vCPUs kept for shares that have no jobs yet."""
    shares: dict[ShareId, ShareWeight] = {}
    longest_job_hours: Annotated[int, Meta(ge=1, le=6)] = 6
    """How long running jobs may go on when an edit makes Batch renew the machines. The AWS
    provider takes no more than 360 minutes."""
    vpc_id: VpcId = ""
    subnet_ids: tuple[SubnetId, ...] = ()
    root_volume_gib: Annotated[int, Meta(ge=30, le=16_384)] = 100
    """The ECS image needs 30; CUDA images do not fit in what that leaves."""
    instance_store: bool = False
    """Whether Docker uses the local disks of the types that have some."""
    role_path: RolePath = "/"
    permissions_boundary: PolicyArn = ""
    batch_service_role: bool = False
    """A role of the stack's own in place of the service-linked one. Batch then renews compute
    environments at most edits in place of updating them."""
    spot_fleet_role: bool = False
    """Made in any case where a spot queue has the strategy BEST_FIT."""
    repository: bool = False
    """A place for the team's own container images."""
    repository_keep_images: Annotated[int, Meta(ge=1, le=1000)] = 50
    bucket: bool = False
    """A place for what jobs leave behind: artifacts and checkpoints."""
    bucket_expiry_days: Annotated[int, Meta(ge=0, le=3650)] = 0
    """0: what lies in the bucket stays."""
    storage_on_destroy: OnDestroy = "protect"
    naming: Naming = "stack"
    """Of queues: with the stack's name before, or the bare type for an account with one team."""
    capacity_check: CapacityCheck = "fail"
    """What to do when the account has no room for the fleet beside what stands there."""
    publish: bool = False
    """The fleet document as SSM parameters too."""
    submitters: bool = False
    """A managed policy with what submitting takes."""
    image: Image = "public.ecr.aws/docker/library/python:3.12-slim"
    log_retention_days: RetentionDays = 90
    tags: dict[TagName, TagValue] = {}


def read_settings(
    config: Mapping[str, str], *, secret_keys: frozenset[str] = frozenset()
) -> tuple[Settings, list[Mistake]]:
    """The settings in `config`, whose keys are full ones (`runfleet:maxVcpus`), and all that is
    wrong with them. Keys of other namespaces belong to others; a wrong setting has its default
    in the result, so that the rest can still be checked. What is kept as a secret is refused
    unread, so that no message shows it.
    """
    prefix = f"{NAMESPACE}:"
    own = {key[len(prefix) :]: text for key, text in config.items() if key.startswith(prefix)}
    own = {key: text for key, text in own.items() if key not in SECRET_KEYS}
    reader = Reader()
    values = reader.read_fields(
        Settings,
        {key: text for key, text in own.items() if prefix + key not in secret_keys},
        path=lambda key: prefix + key,
        top=True,
    )
    return Settings(**values), [*reader.mistakes, *_kept_secret(own, secret_keys)]


def _kept_secret(own: Mapping[str, str], secret_keys: frozenset[str]) -> list[Mistake]:
    full_keys = [f"{NAMESPACE}:{key}" for key in own]
    return [
        Mistake(
            path=key,
            problem="is a secret here, but would stand in plain text in AWS and in Pulumi's state",
            command=f"pulumi config set --plaintext {key} …",
        )
        for key in full_keys
        if key in secret_keys
    ]
