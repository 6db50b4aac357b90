"""What stands in the account already. Speaks boto3: Pulumi's provider has no call that lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from infra.capacity import Machines, Standing, StandingEnvironment, StandingQueue
from infra.ending import Jobs, count

WAITING = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING")
ROLE_KEYS = ("aws:assumeRole", "aws:assumeRoles", "aws:assumeRoleWithWebIdentity")


class NotCounted(Exception):
    """Why the account could not be looked at; the fleet can be built all the same."""


class Look:
    """The account through boto3, with the credentials that Pulumi's provider has.

    Raises NotCounted where they would be others.
    """

    def __init__(self, config: Mapping[str, str], *, account: str, region: str) -> None:
        import boto3  # noqa: PLC0415 # a third of a second

        role = next((key for key in ROLE_KEYS if config.get(key)), None)
        if role:
            raise NotCounted(f"the provider works with a role of its own ({role})")
        self._session = _answered(
            lambda: boto3.session.Session(
                aws_access_key_id=config.get("aws:accessKey"),
                aws_secret_access_key=config.get("aws:secretKey"),
                aws_session_token=config.get("aws:token"),
                profile_name=config.get("aws:profile"),
                region_name=region,
            )
        )
        caller = _answered(lambda: self._client("sts").get_caller_identity())
        if caller["Account"] != account:
            raise NotCounted(
                f"boto3's credentials are of account {caller['Account']}, the provider's of {account}"
            )

    def standing(self, stack: str) -> Standing:
        """All compute environments and queues: a call for each hundred of them, and one for each
        compute environment of the stack that Batch can not change in place.
        """
        environments = self._pages("describe_compute_environments", "computeEnvironments")
        queues = self._pages("describe_job_queues", "jobQueues")
        return Standing(
            environments=tuple(
                self._environment(e, stack) for e in environments if e["status"] != "DELETED"
            ),
            queues=tuple(
                StandingQueue(
                    name=q["jobQueueName"],
                    fair_share=bool(q.get("schedulingPolicyArn")),
                    **_whose(q),
                )
                for q in queues
                if q["status"] != "DELETED"
            ),
        )

    def jobs(self, queues: Iterable[str]) -> dict[str, list[Jobs]]:
        """For each queue, by its name or ARN, the jobs that are not over; those with none not.

        Five calls a queue, and one more for each thousand jobs.
        """
        found = {}
        for queue in queues:
            counts = [
                count(
                    status,
                    self._pages("list_jobs", "jobSummaryList", jobQueue=queue, jobStatus=status),
                )
                for status in WAITING
            ]
            if any(jobs.jobs for jobs in counts):
                found[queue] = [jobs for jobs in counts if jobs.jobs]
        return found

    def _environment(self, detail: Mapping[str, Any], stack: str) -> StandingEnvironment:
        found = _environment(detail)
        template = detail.get("computeResources", {}).get("launchTemplate")
        if found.stack != stack or found.in_place or not template:
            return found
        versions = _answered(
            lambda: self._client("ec2").describe_launch_template_versions(
                LaunchTemplateId=template["launchTemplateId"], Versions=[template["version"]]
            )
        )["LaunchTemplateVersions"]
        machines = _machines(detail["computeResources"], versions[0]["LaunchTemplateData"])
        return msgspec.structs.replace(found, machines=machines)

    def _pages(self, call: str, member: str, **request: Any) -> list[dict[str, Any]]:
        paginator = self._client("batch").get_paginator(call)
        items: list[dict[str, Any]] = _answered(
            lambda: [item for page in paginator.paginate(**request) for item in page[member]]
        )
        return items

    def _client(self, service: str) -> Any:
        return self._session.client(service)


def _environment(detail: Mapping[str, Any]) -> StandingEnvironment:
    resources = detail.get("computeResources", {})
    return StandingEnvironment(
        name=detail["computeEnvironmentName"],
        allocation_strategy=resources.get("allocationStrategy", ""),
        own_service_role="/aws-service-role/" not in detail.get("serviceRole", ""),
        spot_fleet_role=bool(resources.get("spotIamFleetRole")),
        machines=None,
        **_whose(detail),
    )


def _machines(resources: Mapping[str, Any], template: Mapping[str, Any]) -> Machines:
    (root, *_) = template.get("BlockDeviceMappings") or [{}]
    image = next(iter(resources.get("ec2Configuration") or [{}]))
    tags = [s["Tags"] for s in template.get("TagSpecifications", ()) if s.get("Tags")]
    return Machines(
        subnet_ids=frozenset(resources.get("subnets", ())),
        # Batch has 0 for one that was set and is no more; both are the whole price.
        bid_percentage=resources.get("bidPercentage") or 100,
        image_id=image.get("imageIdOverride"),
        instance_profile_arn=resources.get("instanceRole", ""),
        root_device=root.get("DeviceName", ""),
        root_volume_gib=root.get("Ebs", {}).get("VolumeSize", 0),
        user_data=template.get("UserData"),
        tags={tag["Key"]: tag["Value"] for tag in next(iter(tags), ())},
    )


def _whose(detail: Mapping[str, Any]) -> dict[str, str]:
    tags = detail.get("tags", {})
    return {"stack": tags.get("stack", ""), "queue": tags.get("queue", "")}


def _answered(call: Any) -> Any:
    """What the call answers. Raises NotCounted with the reason."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # with boto3

    try:
        return call()
    except (BotoCoreError, ClientError) as err:
        raise NotCounted(str(err)) from err
