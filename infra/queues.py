"""Pulumi component: the compute environments and job queues of one instance type."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pulumi
from pulumi_aws import batch, ec2

from infra.plans import ComputePlan, QueuePlan, SharePlan, TypePlan

DELETE_TIMEOUT = "2h"
"""Of a queue. Batch ends the jobs in it at about 16 a second (API reference, DeleteJobQueue): the
provider's 10 minutes are too short for an array of 10,000."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What the queues of all types use."""

    security_group_id: pulumi.Input[str]
    instance_profile_arn: pulumi.Input[str]
    service_role_arn: pulumi.Input[str] | None
    spot_fleet_role_arn: pulumi.Input[str] | None
    scheduling_policy_arn: pulumi.Input[str] | None
    after: Sequence[pulumi.Resource]
    """Has to exist before the first machine starts and until the last one is gone."""


class TypeQueues(pulumi.ComponentResource):
    """`queues` by logical name. Adding or taking away one touches no other instance type."""

    def __init__(
        self,
        plan: TypePlan,
        shared: Shared,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("runfleet:infra:TypeQueues", plan.instance_type, None, opts)
        environments = {
            compute.name: self._environment(compute, shared).arn for compute in plan.compute
        }
        self.queues = {
            queue.name: self._queue(queue, shared, [environments[n] for n in queue.compute])
            for queue in plan.queues
        }
        self.register_outputs({name: queue.arn for name, queue in self.queues.items()})

    def _environment(self, plan: ComputePlan, shared: Shared) -> batch.ComputeEnvironment:
        template = self._launch_template(plan)
        return batch.ComputeEnvironment(
            plan.name,
            name_prefix=plan.environment_name_prefix,
            type="MANAGED",
            state="ENABLED",
            # Unset in most fleets: with Batch's own service-linked role it updates in place.
            service_role=shared.service_role_arn if plan.service_role else None,
            # No desired_vcpus: that is Batch's to move.
            compute_resources={
                "type": plan.market,
                "allocation_strategy": plan.allocation_strategy,
                "bid_percentage": plan.bid_percentage,
                "min_vcpus": 0,
                "max_vcpus": plan.max_vcpus,
                "instance_types": [plan.instance_type],
                "instance_role": shared.instance_profile_arn,
                "spot_iam_fleet_role": (
                    shared.spot_fleet_role_arn if plan.spot_fleet_role else None
                ),
                "security_group_ids": [shared.security_group_id],
                "subnets": list(plan.subnet_ids),
                "ec2_configurations": [
                    {"image_type": plan.image_type, "image_id_override": plan.image_id}
                ],
                "launch_template": {
                    "launch_template_id": template.id,
                    # A number, so that a new version shows in the plan; $Latest would not.
                    "version": template.latest_version.apply(str),
                },
            },
            update_policy={
                "terminate_jobs_on_update": False,
                "job_execution_timeout_minutes": plan.job_execution_timeout_minutes,
            },
            tags=plan.tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(shared.after),
                # Batch refuses to put another role in the place of its service-linked one.
                replace_on_changes=["serviceRole"],
            ),
        )

    def _launch_template(self, plan: ComputePlan) -> ec2.LaunchTemplate:
        return ec2.LaunchTemplate(
            plan.name,
            name_prefix=plan.template_name_prefix,
            description="Machines of a runfleet fleet",
            # Jobs share the machine's network: one hop reaches them, none beyond.
            metadata_options={
                "http_endpoint": "enabled",
                "http_tokens": "required",
                "http_put_response_hop_limit": 1,
            },
            block_device_mappings=[
                {
                    "device_name": plan.root_device,
                    "ebs": {
                        "volume_size": plan.root_volume_gib,
                        "volume_type": "gp3",
                        "encrypted": "true",
                        "delete_on_termination": "true",
                    },
                }
            ],
            user_data=plan.user_data,
            tag_specifications=[
                {"resource_type": kind, "tags": plan.tags} for kind in ("instance", "volume")
            ],
            tags=plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _queue(
        self, plan: QueuePlan, shared: Shared, environments: list[pulumi.Output[str]]
    ) -> batch.JobQueue:
        return batch.JobQueue(
            plan.resource_name,
            name=plan.fixed_name,
            state="ENABLED",
            priority=plan.priority,
            scheduling_policy_arn=shared.scheduling_policy_arn if plan.fair_share else None,
            compute_environment_orders=[
                {"order": order, "compute_environment": arn}
                for order, arn in enumerate(environments, start=1)
            ],
            job_state_time_limit_actions=[
                {
                    "action": "CANCEL",
                    "state": "RUNNABLE",
                    "reason": limit.reason,
                    "max_time_seconds": limit.max_time_seconds,
                }
                for limit in plan.time_limits
            ],
            timeouts={"delete": DELETE_TIMEOUT},
            tags=plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )


def share_policy(plan: SharePlan) -> batch.SchedulingPolicy:
    """How all queues of the stack share their machines."""
    return batch.SchedulingPolicy(
        plan.resource_name,
        fair_share_policy={
            "share_decay_seconds": plan.share_decay_seconds,
            "compute_reservation": plan.compute_reservation,
            "share_distributions": [
                {"share_identifier": share, "weight_factor": weight}
                for share, weight in plan.weights.items()
            ],
        },
        tags=plan.tags,
    )
