"""Pulumi component: what machines, jobs, and the agent that starts jobs may do."""

from __future__ import annotations

import pulumi
from pulumi_aws import iam

from infra.plans import RolePlan, RolesPlan


class Roles(pulumi.ComponentResource):
    """`instance_profile`, `job`, `execution`, and where the plan has them `batch_service` and
    `spot_fleet`; `attachments` are what makes them work.

    Whatever uses a role depends on the attachments: on the way down Batch still needs them to
    take its machines apart.
    """

    def __init__(self, plan: RolesPlan, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("runfleet:infra:Roles", "roles", None, opts)
        self.attachments: list[iam.RolePolicyAttachment] = []
        self.instance = self._role(plan.instance)
        self.job = self._role(plan.job)
        self.execution = self._role(plan.execution)
        self.batch_service = self._role(plan.batch_service) if plan.batch_service else None
        self.spot_fleet = self._role(plan.spot_fleet) if plan.spot_fleet else None
        self.instance_profile = iam.InstanceProfile(
            "instance-profile",
            name_prefix=plan.instance.name_prefix,
            path=plan.instance.path,
            role=self.instance.name,
            tags=plan.instance.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"jobRoleArn": self.job.arn, "executionRoleArn": self.execution.arn})

    def _role(self, plan: RolePlan) -> iam.Role:
        child = pulumi.ResourceOptions(parent=self)
        role = iam.Role(
            plan.resource_name,
            name_prefix=plan.name_prefix,
            path=plan.path,
            permissions_boundary=plan.permissions_boundary,
            description=plan.description,
            assume_role_policy=plan.assume_role_policy,
            tags=plan.tags,
            opts=child,
        )
        for arn in plan.managed_policy_arns:
            policy = arn.rpartition("/")[2]
            attachment = iam.RolePolicyAttachment(
                f"{plan.resource_name}-{policy}", role=role.name, policy_arn=arn, opts=child
            )
            self.attachments.append(attachment)
        return role
