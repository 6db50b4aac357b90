"""Pulumi component: the team's secrets in Secrets Manager, for the execution role alone."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_aws import iam, secretsmanager

from infra.plans import SecretsPlan
from infra.rights import may_read_secrets


class Secrets(pulumi.ComponentResource):
    """`arns` by name. `policy` has to stand before a job with a secret starts."""

    def __init__(
        self,
        plan: SecretsPlan,
        values: Mapping[str, str],
        *,
        reader: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`reader` is the name of the role that may read them."""
        super().__init__("runfleet:infra:Secrets", "secrets", None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.arns: dict[str, pulumi.Output[str]] = {}
        for secret in plan.secrets:
            stored = secretsmanager.Secret(
                secret.name,
                name_prefix=secret.name_prefix,
                description="For the jobs of a runfleet fleet",
                # The value stands in the stack's file too; a secret that waits for its deletion
                # would outlive the stack.
                recovery_window_in_days=0,
                tags=secret.tags,
                opts=child,
            )
            secretsmanager.SecretVersion(
                secret.name,
                secret_id=stored.id,
                secret_string=pulumi.Output.secret(values[secret.name]),
                opts=child,
            )
            self.arns[secret.name] = stored.arn
        self.policy = iam.RolePolicy(
            "read-secrets",
            name_prefix=plan.policy_name_prefix,
            role=reader,
            policy=pulumi.Output.all(*self.arns.values()).apply(may_read_secrets),
            opts=child,
        )
        self.register_outputs({"names": list(self.arns)})
