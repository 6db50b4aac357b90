"""What AWS Batch does beside its limits (limits.py): one row a rule, with where AWS says so. Pure.

The rows are enforced where they belong. No request is refused but by a row of one of the two tables,
which the answer names in a header; each row has a test that carries its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sandbox.batch.errors import ClientError


class Rule(NamedTuple):
    """`says` is true of the sandbox; `source` is where AWS documents it."""

    says: str
    source: str


RULES: Mapping[str, Rule] = {
    # any request
    "service model": Rule(
        "operations, members, types, enums, lengths, patterns and ranges are the service model's",
        "botocore, service-2.json of Batch, from which the API Reference is made",
    ),
    "legal names": Rule(
        "names have letters, digits, - and _, 128 at most, and begin with a letter or digit",
        "API Reference, CreateComputeEnvironment, CreateJobQueue, SubmitJob",
    ),
    "one of a name": Rule(
        "no two environments, queues or policies have one name",
        "API Reference, CreateComputeEnvironment, CreateJobQueue, CreateSchedulingPolicy",
    ),
    "what is named exists": Rule(
        "a queue, environment, definition, job or policy that is named must be there",
        "API Reference, Errors, ClientException",
    ),
    "pages": Rule(
        "a page's token is one that the page before has given; what is named comes in no pages",
        "API Reference, DescribeJobDefinitions, nextToken; seen: k1LoW/awspec#563",
    ),
    "rates": Rule(
        "SubmitJob takes 50 calls a second, others their own number; more are throttled",
        "User Guide, Service quotas; API Reference, Throttling",
    ),
    # compute environments
    "kinds of environments": Rule(
        "MANAGED has computeResources; UNMANAGED has unmanagedvCpus and a service role of its own",
        "API Reference, CreateComputeEnvironment",
    ),
    "resources": Rule(
        "EC2 and SPOT need types, subnets, minvCpus, an instance profile, and security groups unless a "
        "launch template may have them",
        "API Reference, ComputeResource; seen: the provider sends minvCpus 0 where none is given",
    ),
    "sizes": Rule(
        "minvCpus, desiredvCpus and maxvCpus are in this order, maxvCpus 1 at least",
        "API Reference, ComputeResource",
    ),
    "something to update": Rule(
        "an update says what is to change",
        "seen: hashicorp/terraform-provider-aws#43969",
    ),
    "service-linked for good": Rule(
        "the service-linked role and one's own do not replace each other",
        "API Reference, UpdateComputeEnvironment, serviceRole",
    ),
    "types exist": Rule(
        "instance types and families must exist", "API Reference, ComputeResource, instanceTypes"
    ),
    "types of Batch": Rule(
        "burstable types and some of the first generation are none",
        "seen: CreateComputeEnvironment's answer, Instance type can only be one of",
    ),
    "one architecture": Rule(
        "x86-64 and ARM types don't share an environment, nor the environments of a queue",
        "User Guide, Compute environments; API Reference, CreateJobQueue",
    ),
    "no GPU mix": Rule(
        "types with and without GPUs don't share an environment",
        "User Guide, Creating a GPU-based compute environment",
    ),
    "images fit": Rule(
        "image types fit the family; families that Batch has no image for need one's own",
        "API Reference, Ec2Configuration; User Guide, Amazon Linux 2023",
    ),
    "retired images": Rule(
        "Amazon Linux 1 and 2 make no new environment", "User Guide, AMI deprecation"
    ),
    "bid is for spot": Rule(
        "bidPercentage and the Spot strategies are for SPOT", "API Reference, ComputeResource"
    ),
    "best fit needs a fleet role": Rule(
        "SPOT with BEST_FIT needs spotIamFleetRole", "API Reference, ComputeResource"
    ),
    "invalid with a reason": Rule(
        "a role, profile, subnet, group or launch template that is wrong makes it INVALID later",
        "User Guide, INVALID compute environment",
    ),
    "trust": Rule(
        "roles must trust the service that assumes them", "User Guide, Batch IAM policies and roles"
    ),
    "update in place": Rule(
        "only sizes change in place without the service-linked role and a newer strategy",
        "User Guide, Updating compute environments",
    ),
    "infrastructure update": Rule(
        "another type, image or role makes new instances; jobs on the old ones have "
        "jobExecutionTimeoutMinutes, or none with terminateJobsOnUpdate, and are retried",
        "User Guide, Infrastructure updates",
    ),
    "no scaling down by hand": Rule(
        "desiredvCpus can't be lowered", "API Reference, ComputeResourceUpdate"
    ),
    "one change at a time": Rule(
        "what is being changed takes no other change", "User Guide, Compute environment status"
    ),
    "environment delete order": Rule(
        "an environment goes when DISABLED and in no queue",
        "API Reference, DeleteComputeEnvironment",
    ),
    "strategies": Rule(
        "the allocation strategy chooses among the types: the one that fits, the cheapest, the most "
        "likely to stay",
        "User Guide, Instance type allocation strategies",
    ),
    "sizes by themselves": Rule(
        "instances come as jobs need them and go when idle; minvCpus of them stay",
        "User Guide, Compute environment parameters, minvCpus; Compute resources scale down",
    ),
    "roles outlive": Rule(
        "an environment whose instance profile is gone stays, INVALID",
        "User Guide, INVALID compute environment",
    ),
    "most vCPUs": Rule(
        "newer strategies may exceed maxvCpus by one instance",
        "User Guide, Instance type allocation strategies",
    ),
    "created enabled": Rule(
        "an environment is created ENABLED", "API Reference, CreateComputeEnvironment, state"
    ),
    "bundles of types": Rule(
        "optimal, default_x86_64 and default_arm64 are families that Batch chooses from",
        "API Reference, ComputeResource, instanceTypes",
    ),
    "launch templates": Rule(
        "a launch template is named in one way; its overrides are for types of the environment, "
        "each for others",
        "API Reference, LaunchTemplateSpecification, LaunchTemplateSpecificationOverride",
    ),
    "groups from templates": Rule(
        "security groups come from securityGroupIds or the launch template",
        "API Reference, ComputeResource, securityGroupIds",
    ),
    "empty takes away": Rule(
        "an update to an empty value takes the member away", "API Reference, ComputeResourceUpdate"
    ),
    # queues
    "environments of a queue": Rule(
        "they are VALID, each once, and each has an order of its own",
        "API Reference, CreateJobQueue, computeEnvironmentOrder",
    ),
    "cancel only": Rule(
        "time limits of queues with compute environments cancel, and do not terminate",
        "API Reference, JobStateTimeLimitAction, action",
    ),
    "no overlap of shares": Rule(
        "no entry of a scheduling policy is, or begins, another", "API Reference, ShareAttributes"
    ),
    "queue delete order": Rule(
        "a queue goes when DISABLED; its jobs are terminated", "API Reference, DeleteJobQueue"
    ),
    "disabled queue": Rule("a DISABLED queue takes no jobs", "API Reference, CreateJobQueue"),
    "policy from the start": Rule(
        "a scheduling policy can be replaced, but not added to a queue nor deleted in use",
        "API Reference, UpdateJobQueue, DeleteSchedulingPolicy",
    ),
    "shares": Rule(
        "jobs of a fair-share queue need a share identifier, others must not have one",
        "API Reference, SubmitJob, shareIdentifier",
    ),
    "share identifiers": Rule(
        "letters and digits, with * behind them for all that begin so; weights from 0.0001 to 999.9999",
        "API Reference, ShareAttributes",
    ),
    "order of environments": Rule(
        "a job goes to the first environment of its queue that has room",
        "API Reference, CreateJobQueue, computeEnvironmentOrder",
    ),
    "turns of shares": Rule(
        "of a fair-share queue the share is next that has had least for its weight; within it the job "
        "of the highest priority, then the oldest",
        "User Guide, Fair-share scheduling policies",
    ),
    "stuck": Rule(
        "a job that can never fit stays RUNNABLE, with a reason that time limits know",
        "User Guide, Jobs stuck in a RUNNABLE status",
    ),
    "time limits": Rule(
        "a queue cancels what waits too long for such a reason",
        "API Reference, JobStateTimeLimitAction",
    ),
    "usable memory": Rule(
        "an instance has less than its nominal memory",
        "User Guide, Compute environment memory management",
    ),
    # definitions
    "kinds of definitions": Rule(
        "a container definition has containerProperties or ecsProperties, a multinode one "
        "nodeProperties",
        "API Reference, RegisterJobDefinition",
    ),
    "image and resources": Rule(
        "each container has an image, VCPU and MEMORY",
        "API Reference, ContainerProperties; User Guide, Job definition parameters",
    ),
    "resource requirements": Rule(
        "whole numbers, each type once", "API Reference, ResourceRequirement"
    ),
    "retry rules": Rule(
        "a rule of evaluateOnExit has a condition of the letters there are, * at its end alone, and RETRY "
        "or EXIT, in either case",
        "API Reference, EvaluateOnExit",
    ),
    "attempts given": Rule(
        "a retry strategy says how many attempts there are",
        "seen: the provider's TestAccBatchJobDefinition_emptyRetryStrategy; apache/airflow#35789",
    ),
    "reserved variables": Rule(
        "variables that begin with AWS_BATCH are AWS's own",
        "API Reference, ContainerProperties, environment",
    ),
    "no empty words": Rule(
        "no word of a command is empty", "API Reference, ContainerProperties, command"
    ),
    "roles are ARNs": Rule(
        "job and execution roles are named by ARN", "API Reference, ContainerProperties"
    ),
    "secrets need a role": Rule(
        "secrets need an execution role", "User Guide, Specifying sensitive data"
    ),
    "volumes": Rule(
        "each has a name of its own, a mount point names one of them, and what EFS needs is there",
        "API Reference, Volume, MountPoint, EFSVolumeConfiguration",
    ),
    "ulimits": Rule(
        "each of those there are once, the soft limit below the hard one", "API Reference, Ulimit"
    ),
    "Linux parameters": Rule(
        "maxSwap is 0 or more, swappiness 0 to 100; shared memory and tmpfs have a size",
        "API Reference, LinuxParameters, Tmpfs",
    ),
    "not on EC2": Rule(
        "what Fargate alone has is refused",
        "API Reference, ContainerProperties, EcsTaskProperties",
    ),
    "revision to deregister": Rule(
        "a revision is named, by name:revision or ARN", "API Reference, DeregisterJobDefinition"
    ),
    "new revisions": Rule(
        "each registration is another revision, of equal content too",
        "API Reference, RegisterJobDefinition",
    ),
    "latest active": Rule(
        "a bare name is the latest active revision; an inactive one takes no jobs",
        "API Reference, SubmitJob, jobDefinition; DeregisterJobDefinition",
    ),
    "inactive vanish": Rule(
        "inactive revisions vanish after 180 days, and their numbers stay used",
        "API Reference, DeregisterJobDefinition",
    ),
    # all resources
    "reserved tags": Rule("no tag begins with aws:", "User Guide, Tag restrictions"),
    "arns": Rule(
        "an ARN is of one kind, account and Region", "IAM User Guide, Amazon Resource Names"
    ),
    # jobs
    "states": Rule(
        "a job goes from state to state as the guide draws them, and what is over stays so",
        "User Guide, Job states",
    ),
    "variables": Rule(
        "a job finds its id, attempt, queue, environment, and its place in an array in variables",
        "User Guide, Job environment variables",
    ),
    "exit codes": Rule(
        "a job has its command's exit code: 128 and the number for a signal",
        "ECS Developer Guide, Exit codes of containers",
    ),
    "no exit code": Rule(
        "what never started, as of an image that can't be pulled, has no exit code",
        "User Guide, Troubleshooting; API Reference, ContainerDetail",
    ),
    "lost host": Rule(
        "a job whose instance is taken ends with Host EC2 (instance …) terminated",
        "User Guide, Automated job retries",
    ),
    "all conditions": Rule(
        "the first rule counts of which all conditions match; never more attempts than there are",
        "API Reference, EvaluateOnExit, RetryStrategy",
    ),
    "log streams": Rule(
        "each attempt has a stream of its own, which DescribeJobs names",
        "User Guide, Using CloudWatch Logs with AWS Batch",
    ),
    "log group": Rule(
        "a log group of one's own must be there when the job starts",
        "ECS Developer Guide, awslogs log driver",
    ),
    "TERM, then KILL": Rule(
        "what is to stop gets SIGTERM, and SIGKILL when it goes on",
        "User Guide, Job timeouts; ECS API Reference, StopTask",
    ),
    "seen late": Rule(
        "a job that was just submitted may not be described or listed yet",
        "API Reference, DescribeJobs, eventual consistency",
    ),
    "secrets of the role": Rule(
        "secrets come from where the execution role may read them, else the job does not start",
        "User Guide, Specifying sensitive data",
    ),
    "job role": Rule(
        "a job with a job role finds credentials for it", "User Guide, IAM roles for jobs"
    ),
    "a child fails": Rule(
        "one child that fails fails the array, once all are over", "User Guide, Array jobs"
    ),
    "one after the other": Rule(
        "SEQUENTIAL children run in turn, and the rest fails behind one that failed; N_TO_N children "
        "wait for their counterparts",
        "User Guide, Job dependencies",
    ),
    "tags propagate": Rule(
        "tags of a definition come to the jobs that propagate them",
        "API Reference, RegisterJobDefinition, propagateTags",
    ),
    "empty is none": Rule(
        "empty arrayProperties, overrides and timeout are as if they were left out",
        "seen: Airflow's operator for Batch sent empty arrayProperties with each job for years",
    ),
    "kinds of overrides": Rule(
        "overrides are of the definition's kind, and name containers that it has",
        "API Reference, SubmitJob, NodePropertyOverride, TaskPropertiesOverride",
    ),
    "parameters": Rule(
        "each Ref::name of a command has a parameter of that name",
        "User Guide, Job definition parameters, parameters",
    ),
    "dependencies": Rule(
        "SEQUENTIAL and N_TO_N are for arrays; SEQUENTIAL names no job, N_TO_N an array of the same "
        "size",
        "API Reference, JobDependency; User Guide, Job dependencies",
    ),
    "old overrides": Rule(
        "vcpus and memory override only what the definition says in the same old way",
        "API Reference, ContainerOverrides",
    ),
    "late overrides": Rule(
        "overrides that are too long fail the job after it was taken",
        "ECS API Reference, RunTask, overrides",
    ),
    "too many tags": Rule(
        "more than 50 tags to propagate fail the job", "API Reference, SubmitJob, propagateTags"
    ),
    "cancel": Rule(
        "CancelJob ends what waits, and does nothing to what has started",
        "API Reference, CancelJob",
    ),
    "terminate": Rule(
        "TerminateJob stops what runs; its reason is the job's", "API Reference, TerminateJob"
    ),
    "bulk": Rule(
        "bulk calls tell each fault by itself, with status 200", "API Reference, TerminateJobs"
    ),
    "array parent": Rule(
        "an array's parent is PENDING while its children run, and counts them",
        "User Guide, Array jobs",
    ),
    "timeout": Rule("a job that timed out is not retried", "User Guide, Job timeouts"),
    "no match retries": Rule(
        "where no evaluateOnExit rule matches, the job is retried",
        "API Reference, RetryStrategy",
    ),
    "listing": Rule(
        "ListJobs tells RUNNING jobs unless asked; a filter ignores the status and children",
        "API Reference, ListJobs",
    ),
    "pages of ListJobs": Rule(
        "ListJobs makes pages no longer than 1,000, with a filter 100, and takes a greater "
        "maxResults; a share and a status go together",
        "API Reference, ListJobs, maxResults, filters",
    ),
    "kept a week": Rule("jobs are kept a week after their end", "User Guide, Job states"),
    "no nodes on spot": Rule(
        "multi-node jobs do not run on SPOT", "User Guide, Multi-node parallel jobs"
    ),
    "spot notice": Rule(
        "an instance's metadata tells of its interruption before it comes",
        "EC2 User Guide, Spot Instance interruption notices",
    ),
    "an instance a node": Rule(
        "each node has an instance for itself, and all start or none",
        "User Guide, Multi-node parallel jobs",
    ),
    "all nodes again": Rule(
        "a retry is of all nodes; a child node's failure is not the job's",
        "User Guide, Multi-node parallel jobs",
    ),
    "node ranges": Rule(
        "the ranges cover all nodes, the main node is one of them, and each has one kind of properties",
        "API Reference, NodeProperties, NodeRangeProperty",
    ),
    "number of nodes": Rule(
        "it can be overridden where a range is open, as long as no range begins behind it",
        "API Reference, NodeOverrides, numNodes",
    ),
    "one type for all nodes": Rule(
        "all nodes have one instance type", "User Guide, Multi-node parallel jobs"
    ),
    "main node": Rule(
        "the main node's end is the job's; it alone does not get the main node's address",
        "User Guide, Multi-node parallel jobs, Environment variables",
    ),
    "containers of a task": Rule(
        "each has a name of its own; one or more are essential, and the end of one of these ends the "
        "task",
        "API Reference, TaskContainerProperties",
    ),
    "order of containers": Rule(
        "they wait for others of the task, in no circle; for the end only of such as are not essential",
        "API Reference, TaskContainerDependency",
    ),
    "modes": Rule("ipcMode and pidMode have the values of ECS", "API Reference, EcsTaskProperties"),
}


def refusal(rule: str, message: str) -> ClientError:
    """The answer to a request that breaks the rule; limits answer for themselves (limits.py)."""
    assert rule in RULES, rule
    return ClientError(message, rule=rule)


def unsupported(what: str) -> ClientError:
    """The answer to a request for what AWS has and the sandbox does not."""
    return ClientError(f"this sandbox does not have {what}")
