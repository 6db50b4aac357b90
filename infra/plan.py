"""Settings, catalogue and what the account has, to a FleetPlan: every name and choice. Pure.

The components create what stands here and decide nothing. What AWS does by itself (the
service-linked roles of Batch and EC2 Spot) is in no plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from infra import names
from infra.catalog import image_type, usable_memory_mib
from infra.choices import Choice
from infra.ground import no_ground, subnets_for
from infra.keeping import (
    plan_bucket,
    plan_publishing,
    plan_repository,
    plan_secrets,
    plan_submitters,
    unpublishable,
)
from infra.mistakes import Refused
from infra.plans import (
    Account,
    ComputePlan,
    FleetPlan,
    LogGroupPlan,
    NetworkPlan,
    QueuePlan,
    SharePlan,
    TimeLimit,
    TypePlan,
)
from infra.rights import plan_roles
from infra.settings import NAMESPACE, Settings
from infra.userdata import user_data
from submit.fleet import FLEET_VERSION, Fleet, Queue, queue_name

ROOT_DEVICE = "/dev/xvda"
"""Of Batch's own images, which are made of Amazon Linux."""

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
    secret_names: Collection[str] = (),
) -> FleetPlan:
    """The fleet of `stack`. Raises Refused for all that the account has against it."""
    tags = {"team": stack, "project": project} | settings.tags | {"stack": stack}
    publishing = plan_publishing(stack, tags) if settings.publish else None
    mistakes = [
        *no_ground(settings, choices, account),
        *unpublishable(settings, publishing),
    ]
    if mistakes:
        raise Refused(mistakes)
    types = tuple(_plan_type(settings, choice, account, stack, tags) for choice in choices)
    spot_fleet = any(compute.spot_fleet_role for t in types for compute in t.compute)
    log_group = _plan_log_group(settings, stack, tags)
    submitters = (
        plan_submitters(settings, account, stack, log_group.name, tags)
        if settings.submitters
        else None
    )
    return FleetPlan(
        stack=stack,
        account=account.account,
        region=account.region,
        network=_plan_network(account, stack, tags),
        roles=plan_roles(settings, account, stack, tags, spot_fleet=spot_fleet),
        secrets=plan_secrets(sorted(secret_names), stack, tags) if secret_names else None,
        log_group=log_group,
        repository=plan_repository(settings, stack, tags) if settings.repository else None,
        bucket=plan_bucket(settings, stack, tags) if settings.bucket else None,
        publishing=publishing,
        submitters=submitters,
        share=_plan_share(settings, stack, tags) if settings.fair_share else None,
        types=types,
        image=settings.image,
        tags=tags,
    )


def fleet_document(
    plan: FleetPlan,
    *,
    roles: tuple[str, str],
    arns: Mapping[str, str],
    secret_arns: Mapping[str, str],
    repository_url: str | None = None,
    artifacts: str | None = None,
) -> Fleet:
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
        secrets=dict(secret_arns),
        image=plan.image,
        image_repository=repository_url,
        artifacts=artifacts,
        tags=plan.tags,
    )


def _plan_network(account: Account, stack: str, tags: dict[str, str]) -> NetworkPlan:
    # EC2 refuses names that begin with sg-, as a stack's may.
    before = f"{NAMESPACE}-"
    return NetworkPlan(
        vpc_id=account.vpc_id,
        group_name_prefix=names.named(stack, "-", limit=names.GROUP_PREFIX, before=before),
        tags=tags,
    )


def _plan_log_group(settings: Settings, stack: str, tags: dict[str, str]) -> LogGroupPlan:
    return LogGroupPlan(
        name=f"/{NAMESPACE}/{stack}",
        retention_in_days=settings.log_retention_days,
        tags=tags,
    )


def _plan_share(settings: Settings, stack: str, tags: dict[str, str]) -> SharePlan:
    return SharePlan(
        resource_name=names.named(stack, "-share", limit=names.BATCH_NAME),
        share_decay_seconds=3600 * settings.share_decay_hours,
        compute_reservation=settings.share_reservation,
        weights=settings.shares,
        tags=tags,
    )


def _plan_type(
    settings: Settings,
    choice: Choice,
    account: Account,
    stack: str,
    tags: dict[str, str],
) -> TypePlan:
    image = account.images[choice.image_id] if choice.image_id else None
    return TypePlan(
        instance_type=choice.instance_type.name,
        compute=tuple(
            _plan_compute(
                settings,
                choice,
                image.root_device if image else ROOT_DEVICE,
                subnets_for(choice.instance_type.name, account),
                stack,
                tags,
                spot=spot,
            )
            for spot in choice.markets
        ),
        queues=tuple(
            _plan_queue(settings, choice, stack, tags, name, compute)
            for name, compute in choice.queues
        ),
    )


def _plan_compute(
    settings: Settings,
    choice: Choice,
    root_device: str,
    subnet_ids: tuple[str, ...],
    stack: str,
    tags: dict[str, str],
    *,
    spot: bool,
) -> ComputePlan:
    name = queue_name(choice.instance_type.name, spot=spot)
    bid = choice.spot_bid_percentage
    strategy = choice.spot_allocation_strategy if spot else choice.allocation_strategy
    return ComputePlan(
        name=name,
        template_name_prefix=names.named(
            stack, f"-{name}-", limit=names.TEMPLATE_PREFIX, before=f"{NAMESPACE}-"
        ),
        environment_name_prefix=names.named(stack, f"-{name}-", limit=names.BATCH_PREFIX),
        market="SPOT" if spot else "EC2",
        allocation_strategy=strategy,
        # Unset is 100 % to Batch, and what AWS advises.
        bid_percentage=bid if spot and bid < 100 else None,  # noqa: PLR2004 # the whole price
        instance_type=choice.instance_type.name,
        image_type=image_type(choice.instance_type),
        image_id=choice.image_id,
        root_device=root_device,
        max_vcpus=choice.max_vcpus,
        subnet_ids=subnet_ids,
        root_volume_gib=settings.root_volume_gib,
        user_data=user_data(spot=spot, instance_store=choice.instance_store),
        job_execution_timeout_minutes=60 * settings.longest_job_hours,
        service_role=settings.batch_service_role,
        # Batch wants this role with BEST_FIT, and with no other strategy.
        spot_fleet_role=spot and (settings.spot_fleet_role or strategy == "BEST_FIT"),
        tags=tags | {"queue": name},
    )


def _plan_queue(
    settings: Settings,
    choice: Choice,
    stack: str,
    tags: dict[str, str],
    name: str,
    compute: tuple[str, ...],
) -> QueuePlan:
    instance_type = choice.instance_type
    return QueuePlan(
        name=name,
        resource_name=names.named(stack, f"-{name}", limit=names.BATCH_NAME),
        fixed_name=name if settings.naming == "plain" else None,
        compute=compute,
        priority=choice.priority,
        time_limits=(*_TIME_LIMITS, *_capacity_limit(settings.capacity_wait_hours)),
        fair_share=settings.fair_share,
        facts=Queue(
            arn="",
            instance_type=instance_type.name,
            arch=instance_type.arch,
            vcpus=instance_type.vcpus,
            memory_mib=usable_memory_mib(instance_type.memory_mib),
            gpus=instance_type.gpus,
            gpu_model=instance_type.gpu_model or None,
            spot=queue_name(instance_type.name, spot=True) in compute,
            max_vcpus=choice.max_vcpus * len(compute),
            fair_share=settings.fair_share,
        ),
        tags=tags | {"queue": name},
    )


def _capacity_limit(hours: int) -> Iterator[TimeLimit]:
    if hours:
        yield TimeLimit(
            reason="CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", max_time_seconds=3600 * hours
        )
