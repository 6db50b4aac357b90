"""The resource types, a file each or a few of a kind. A new one is a class, listed here."""

from __future__ import annotations

from sandbox.provider.kind import Kind
from sandbox.provider.kinds.buckets import (
    Bucket,
    BucketLifecycleConfiguration,
    BucketPolicy,
    BucketPublicAccessBlock,
    BucketServerSideEncryptionConfiguration,
    BucketVersioning,
)
from sandbox.provider.kinds.compute_environments import ComputeEnvironment
from sandbox.provider.kinds.instance_profiles import InstanceProfile
from sandbox.provider.kinds.job_queues import JobQueue
from sandbox.provider.kinds.launch_templates import LaunchTemplate
from sandbox.provider.kinds.log_groups import LogGroup
from sandbox.provider.kinds.managed_policies import Policy
from sandbox.provider.kinds.parameters import Parameter
from sandbox.provider.kinds.repositories import LifecyclePolicy, Repository
from sandbox.provider.kinds.role_policies import RolePolicy, RolePolicyAttachment
from sandbox.provider.kinds.roles import Role
from sandbox.provider.kinds.scheduling_policies import SchedulingPolicy
from sandbox.provider.kinds.secrets import Secret, SecretVersion
from sandbox.provider.kinds.security_group_rules import (
    SecurityGroupEgressRule,
    SecurityGroupIngressRule,
)
from sandbox.provider.kinds.security_groups import SecurityGroup

KINDS: tuple[Kind, ...] = (
    Bucket(),
    BucketLifecycleConfiguration(),
    BucketPolicy(),
    BucketPublicAccessBlock(),
    BucketServerSideEncryptionConfiguration(),
    BucketVersioning(),
    ComputeEnvironment(),
    InstanceProfile(),
    JobQueue(),
    LaunchTemplate(),
    LifecyclePolicy(),
    LogGroup(),
    Parameter(),
    Policy(),
    Repository(),
    Role(),
    RolePolicy(),
    RolePolicyAttachment(),
    SchedulingPolicy(),
    Secret(),
    SecretVersion(),
    SecurityGroup(),
    SecurityGroupEgressRule(),
    SecurityGroupIngressRule(),
)
BY_TOKEN = {kind.token: kind for kind in KINDS}
