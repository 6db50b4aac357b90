"""Pulumi components: the fleet document for people without Pulumi, and what lets them submit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi_aws import iam, ssm

from infra.plans import PublishingPlan, SubmittersPlan
from infra.rights import may_submit


class Publishing(pulumi.ComponentResource):
    """The parts of the document as SSM parameters, each of what it tells alone: a new queue
    touches no other parameter.
    """

    def __init__(
        self,
        plan: PublishingPlan,
        parts: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("runfleet:infra:Publishing", "publishing", None, opts)
        for name, text in parts.items():
            ssm.Parameter(
                name,
                name=f"{plan.path}/{name}",
                type="String",
                insecure_value=text,
                description="A part of the fleet document of a runfleet stack",
                tags=plan.tags_of(name),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({"path": plan.path})


def submitters_policy(
    plan: SubmittersPlan,
    *,
    roles: Sequence[pulumi.Input[str]],
    repository_arn: pulumi.Input[str] | None,
    bucket: tuple[pulumi.Input[str], str] | None,
) -> iam.Policy:
    """To be attached to the people, groups or roles that submit."""
    known: pulumi.Output[Any] = pulumi.Output.from_input(
        {"roles": list(roles), "repository": repository_arn, "bucket": bucket and bucket[0]}
    )
    return iam.Policy(
        "submitters",
        name_prefix=plan.name_prefix,
        path=plan.path,
        description="Submitting to the queues of a runfleet stack",
        policy=known.apply(
            lambda known: may_submit(
                plan.scope,
                roles=known["roles"],
                repository_arn=known["repository"],
                bucket=(known["bucket"], bucket[1]) if bucket else None,
            )
        ),
        tags=plan.tags,
    )
