"""Pulumi component: the security group of a fleet's machines, in a VPC that exists already."""

from __future__ import annotations

import pulumi
from pulumi_aws import ec2, vpc

from infra.plans import NetworkPlan

EVERYTHING = "-1"


class Network(pulumi.ComponentResource):
    """`security_group`, and `egress`, without which no machine reaches ECS."""

    def __init__(self, plan: NetworkPlan, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("runfleet:infra:Network", "network", None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.security_group = ec2.SecurityGroup(
            "machines",
            name_prefix=plan.group_name_prefix,
            description="Machines of a runfleet fleet",
            vpc_id=plan.vpc_id,
            tags=plan.tags,
            opts=child,
        )
        # The provider takes away the rule that EC2 gives a new group.
        self.egress = vpc.SecurityGroupEgressRule(
            "machines-to-anywhere",
            security_group_id=self.security_group.id,
            ip_protocol=EVERYTHING,
            cidr_ipv4="0.0.0.0/0",
            description="Registries, ECS, logs, whatever jobs fetch",
            tags=plan.tags,
            opts=child,
        )
        self.ingress = vpc.SecurityGroupIngressRule(
            "machines-to-machines",
            security_group_id=self.security_group.id,
            referenced_security_group_id=self.security_group.id,
            ip_protocol=EVERYTHING,
            description="Nodes of one multi-node job",
            tags=plan.tags,
            opts=child,
        )
        self.register_outputs({"securityGroupId": self.security_group.id})
