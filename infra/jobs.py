"""Pulumi resource: tells, before its queues are destroyed, which jobs end (infra.jobs_plugin)."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from infra.plans import FleetPlan


class EndingJobs(pulumi.CustomResource):
    """Stands on all queues of the stack, and so is the first to be taken away."""

    def __init__(
        self,
        plan: FleetPlan,
        queues: Mapping[str, pulumi.Input[str]],
        *,
        profile: str | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`queues` are ARNs by name; `profile` is the one of the AWS provider."""
        properties = {
            "account": plan.account,
            "region": plan.region,
            "config": {"aws:profile": profile} if profile else {},
            "queues": dict(queues),
        }
        super().__init__("runfleet-jobs:index:EndingJobs", "jobs", properties, opts)
