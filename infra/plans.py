"""What a fleet will be, part by part: the values that plan_fleet makes and components take. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from submit.fleet import Queue


class Subnet(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    vpc_id: str
    zone: str


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """A machine image (AMI) that the settings name."""

    id: str
    arch: str
    root_device: str
    root_volume_gib: int
    """The least that its root volume has to have."""
    platform: str = ""
    """`windows`, or empty for all others."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan has to know of where the fleet will stand."""

    account: str
    region: str
    partition: str
    dns_suffix: str
    vpc_id: str
    """The one that the settings lead to; empty if the region has no default one."""
    subnets: tuple[Subnet, ...]
    """Those that the settings name and that there are, else all of the VPC."""
    zones_by_type: Mapping[str, frozenset[str]]
    """Availability zones that offer an instance type."""
    images: Mapping[str, Image] = {}
    """By id, those that the settings name and that there are."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Whose: what policies have to name."""

    partition: str
    region: str
    account: str
    stack: str
    log_group: str
    parameter_path: str


class RolePlan(msgspec.Struct, frozen=True, kw_only=True):
    resource_name: str
    name_prefix: str
    path: str
    permissions_boundary: str | None
    description: str
    assume_role_policy: str
    managed_policy_arns: tuple[str, ...]
    tags: dict[str, str]


class RolesPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What machines, jobs, and the agent that starts jobs may do."""

    instance: RolePlan
    job: RolePlan
    execution: RolePlan
    batch_service: RolePlan | None
    """In place of the service-linked role that AWS makes by itself."""
    spot_fleet: RolePlan | None


class SecretPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One secret; its value is in no plan."""

    name: str
    """The environment variable that jobs get it in."""
    name_prefix: str
    tags: dict[str, str]


class SecretsPlan(msgspec.Struct, frozen=True, kw_only=True):
    secrets: tuple[SecretPlan, ...]
    policy_name_prefix: str
    """Of what lets the execution role read them."""


class StoragePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a bucket or repository when the stack is destroyed."""

    protect: bool
    retain: bool
    empty_first: bool


class RepositoryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A place for container images."""

    name: str
    lifecycle_policy: str
    storage: StoragePlan
    tags: dict[str, str]


class BucketPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A place for what jobs leave behind; they may use what lies under `prefix`."""

    name_prefix: str
    prefix: str
    expiry_days: int | None
    policy_name_prefix: str
    """Of what lets the job role use it."""
    storage: StoragePlan
    tags: dict[str, str]


class PublishingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet document as SSM parameters: a part each, for the service takes 4 KiB."""

    path: str
    tags_text: str
    """The document's tags, as JSON."""
    tags: dict[str, str]

    def tags_of(self, part: str) -> dict[str, str]:
        """Of a queue's part with its name."""
        kind, _, name = part.partition("/")
        return self.tags | {"queue": name} if kind == "queues" else self.tags


class SubmittersPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What people need to submit, as a managed policy."""

    name_prefix: str
    path: str
    scope: Scope
    tags: dict[str, str]


class NetworkPlan(msgspec.Struct, frozen=True, kw_only=True):
    vpc_id: str
    group_name_prefix: str
    tags: dict[str, str]


class LogGroupPlan(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    retention_in_days: int
    tags: dict[str, str]


class ComputePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A compute environment and its launch template: machines of one type from one market."""

    name: str
    template_name_prefix: str
    environment_name_prefix: str
    market: str
    allocation_strategy: str
    bid_percentage: int | None
    instance_type: str
    image_type: str
    image_id: str | None
    root_device: str
    max_vcpus: int
    subnet_ids: tuple[str, ...]
    root_volume_gib: int
    user_data: str | None
    """MIME multipart in base64, as EC2 takes it."""
    job_execution_timeout_minutes: int
    service_role: bool
    """Whether the stack's own role stands in for the service-linked one."""
    spot_fleet_role: bool
    tags: dict[str, str]


class TimeLimit(msgspec.Struct, frozen=True, kw_only=True):
    """When Batch cancels the job at the head of a queue that waits for this reason."""

    reason: str
    max_time_seconds: int


class SharePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the queues of the stack share their machines among share identifiers."""

    resource_name: str
    share_decay_seconds: int
    compute_reservation: int
    weights: dict[str, float]
    tags: dict[str, str]


class QueuePlan(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """Logical: what people type."""
    resource_name: str
    """Pulumi makes the physical name of it, unless that is fixed."""
    fixed_name: str | None
    compute: tuple[str, ...]
    """Names of the compute environments, the first to be filled first."""
    priority: int
    time_limits: tuple[TimeLimit, ...]
    fair_share: bool
    facts: Queue
    """For the fleet document; its ARN is known when the queue is there."""
    tags: dict[str, str]


class TypePlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that exists for one instance type, and for no other."""

    instance_type: str
    compute: tuple[ComputePlan, ...]
    queues: tuple[QueuePlan, ...]


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A team's whole fleet, as it will be."""

    stack: str
    account: str
    region: str
    network: NetworkPlan
    roles: RolesPlan
    secrets: SecretsPlan | None
    log_group: LogGroupPlan
    repository: RepositoryPlan | None
    bucket: BucketPlan | None
    publishing: PublishingPlan | None
    submitters: SubmittersPlan | None
    share: SharePlan | None
    types: tuple[TypePlan, ...]
    image: str
    tags: dict[str, str]
