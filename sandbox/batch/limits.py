"""AWS Batch's limits, one row each, with where AWS documents it. Pure.

`seen` is the day on which the real service was seen to enforce the row, None where only its
documentation says so.
"""

from __future__ import annotations

from typing import NamedTuple

from sandbox.batch.errors import ClientError


class Limit(NamedTuple):
    """`what` may be `at_least`…`at_most`."""

    what: str
    at_most: int
    at_least: int = 0
    source: str = ""
    seen: str | None = None

    def check(self, value: int, where: str = "") -> None:
        """Raises ClientError when `value` is outside."""
        if not self.at_least <= value <= self.at_most:
            raise ClientError(
                f"Error executing request, Exception : {where or self.what} is {value}: "
                f"{self.what} must be between {self.at_least} and {self.at_most}",
                rule=self.what,
            )


_QUOTAS = "User Guide, Service quotas"
_API = "API Reference, "

COMPUTE_ENVIRONMENTS = Limit("compute environments per Region", 50, source=_QUOTAS)
JOB_QUEUES = Limit("job queues per Region", 50, source=_QUOTAS)
ENVIRONMENTS_PER_QUEUE = Limit("compute environments per job queue", 3, 1, source=_QUOTAS)
ARRAY_SIZE = Limit("array size", 10_000, 2, source=_API + "ArrayProperties")
NODES = Limit("nodes of a multi-node job", 1000, 1, source="User Guide, Multi-node parallel jobs")
NODE_GROUPS = Limit("node groups of a multi-node job", 5, 1, source="User Guide, Node groups")
TASKS = Limit("tasks of ecsProperties", 1, 1, source=_API + "EcsProperties")
CONTAINERS = Limit("containers per task", 10, 1, source=_API + "EcsProperties")
CONTAINER_TIMEOUT_S = Limit(
    "startTimeout and stopTimeout", 2**31 - 1, 2, source=_API + "TaskContainerProperties"
)
DEPENDENCIES = Limit("dependencies per job", 20, source=_API + "SubmitJob, dependsOn")
DEFINITION_BYTES = Limit("job definition size in bytes", 24 * 1024, source=_QUOTAS)
PAYLOAD_BYTES = Limit("SubmitJob payload in bytes", 30 * 1024, source=_QUOTAS)
OVERRIDES = Limit(
    "characters of container overrides", 8192, source="ECS API Reference, RunTask, overrides"
)
EC2_CONFIGURATIONS = Limit("items of ec2Configuration", 2, source=_API + "ComputeResource")
LAUNCH_TEMPLATE_OVERRIDES = Limit(
    "overrides of a launch template", 10, source=_API + "LaunchTemplateSpecification"
)
ATTEMPTS = Limit("retry attempts", 10, 1, source=_API + "RetryStrategy")
EVALUATE_ON_EXIT = Limit("evaluateOnExit rules", 5, source=_API + "RetryStrategy")
CONDITION = Limit("characters of a condition", 512, 1, source=_API + "EvaluateOnExit")
IMAGE = Limit("characters of an image", 255, 1, source=_API + "ContainerProperties")
REASON = Limit("characters of a reason", 1024, source=_API + "TerminateJob, CancelJob")
TIMEOUT_S = Limit("attemptDurationSeconds", 2**31 - 1, 60, source=_API + "JobTimeout")
EFS_PORT = Limit("transitEncryptionPort", 65_535, source=_API + "EFSVolumeConfiguration")
EFS_ROOT = Limit("characters of rootDirectory", 4096, source=_API + "EFSVolumeConfiguration")
DESCRIBE_JOBS = Limit("jobs per DescribeJobs call", 100, source=_API + "DescribeJobs")
DESCRIBE_DEFINITIONS = Limit(
    "job definitions per call", 100, source=_API + "DescribeJobDefinitions, jobDefinitions"
)
BULK_JOBS = Limit("jobs per bulk call", 50, source=_API + "TerminateJobs")
MEMORY_MIB = Limit("memory in MiB", 2**31 - 1, 4, source=_API + "ResourceRequirement")
VCPUS = Limit("vCPUs", 2**31 - 1, 1, source=_API + "ResourceRequirement")
GPUS = Limit("GPUs", 2**31 - 1, 1, source=_API + "ResourceRequirement")
TAGS = Limit("tags per resource", 50, source="User Guide, Tag restrictions")
PRIORITY = Limit("job queue priority", 1000, source=_API + "CreateJobQueue")
SCALE_DOWN_DELAY_MINUTES = Limit(
    "minScaleDownDelayMinutes", 10_080, 20, source=_API + "ComputeScalingPolicy"
)
BID_PERCENTAGE = Limit("bidPercentage", 100, source=_API + "ComputeResource")
STATE_TIME_LIMIT_S = Limit(
    "jobStateTimeLimitActions.maxTimeSeconds", 86_400, 600, source=_API + "JobStateTimeLimitAction"
)
SHARE_DECAY_S = Limit("shareDecaySeconds", 604_800, source=_API + "FairsharePolicy")
COMPUTE_RESERVATION = Limit("computeReservation", 99, source=_API + "FairsharePolicy")
SHARES = Limit("shares of a scheduling policy", 500, source=_API + "FairsharePolicy")
ACTIVE_SHARES = Limit("active share identifiers of a queue", 500, 1, source=_API + "CreateJobQueue")
SCHEDULING_PRIORITY = Limit("schedulingPriority", 9999, source=_API + "SubmitJob")
LIST_PAGE = Limit("ListJobs maxResults", 1000, 1, source=_API + "ListJobs")
LIST_PAGE_FILTERED = Limit("ListJobs maxResults with a filter", 100, 1, source=_API + "ListJobs")
SNAPSHOT_JOBS = Limit("jobs in a queue's snapshot", 100, source=_API + "GetJobQueueSnapshot")
DESCRIBE_PAGE = Limit("maxResults", 100, 1, source=_API + "DescribeJobDefinitions")

NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"
"""Names of jobs, definitions, queues and environments (API Reference, SubmitJob, jobName)."""
