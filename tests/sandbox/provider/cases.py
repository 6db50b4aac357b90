"""A resource of each type: how it is made, what is then updated and what replaces it.

Together the cases give every property that the provider takes.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from sandbox.testing import Running

from .case import Case, Inputs, allow
from .storage_cases import STORAGE_NAMES, StorageGround, storage_cases


class Ground:
    """What a case's resource stands on."""

    def __init__(self, sandbox: Running) -> None:
        ec2, iam = sandbox.client("ec2"), sandbox.client("iam")
        batch = sandbox.client("batch")
        subnets = ec2.describe_subnets()["Subnets"]
        self.subnets = sorted(subnet["SubnetId"] for subnet in subnets)
        self.vpc = subnets[0]["VpcId"]
        self.other_vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        groups = [
            ec2.create_security_group(GroupName=name, Description="-", VpcId=self.vpc)["GroupId"]
            for name in ("ground", "other-ground")
        ]
        self.group, self.other_group = groups
        self.prefix_list = ec2.create_managed_prefix_list(
            PrefixListName="ground", MaxEntries=1, AddressFamily="IPv4"
        )["PrefixList"]["PrefixListId"]
        for name, service in (
            ("ground", "ec2"),
            ("other-ground", "ec2"),
            ("ground-batch", "batch"),
            ("ground-fleet", "spotfleet"),
        ):
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust(service))
        self.profiles = []
        for name in ("ground", "other-ground"):
            made = iam.create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
            self.profiles.append(made["Arn"])
        self.account = sandbox.client("sts").get_caller_identity()["Account"]
        self.templates = [
            ec2.create_launch_template(
                LaunchTemplateName=name, LaunchTemplateData={"UserData": "aGk="}
            )["LaunchTemplate"]["LaunchTemplateId"]
            for name in ("ground", "other-ground")
        ]
        self.environments = []
        for name in ("ground", "other-ground"):
            made = batch.create_compute_environment(
                computeEnvironmentName=name,
                type="MANAGED",
                computeResources={
                    "type": "EC2",
                    "minvCpus": 0,
                    "maxvCpus": 4,
                    "instanceTypes": ["c5a.large"],
                    "subnets": self.subnets,
                    "securityGroupIds": [self.group],
                    "instanceRole": self.profiles[0],
                },
            )
            self.environments.append(made["computeEnvironmentArn"])
        self.storage = StorageGround(sandbox, self.environments[0])

    def role(self, name: str) -> str:
        return f"arn:aws:iam::{self.account}:role/{name}"


def trust(service: str, *, sid: str = "") -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": f"{service}.amazonaws.com"},
        "Action": "sts:AssumeRole",
    } | ({"Sid": sid} if sid else {})
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def cases(on: Ground) -> dict[str, Case]:
    """By a name for test reports."""
    return {
        **_rules(on),
        **storage_cases(on.storage),
        "environment": _environment(on),
        "environment with a service role": _old_environment(on),
        "queue": _queue(on),
        "group": Case(
            token="aws:ec2/securityGroup:SecurityGroup",
            inputs={"namePrefix": "fleet-", "description": "Machines", "vpcId": on.vpc},
            edits=({"tags": {"team": "rl"}}, {"tags": {"team": "dl", "stage": "1"}}, {"tags": {}}),
            replacing=(
                {"description": "Other"},
                {"vpcId": on.other_vpc},
                {"namePrefix": "other-"},
                {"region": "us-west-2"},
            ),
        ),
        "named group": Case(
            token="aws:ec2/securityGroup:SecurityGroup",
            inputs={"name": "fleet", "tags": {"team": "rl"}},
            edits=({},),
            gone=("tags",),
            replacing=({"name": "other"},),
        ),
        "template": _template(),
        "named template": Case(
            token="aws:ec2/launchTemplate:LaunchTemplate",
            inputs={"name": "fleet"},
            replacing=({"name": "other"},),
        ),
        "role": Case(
            token="aws:iam/role:Role",
            inputs={
                "namePrefix": "fleet-",
                "assumeRolePolicy": trust("ec2"),
                "description": "Machines",
                "path": "/teams/",
                "forceDetachPolicies": True,
                "permissionsBoundary": "arn:aws:iam::aws:policy/ReadOnlyAccess",
                "tags": {"team": "rl"},
            },
            edits=(
                {"assumeRolePolicy": trust("ec2", sid="Again")},
                {"description": "Agents"},
                {"maxSessionDuration": 7200},
                {"tags": {"stage": "1"}},
                {},
            ),
            gone=("permissionsBoundary", "description"),
            replacing=({"path": "/"}, {"namePrefix": "other-"}),
        ),
        "named role": Case(
            token="aws:iam/role:Role",
            inputs={"name": "fleet", "assumeRolePolicy": trust("ec2")},
            replacing=({"name": "other"},),
        ),
        "inline policy": Case(
            token="aws:iam/rolePolicy:RolePolicy",
            inputs={"namePrefix": "secrets-", "role": "ground", "policy": allow("s3:GetObject")},
            edits=({"policy": allow("s3:PutObject")},),
            replacing=({"role": "other-ground"}, {"namePrefix": "other-"}),
        ),
        "named inline policy": Case(
            token="aws:iam/rolePolicy:RolePolicy",
            inputs={"name": "secrets", "role": "ground", "policy": allow("s3:GetObject")},
            replacing=({"name": "other"},),
        ),
        "attachment": Case(
            token="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
            inputs={"role": "ground", "policyArn": "arn:aws:iam::aws:policy/ReadOnlyAccess"},
            replacing=(
                {"role": "other-ground"},
                {"policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"},
            ),
        ),
        "profile": Case(
            token="aws:iam/instanceProfile:InstanceProfile",
            inputs={"namePrefix": "fleet-", "role": "ground", "path": "/teams/"},
            edits=({"role": "other-ground"}, {"tags": {"team": "rl"}}, {"tags": {}}, {}),
            gone=("role",),
            replacing=({"path": "/"},),
        ),
        "named profile": Case(
            token="aws:iam/instanceProfile:InstanceProfile",
            inputs={"name": "fleet"},
            edits=({"role": "ground"},),
            replacing=({"name": "other"},),
        ),
        "log group": Case(
            token="aws:cloudwatch/logGroup:LogGroup",
            inputs={"name": "/fleet/jobs", "retentionInDays": 30, "tags": {"team": "rl"}},
            edits=({"retentionInDays": 7}, {"tags": {"stage": "1"}}, {"skipDestroy": False}, {}),
            gone=("retentionInDays",),
            replacing=({"name": "/fleet/other"}, {"region": "us-west-2"}),
        ),
        "log group with a prefix": Case(
            token="aws:cloudwatch/logGroup:LogGroup",
            inputs={"namePrefix": "/fleet/"},
            replacing=({"namePrefix": "/other/"},),
        ),
    }


CASE_NAMES = (
    "environment",
    "environment with a service role",
    "queue",
    "group",
    "named group",
    "egress",
    "egress of a port",
    "egress of a prefix list",
    "egress of a group",
    "ingress",
    "ingress of a port",
    "ingress of a prefix list",
    "ingress of a group",
    "template",
    "named template",
    "role",
    "named role",
    "inline policy",
    "named inline policy",
    "attachment",
    "profile",
    "named profile",
    "log group",
    "log group with a prefix",
    *STORAGE_NAMES,
)


def _rules(on: Ground) -> dict[str, Case]:
    """The same of both directions."""
    found: dict[str, Case] = {}
    for way in ("egress", "ingress"):
        token = f"aws:vpc/securityGroup{way.title()}Rule:SecurityGroup{way.title()}Rule"
        whole = {"securityGroupId": on.group, "ipProtocol": "-1"}
        port = {"securityGroupId": on.group, "ipProtocol": "tcp", "fromPort": 22, "toPort": 23}
        found |= {
            way: Case(
                token=token,
                inputs=whole
                | {"cidrIpv4": "10.0.0.0/8", "description": "All", "tags": {"team": "rl"}},
                edits=({"description": "Everything"}, {"tags": {"team": "dl"}}),
                replacing=({"securityGroupId": on.other_group}, {"region": "us-west-2"}),
            ),
            f"{way} of a port": Case(
                token=token,
                inputs=port | {"cidrIpv6": "2001:db8::/32"},
                edits=({"toPort": 24}, {"fromPort": 21}),
            ),
            f"{way} of a prefix list": Case(
                token=token, inputs=port | {"prefixListId": on.prefix_list}
            ),
            f"{way} of a group": Case(
                token=token,
                inputs=whole | {"referencedSecurityGroupId": on.group, "description": "Nodes"},
            ),
        }
    return found


def _resources(on: Ground) -> Inputs:
    return {
        "type": "SPOT",
        "allocationStrategy": "SPOT_PRICE_CAPACITY_OPTIMIZED",
        "bidPercentage": 80,
        "minVcpus": 0,
        "maxVcpus": 16,
        "instanceTypes": ["c6g.medium"],
        "instanceRole": on.profiles[0],
        "securityGroupIds": [on.group],
        "subnets": on.subnets[:2],
        "ec2Configurations": [{"imageType": "ECS_AL2023"}],
        "launchTemplate": {"launchTemplateId": on.templates[0], "version": "1"},
        "tags": {"team": "rl"},
    }


def _environment(on: Ground) -> Case:
    inside = _resources(on)

    def with_(**changes: Any) -> Inputs:
        changed = {k: v for k, v in (inside | changes).items() if v is not None}
        return {"computeResources": changed}

    return Case(
        token="aws:batch/computeEnvironment:ComputeEnvironment",
        inputs={
            "namePrefix": "fleet-",
            "type": "MANAGED",
            "state": "ENABLED",
            "computeResources": inside,
            "updatePolicy": {"terminateJobsOnUpdate": False, "jobExecutionTimeoutMinutes": 360},
            "tags": {"team": "rl"},
        },
        edits=(
            with_(maxVcpus=32),
            with_(bidPercentage=90),
            with_(bidPercentage=None),
            with_(instanceTypes=["c6g.large"]),
            with_(subnets=on.subnets[1:3]),
            with_(securityGroupIds=[on.group, on.other_group]),
            with_(instanceRole=on.profiles[1]),
            with_(allocationStrategy="SPOT_CAPACITY_OPTIMIZED"),
            with_(tags={"team": "dl"}),
            with_(launchTemplate={"launchTemplateName": "other-ground"}),
            with_(ec2KeyPair="key"),
            with_(imageId="ami-12345678"),
            with_(
                ec2Configurations=[{"imageType": "ECS_AL2023", "imageIdOverride": "ami-12345678"}],
            ),
            with_(minVcpus=1, desiredVcpus=1),
            {"state": "DISABLED"},
            {"updatePolicy": {"terminateJobsOnUpdate": True, "jobExecutionTimeoutMinutes": 60}},
            {"tags": {"stage": "1"}},
        ),
        replacing=(
            {"type": "UNMANAGED"},
            {"namePrefix": "other-"},
            {"region": "us-west-2"},
            with_(allocationStrategy="BEST_FIT"),
            with_(spotIamFleetRole=on.role("ground-fleet")),
            with_(placementGroup="close"),
            with_(launchTemplate=None),
            with_(ec2Configurations=None),
        ),
    )


def _old_environment(on: Ground) -> Case:
    """What can't be updated in place, for it has a role of its own."""
    inside = _resources(on) | {
        "allocationStrategy": "BEST_FIT",
        "spotIamFleetRole": on.role("ground-fleet"),
    }
    return Case(
        token="aws:batch/computeEnvironment:ComputeEnvironment",
        inputs={
            "name": "fleet",
            "type": "MANAGED",
            "computeResources": inside,
            "serviceRole": on.role("ground-batch"),
        },
        edits=(
            {"computeResources": inside | {"maxVcpus": 32}},
            {"computeResources": inside | {"minVcpus": 1, "desiredVcpus": 1}},
        ),
        replacing=(
            {"name": "other"},
            *(
                {"computeResources": inside | change}
                for change in (
                    {"bidPercentage": 90},
                    {"instanceTypes": ["c6g.large"]},
                    {"subnets": on.subnets[1:3]},
                    {"securityGroupIds": [on.other_group]},
                    {"instanceRole": on.profiles[1]},
                    {"tags": {}},
                    {"launchTemplate": {"launchTemplateId": on.templates[0], "version": "2"}},
                    {"allocationStrategy": "SPOT_CAPACITY_OPTIMIZED"},
                )
            ),
        ),
    )


def _queue(on: Ground) -> Case:
    limit = {
        "action": "CANCEL",
        "state": "RUNNABLE",
        "reason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
        "maxTimeSeconds": 600,
    }
    first, second = on.environments
    return Case(
        token="aws:batch/jobQueue:JobQueue",
        inputs={
            "name": "fleet",
            "priority": 1,
            "state": "ENABLED",
            "computeEnvironmentOrders": [{"order": 1, "computeEnvironment": first}],
            "jobStateTimeLimitActions": [limit],
            "timeouts": {"delete": "2h"},
        },
        edits=(
            {"priority": 2},
            {"timeouts": {"create": "20m", "update": "20m", "delete": "1h"}},
            {
                "computeEnvironmentOrders": [
                    {"order": 1, "computeEnvironment": second},
                    {"order": 2, "computeEnvironment": first},
                ]
            },
            {"jobStateTimeLimitActions": [limit | {"maxTimeSeconds": 700}]},
            {"state": "DISABLED"},
            {"tags": {"team": "rl"}},
            {},
        ),
        gone=("jobStateTimeLimitActions",),
        replacing=({"name": "other"}, {"region": "us-west-2"}),
    )


def _template() -> Case:
    def data(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    disk = {
        "volumeSize": 100,
        "volumeType": "gp3",
        "encrypted": "true",
        "deleteOnTermination": "true",
        "iops": 3000,
        "throughput": 125,
    }
    return Case(
        token="aws:ec2/launchTemplate:LaunchTemplate",
        inputs={
            "namePrefix": "fleet-",
            "description": "Machines",
            "imageId": "ami-12345678",
            "userData": data("#!/bin/sh"),
            "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": disk}],
            "metadataOptions": {
                "httpEndpoint": "enabled",
                "httpTokens": "required",
                "httpPutResponseHopLimit": 1,
                "instanceMetadataTags": "enabled",
            },
            "tagSpecifications": [{"resourceType": "instance", "tags": {"team": "rl"}}],
            "tags": {"team": "rl"},
        },
        edits=(
            {"userData": data("#!/bin/bash")},
            {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": disk | {"iops": 4000}}]},
            {"metadataOptions": {"httpTokens": "optional"}},
            {"tagSpecifications": [{"resourceType": "volume", "tags": {"team": "dl"}}]},
            {"description": "Other machines"},
            {"updateDefaultVersion": True, "imageId": "ami-87654321"},
            {"tags": {"stage": "1"}},
            {},
        ),
        gone=("imageId", "description"),
        replacing=({"namePrefix": "other-"}, {"region": "us-west-2"}),
    )
