"""What AWS Batch does beside its limits (limits.py): one row a rule, with where AWS says so. Pure.

The rows are enforced where they belong; each has a test that carries its name, and the tests and
this table are held against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Rule(NamedTuple):
    """`says` is true of the sandbox; `source` is where AWS documents it."""

    says: str
    source: str


RULES: Mapping[str, Rule] = {
    # compute environments
    "types exist": Rule(
        "instance types and families must exist", "API Reference, ComputeResource, instanceTypes"
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
    "own role stays": Rule(
        "the service-linked role and one's own do not replace each other",
        "API Reference, UpdateComputeEnvironment, serviceRole",
    ),
    # queues
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
    "conditions of exits": Rule(
        "conditions have their letters and need attempts; actions come in either case",
        "API Reference, EvaluateOnExit, RetryStrategy",
    ),
    "mounts": Rule(
        "volumes, EFS, tmpfs, shared memory and ulimits fit together",
        "API Reference, Volume, EFSVolumeConfiguration, LinuxParameters, Ulimit",
    ),
    # all resources
    "reserved tags": Rule("no tag begins with aws:", "User Guide, Tag restrictions"),
    "arns": Rule(
        "an ARN is of one kind, account and Region", "IAM User Guide, Amazon Resource Names"
    ),
    # jobs
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
    "pages": Rule(
        "ListJobs makes pages no longer than 1,000, with a filter 100, and takes a greater "
        "maxResults; a share and a status go together",
        "API Reference, ListJobs, maxResults, filters",
    ),
    "kept a week": Rule("jobs are kept a week after their end", "User Guide, Job states"),
    "no nodes on spot": Rule(
        "multi-node jobs do not run on SPOT", "User Guide, Multi-node parallel jobs"
    ),
    "main node": Rule(
        "the main node's end is the job's; it alone does not get the main node's address",
        "User Guide, Multi-node parallel jobs, Environment variables",
    ),
    "containers of a task": Rule(
        "one essential container's end ends the task", "API Reference, TaskContainerProperties"
    ),
}
