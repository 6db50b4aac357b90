"""The whole program: stack configuration to components to the exported fleet document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_aws import cloudwatch

from infra.catalog import parse_catalog
from infra.choices import choose
from infra.data import instance_types_csv
from infra.lookup import fetch_account
from infra.mistakes import Refused
from infra.network import Network
from infra.plan import fleet_document, plan_fleet
from infra.plans import FleetPlan
from infra.queues import Shared, TypeQueues, share_policy
from infra.roles import Roles
from infra.secret_settings import read_secrets
from infra.secrets import Secrets
from infra.settings import read_settings
from submit.fleet import fleet_to_builtins


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
    return plan, secrets


def build_fleet(plan: FleetPlan, secrets: Mapping[str, str]) -> pulumi.Output[dict[str, Any]]:
    """Registers all resources of the plan; the fleet document once they stand."""
    network = Network(plan.network)
    roles = Roles(plan.roles)
    vault = Secrets(plan.secrets, secrets, reader=roles.execution.name) if plan.secrets else None
    share = share_policy(plan.share) if plan.share else None
    cloudwatch.LogGroup(
        "logs",
        name=plan.log_group.name,
        retention_in_days=plan.log_group.retention_in_days,
        tags=plan.log_group.tags,
    )
    arns: dict[str, pulumi.Output[str]] = {}
    shared = Shared(
        security_group_id=network.security_group.id,
        instance_profile_arn=roles.instance_profile.arn,
        service_role_arn=roles.batch_service.arn if roles.batch_service else None,
        spot_fleet_role_arn=roles.spot_fleet.arn if roles.spot_fleet else None,
        scheduling_policy_arn=share.arn if share else None,
        after=[*roles.attachments, network.egress, network.ingress],
    )
    for type_plan in plan.types:
        built = TypeQueues(type_plan, shared)
        arns |= {name: queue.arn for name, queue in built.queues.items()}

    def document(known: dict[str, Any]) -> dict[str, Any]:
        fleet = fleet_document(
            plan,
            roles=(known["job"], known["execution"]),
            arns=known["arns"],
            secret_arns=known["secrets"],
        )
        return fleet_to_builtins(fleet)

    outputs = {
        "job": roles.job.arn,
        "execution": roles.execution.arn,
        "arns": arns,
        "secrets": vault.arns if vault else {},
    }
    return pulumi.Output.from_input(outputs).apply(document)
