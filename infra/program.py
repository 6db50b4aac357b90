"""The whole program: stack configuration to components to the exported fleet document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pulumi
from pulumi_aws import cloudwatch

from infra.capacity import crowded, leaving, unchangeable
from infra.catalog import parse_catalog
from infra.choices import choose
from infra.data import instance_types_csv
from infra.ending import told
from infra.jobs import EndingJobs
from infra.lookup import fetch_account
from infra.mistakes import Refused
from infra.network import Network
from infra.plan import fleet_document, plan_fleet
from infra.plans import Account, FleetPlan, PublishingPlan
from infra.publishing import Publishing, submitters_policy
from infra.queues import Shared, TypeQueues, share_policy
from infra.renewal import harmful, renewed, served
from infra.roles import Roles
from infra.secret_settings import read_secrets
from infra.secrets import Secrets
from infra.settings import read_settings
from infra.standing import Look, NotCounted
from infra.storage import ArtifactBucket, ImageRepository
from submit.fleet import Fleet, fleet_to_builtins, fleet_to_parameters, queue_text


def planned_fleet(
    config: dict[str, str], *, secret_keys: frozenset[str], stack: str, project: str
) -> tuple[FleetPlan, dict[str, str]]:
    """What to build, and the values of its secrets. Raises Refused with every mistake that can be told without AWS, or, if
    there is none, with what AWS has against the settings; NoAnswer if AWS does not say.
    """
    settings, mistakes = read_settings(config, secret_keys=secret_keys)
    secrets, bad_secrets = read_secrets(config, secret_keys=secret_keys)
    choices, impossible = choose(settings, parse_catalog(instance_types_csv()))
    if mistakes or bad_secrets or impossible:
        raise Refused([*mistakes, *bad_secrets, *impossible])
    account = fetch_account(settings, [choice.instance_type.name for choice in choices])
    plan = plan_fleet(
        settings, choices, account, stack=stack, project=project, secret_names=secrets
    )
    if settings.capacity_check != "none":
        _check_account(plan, account, config, fail=settings.capacity_check == "fail")
    return plan, secrets


def _check_account(
    plan: FleetPlan, account: Account, config: Mapping[str, str], *, fail: bool
) -> None:
    """What the fleet can not be beside what stands. Raises Refused with it; warns of what is to
    be thought of, and where the account could not be looked at.
    """
    try:
        look = Look(config, account=account.account, region=account.region)
        standing = look.standing(plan.stack)
        jobs = look.jobs(queue.name for queue in leaving(plan, standing))
        anew = {name for names in renewed(plan, standing).values() for name in names}
        there = look.jobs(queue.name for queue in served(plan, standing, anew))
    except NotCounted as why:
        pulumi.log.warn(f"what stands in the account was not counted: {why}")
        return
    no_room = crowded(plan, standing, renewed=anew)
    fixed = [*unchangeable(plan, standing), *harmful(plan, standing, there)]
    if fixed or (no_room and fail):
        raise Refused([*fixed, *no_room])
    for mistake in no_room:
        pulumi.log.warn(f"{mistake.path}: {mistake.problem}")
    if jobs:
        pulumi.log.warn(f"jobs end with their queues: {told(jobs)}")


def build_fleet(plan: FleetPlan, secrets: Mapping[str, str]) -> dict[str, pulumi.Output[Any]]:
    """Registers all resources of the plan; the stack's outputs, `fleet` among them."""
    network = Network(plan.network)
    roles = Roles(plan.roles)
    vault = Secrets(plan.secrets, secrets, reader=roles.execution.name) if plan.secrets else None
    images = ImageRepository(plan.repository) if plan.repository else None
    bucket = ArtifactBucket(plan.bucket, user=roles.job.name) if plan.bucket else None
    share = share_policy(plan.share) if plan.share else None
    cloudwatch.LogGroup(
        "logs",
        name=plan.log_group.name,
        retention_in_days=plan.log_group.retention_in_days,
        tags=plan.log_group.tags,
    )
    shared = Shared(
        security_group_id=network.security_group.id,
        instance_profile_arn=roles.instance_profile.arn,
        service_role_arn=roles.batch_service.arn if roles.batch_service else None,
        spot_fleet_role_arn=roles.spot_fleet.arn if roles.spot_fleet else None,
        scheduling_policy_arn=share.arn if share else None,
        after=[*roles.attachments, network.egress, network.ingress],
    )
    built = [TypeQueues(type_plan, shared) for type_plan in plan.types]
    known = Known(
        roles=[roles.job.arn, roles.execution.arn],
        queues={name: queue.arn for types in built for name, queue in types.queues.items()},
        secrets=vault.arns if vault else {},
        repository_url=images.url if images else None,
        artifacts=bucket.url if bucket else None,
    )
    EndingJobs(plan, known.queues, profile=pulumi.Config("aws").get("profile"))
    outputs: dict[str, pulumi.Output[Any]] = {"fleet": _document(plan, known)}
    if plan.publishing:
        Publishing(plan.publishing, _parts(plan, plan.publishing, known))
    if plan.submitters:
        outputs["submittersPolicyArn"] = submitters_policy(
            plan.submitters,
            roles=known.roles,
            repository_arn=images.arn if images else None,
            bucket=(bucket.arn, plan.bucket.prefix) if bucket and plan.bucket else None,
        ).arn
    return outputs


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What AWS gives for the fleet document."""

    roles: list[pulumi.Output[str]]
    """ARNs of job role and execution role."""
    queues: dict[str, pulumi.Output[str]]
    secrets: dict[str, pulumi.Output[str]]
    repository_url: pulumi.Output[str] | None
    artifacts: pulumi.Output[str] | None


def _document(plan: FleetPlan, known: Known) -> pulumi.Output[dict[str, Any]]:
    return pulumi.Output.from_input(msgspec.structs.asdict(known)).apply(
        lambda values: fleet_to_builtins(_fleet(plan, values))
    )


def _parts(
    plan: FleetPlan, publishing: PublishingPlan, known: Known
) -> dict[str, pulumi.Output[str]]:
    """The parts of the document (submit.fleet, fleet_to_parameters), each of what it tells alone:
    of the others not all may be known yet.
    """
    head = msgspec.structs.replace(plan, types=())
    values = msgspec.structs.asdict(known) | {"queues": {}, "secrets": {}}
    facts = {queue.name: queue.facts for t in plan.types for queue in t.queues}

    def queue_part(name: str) -> Callable[[str], str]:
        return lambda arn: queue_text(msgspec.structs.replace(facts[name], arn=arn))

    return {
        "fleet": pulumi.Output.from_input(values).apply(
            lambda found: fleet_to_parameters(_fleet(head, found))["fleet"]
        ),
        "tags": pulumi.Output.from_input(publishing.tags_text),
        **{f"queues/{name}": arn.apply(queue_part(name)) for name, arn in known.queues.items()},
        **{f"secrets/{name}": arn for name, arn in known.secrets.items()},
    }


def _fleet(plan: FleetPlan, values: dict[str, Any]) -> Fleet:
    return fleet_document(
        plan,
        roles=(values["roles"][0], values["roles"][1]),
        arns=values["queues"],
        secret_arns=values["secrets"],
        repository_url=values["repository_url"],
        artifacts=values["artifacts"],
    )
