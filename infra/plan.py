"""Settings, catalogue and what the account has, to a FleetPlan: every name and choice. Pure.

The components create what stands here and decide nothing. What AWS does by itself (the
service-linked roles of Batch and EC2 Spot) is in no plan.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from infra import names
from infra.catalog import image_type, usable_memory_mib
from infra.choices import Choice
from infra.mistakes import Mistake, Refused
from infra.settings import NAMESPACE, Settings
from submit.fleet import FLEET_VERSION, Fleet, Queue, queue_name


class Subnet(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    zone: str


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan has to know of where the fleet will stand."""

    account: str
    region: str
    partition: str
    dns_suffix: str
    vpc_id: str
    subnets: tuple[Subnet, ...]
    zones_by_type: Mapping[str, frozenset[str]]
    """Availability zones that offer an instance type."""


class RolePlan(msgspec.Struct, frozen=True, kw_only=True):
    resource_name: str
    name_prefix: str
    description: str
    assume_role_policy: str
    managed_policy_arns: tuple[str, ...]
    tags: dict[str, str]


class RolesPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What machines, jobs, and the agent that starts jobs may do."""

    instance: RolePlan
    job: RolePlan
    execution: RolePlan


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
    max_vcpus: int
    subnet_ids: tuple[str, ...]
    root_volume_gib: int
    user_data: str | None
    """MIME multipart in base64, as EC2 takes it."""
    job_execution_timeout_minutes: int
    tags: dict[str, str]


class TimeLimit(msgspec.Struct, frozen=True, kw_only=True):
    """When Batch cancels the job at the head of a queue that waits for this reason."""

    reason: str
    max_time_seconds: int


class QueuePlan(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """Logical: what people type."""
    resource_name: str
    """Pulumi makes the physical name of it."""
    compute: tuple[str, ...]
    """Names of the compute environments, the first to be filled first."""
    priority: int
    time_limits: tuple[TimeLimit, ...]
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
    log_group: LogGroupPlan
    types: tuple[TypePlan, ...]
    image: str
    tags: dict[str, str]


# The reasons that an hour's patience does not cure (Batch, "Job queue blocked"). A job that no
# instance can hold goes first: it keeps all behind it from starting.
_TIME_LIMITS = (
    TimeLimit(reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT", max_time_seconds=600),
    TimeLimit(reason="MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE", max_time_seconds=3600),
)


def plan_fleet(
    settings: Settings,
    choices: Sequence[Choice],
    account: Account,
    *,
    stack: str,
    project: str,
) -> FleetPlan:
    """The fleet of `stack`. Raises Refused for types that no subnet's zone offers."""
    tags = {"team": stack, "project": project} | settings.tags | {"stack": stack}
    subnets = _subnets_by_type(choices, account)
    return FleetPlan(
        stack=stack,
        account=account.account,
        region=account.region,
        network=NetworkPlan(
            vpc_id=account.vpc_id,
            # EC2 refuses names that begin with sg-, as a stack's may.
            group_name_prefix=names.named(
                stack, "-", limit=names.GROUP_PREFIX, before=f"{NAMESPACE}-"
            ),
            tags=tags,
        ),
        roles=_plan_roles(account, stack, tags),
        log_group=LogGroupPlan(
            name=f"/{NAMESPACE}/{stack}",
            retention_in_days=settings.log_retention_days,
            tags=tags,
        ),
        types=tuple(
            _plan_type(settings, choice, subnets[choice.instance_type.name], stack, tags)
            for choice in choices
        ),
        image=settings.image,
        tags=tags,
    )


def fleet_document(plan: FleetPlan, *, roles: tuple[str, str], arns: Mapping[str, str]) -> Fleet:
    """What `submit` reads. `roles` are the ARNs of job and execution role, `arns` the queues'."""
    job_role_arn, execution_role_arn = roles
    return Fleet(
        version=FLEET_VERSION,
        stack=plan.stack,
        account=plan.account,
        region=plan.region,
        queues={
            queue.name: msgspec.structs.replace(queue.facts, arn=arns[queue.name])
            for type_plan in plan.types
            for queue in type_plan.queues
        },
        job_role_arn=job_role_arn,
        execution_role_arn=execution_role_arn,
        log_group=plan.log_group.name,
        image=plan.image,
        tags=plan.tags,
    )


def _subnets_by_type(choices: Iterable[Choice], account: Account) -> dict[str, tuple[str, ...]]:
    """For each type the subnets in zones that offer it: Batch fails in the others."""
    found: dict[str, tuple[str, ...]] = {}
    mistakes = []
    own_zones = sorted({subnet.zone for subnet in account.subnets})
    for choice in choices:
        name = choice.instance_type.name
        zones = account.zones_by_type.get(name, frozenset())
        found[name] = tuple(sorted(s.id for s in account.subnets if s.zone in zones))
        if found[name]:
            continue
        if zones:
            problem = (
                f"{name} is offered in {', '.join(sorted(zones))} only, the subnets are in "
                f"{', '.join(own_zones)}; add a subnet there to {NAMESPACE}:subnetIds, or drop {name}"
            )
        else:
            problem = (
                f"{account.region} does not offer {name}; drop it, or choose another aws:region"
            )
        mistakes.append(Mistake(path=f"{NAMESPACE}:instanceTypes", problem=problem))
    if mistakes:
        raise Refused(mistakes)
    return found


def _plan_roles(account: Account, stack: str, tags: dict[str, str]) -> RolesPlan:
    def role(kind: str, description: str, trust: dict[str, Any], *policies: str) -> RolePlan:
        return RolePlan(
            resource_name=f"{kind}-role",
            name_prefix=names.named(
                stack, f"-{kind}-", limit=names.ROLE_PREFIX, before=f"{NAMESPACE}-"
            ),
            description=description,
            assume_role_policy=json.dumps(trust, sort_keys=True),
            managed_policy_arns=tuple(
                f"arn:{account.partition}:iam::aws:policy/{policy}" for policy in policies
            ),
            tags=tags,
        )

    # ECS says for whom it asks for a role; without the condition another account's tasks could
    # be made to ask for this one (ECS guide, "Confused deputy"). EC2 does not say it.
    tasks = _trust("ecs-tasks.amazonaws.com", {"aws:SourceAccount": account.account})
    machines = _trust(f"ec2.{account.dns_suffix}", {})
    return RolesPlan(
        instance=role(
            "instance",
            "Machines of the fleet: join the ECS cluster",
            machines,
            "service-role/AmazonEC2ContainerServiceforEC2Role",
        ),
        job=role("job", "Jobs of the fleet: nothing unless the team's settings say so", tasks),
        execution=role(
            "execution",
            "Starting jobs of the fleet: pull images, write logs",
            tasks,
            "service-role/AmazonECSTaskExecutionRolePolicy",
        ),
    )


def _trust(service: str, condition: dict[str, str]) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
    }
    if condition:
        statement["Condition"] = {"StringEquals": condition}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _plan_type(
    settings: Settings,
    choice: Choice,
    subnet_ids: tuple[str, ...],
    stack: str,
    tags: dict[str, str],
) -> TypePlan:
    return TypePlan(
        instance_type=choice.instance_type.name,
        compute=tuple(
            _plan_compute(settings, choice, subnet_ids, stack, tags, spot=spot)
            for spot in choice.markets
        ),
        queues=tuple(_plan_queue(choice, stack, tags, spot=spot) for spot in choice.markets),
    )


def _plan_compute(
    settings: Settings,
    choice: Choice,
    subnet_ids: tuple[str, ...],
    stack: str,
    tags: dict[str, str],
    *,
    spot: bool,
) -> ComputePlan:
    name = queue_name(choice.instance_type.name, spot=spot)
    bid = choice.spot_bid_percentage
    return ComputePlan(
        name=name,
        template_name_prefix=names.named(
            stack, f"-{name}-", limit=names.TEMPLATE_PREFIX, before=f"{NAMESPACE}-"
        ),
        environment_name_prefix=names.named(stack, f"-{name}-", limit=names.BATCH_PREFIX),
        market="SPOT" if spot else "EC2",
        # Of the strategies that let Batch update in place, the ones AWS advises.
        allocation_strategy="SPOT_PRICE_CAPACITY_OPTIMIZED" if spot else "BEST_FIT_PROGRESSIVE",
        # Unset is 100 % to Batch, and what AWS advises.
        bid_percentage=bid if spot and bid < 100 else None,  # noqa: PLR2004 # the whole price
        instance_type=choice.instance_type.name,
        image_type=image_type(choice.instance_type),
        image_id=choice.image_id,
        max_vcpus=choice.max_vcpus,
        subnet_ids=subnet_ids,
        root_volume_gib=settings.root_volume_gib,
        user_data=_SPOT_USER_DATA if spot else None,
        job_execution_timeout_minutes=60 * settings.longest_job_hours,
        tags=tags | {"queue": name},
    )


def _plan_queue(choice: Choice, stack: str, tags: dict[str, str], *, spot: bool) -> QueuePlan:
    instance_type = choice.instance_type
    name = queue_name(instance_type.name, spot=spot)
    return QueuePlan(
        name=name,
        resource_name=names.named(stack, f"-{name}", limit=names.BATCH_NAME),
        compute=(name,),
        priority=1,
        time_limits=_TIME_LIMITS,
        facts=Queue(
            arn="",
            instance_type=instance_type.name,
            arch=instance_type.arch,
            vcpus=instance_type.vcpus,
            memory_mib=usable_memory_mib(instance_type.memory_mib),
            gpus=instance_type.gpus,
            gpu_model=instance_type.gpu_model or None,
            spot=spot,
            max_vcpus=choice.max_vcpus,
        ),
        tags=tags | {"queue": name},
    )


def _user_data(shell_script: str) -> str:
    """Base64 of MIME multipart: Batch adds its own part, and refuses any other form."""
    boundary = "==RUNFLEET=="
    document = (
        "MIME-Version: 1.0\n"
        f'Content-Type: multipart/mixed; boundary="{boundary}"\n\n'
        f"--{boundary}\n"
        'Content-Type: text/x-shellscript; charset="us-ascii"\n\n'
        f"{shell_script}\n"
        f"--{boundary}--\n"
    )
    return base64.b64encode(document.encode("ascii")).decode("ascii")


# The agent then stops the containers with SIGTERM when EC2 gives its two minutes' notice.
_SPOT_USER_DATA = _user_data(
    "#!/bin/sh\necho ECS_ENABLE_SPOT_INSTANCE_DRAINING=true >> /etc/ecs/ecs.config"
)
