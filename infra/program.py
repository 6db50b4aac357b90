"""The whole program: stack configuration to components to the exported fleet document."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi_aws import cloudwatch

from infra.catalog import parse_catalog
from infra.choices import choose
from infra.data import instance_types_csv
from infra.lookup import fetch_account
from infra.mistakes import Refused
from infra.network import Network
from infra.plan import FleetPlan, fleet_document, plan_fleet
from infra.queues import TypeQueues
from infra.roles import Roles
from infra.settings import read_settings
from submit.fleet import fleet_to_builtins


def planned_fleet(
    config: dict[str, str], *, secret_keys: frozenset[str], stack: str, project: str
) -> FleetPlan:
    """What to build. Raises Refused with every mistake that can be told without AWS, or, if
    there is none, with what AWS has against the settings; NoAnswer if AWS does not say.
    """
    settings, mistakes = read_settings(config, secret_keys=secret_keys)
    choices, impossible = choose(settings, parse_catalog(instance_types_csv()))
    if mistakes or impossible:
        raise Refused([*mistakes, *impossible])
    account = fetch_account(settings, [choice.instance_type.name for choice in choices])
    return plan_fleet(settings, choices, account, stack=stack, project=project)


def build_fleet(plan: FleetPlan) -> pulumi.Output[dict[str, Any]]:
    """Registers all resources of the plan; the fleet document once they stand."""
    network = Network(plan.network)
    roles = Roles(plan.roles)
    cloudwatch.LogGroup(
        "logs",
        name=plan.log_group.name,
        retention_in_days=plan.log_group.retention_in_days,
        tags=plan.log_group.tags,
    )
    arns: dict[str, pulumi.Output[str]] = {}
    for type_plan in plan.types:
        built = TypeQueues(
            type_plan,
            security_group_id=network.security_group.id,
            instance_profile_arn=roles.instance_profile.arn,
            after=[*roles.attachments, network.egress, network.ingress],
        )
        arns |= {name: queue.arn for name, queue in built.queues.items()}

    def document(known: dict[str, Any]) -> dict[str, Any]:
        fleet = fleet_document(plan, roles=(known["job"], known["execution"]), arns=known["arns"])
        return fleet_to_builtins(fleet)

    outputs = {"job": roles.job.arn, "execution": roles.execution.arn, "arns": arns}
    return pulumi.Output.from_input(outputs).apply(document)
