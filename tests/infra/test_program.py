"""infra.program, its components and look-ups, and __main__, with a double in place of AWS.

The double gives back what it is given, so these tests look at shapes alone: what is registered,
under which name, and what is said when AWS has no answer. That AWS takes it is for the tests
that run the engine.
"""

from __future__ import annotations

import json
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest

from infra.catalog import parse_catalog
from infra.data import instance_types_csv
from infra.lookup import NoAnswer
from submit.fleet import fleet_from_parameters
from tests.sandbox.provider.declared import input_misfits

from .doubles import ONE_TYPE, Double, built

# pulumi_aws warns of resources of its own, which we do not use, when it loads its modules.
pytestmark = pytest.mark.filterwarnings(r"ignore:(aws\.)?(ec2|s3)[./]:DeprecationWarning")

ROOT = Path(__file__).resolve().parents[2]


def run_main() -> None:
    """__main__.py as the language host runs it, but that Ctrl-C still ends pytest in its way."""
    before = signal.getsignal(signal.SIGINT)
    try:
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")
    finally:
        signal.signal(signal.SIGINT, before)


def test_resources_of_one_type(account: Double) -> None:
    """A golden list: names are what a second `pulumi up` finds the resources by."""
    built(ONE_TYPE)
    assert sorted((typ, name) for typ, name, _ in account.made) == [
        ("aws:batch/computeEnvironment:ComputeEnvironment", "c6g-medium"),
        ("aws:batch/computeEnvironment:ComputeEnvironment", "c6g-medium-spot"),
        ("aws:batch/jobQueue:JobQueue", "rl-c6g-medium"),
        ("aws:batch/jobQueue:JobQueue", "rl-c6g-medium-spot"),
        ("aws:cloudwatch/logGroup:LogGroup", "logs"),
        ("aws:ec2/launchTemplate:LaunchTemplate", "c6g-medium"),
        ("aws:ec2/launchTemplate:LaunchTemplate", "c6g-medium-spot"),
        ("aws:ec2/securityGroup:SecurityGroup", "machines"),
        ("aws:iam/instanceProfile:InstanceProfile", "instance-profile"),
        ("aws:iam/role:Role", "execution-role"),
        ("aws:iam/role:Role", "instance-role"),
        ("aws:iam/role:Role", "job-role"),
        (
            "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
            "execution-role-AmazonECSTaskExecutionRolePolicy",
        ),
        (
            "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
            "instance-role-AmazonEC2ContainerServiceforEC2Role",
        ),
        ("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", "machines-to-anywhere"),
        ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "machines-to-machines"),
        ("runfleet-jobs:index:EndingJobs", "jobs"),
        ("runfleet:infra:Network", "network"),
        ("runfleet:infra:Roles", "roles"),
        ("runfleet:infra:TypeQueues", "c6g.medium"),
    ]


EVERYTHING = ONE_TYPE | {
    "runfleet:wandbApiKey": "hunter2",
    "runfleet:flex": "true",
    "runfleet:fairShare": "true",
    "runfleet:repository": "true",
    "runfleet:bucket": "true",
    "runfleet:publish": "true",
    "runfleet:submitters": "true",
    "runfleet:batchServiceRole": "true",
    "runfleet:spotFleetRole": "true",
}
KEPT = frozenset({"runfleet:wandbApiKey"})


def test_all_is_as_the_provider_declares_it(account: Double) -> None:
    """Each resource has what pulumi_aws requires, by its names and of its types, deep down."""
    built(EVERYTHING | {"runfleet:bucketExpiryDays": "7", "runfleet:spotBidPercentage": "50"}, KEPT)
    aws = [(token, name, inputs) for token, name, inputs in account.made if token[:4] == "aws:"]
    assert len({token for token, _, _ in aws}) >= 20
    for token, name, inputs in aws:
        plain = {key: _opened(value) for key, value in inputs.items()}
        assert input_misfits(token, plain) == [], f"{token} {name}"


def _opened(value: Any) -> Any:
    """A secret's value: on the wire it is wrapped."""
    wrapped = isinstance(value, dict) and pulumi.runtime.rpc._special_sig_key in value
    return value["value"] if wrapped else value


def test_everything_that_settings_can_ask_for(account: Double) -> None:
    """Beside what one type has anyway."""
    built(ONE_TYPE)
    before = {(typ, name) for typ, name, _ in account.made}
    account.made.clear()
    fleet = built(EVERYTHING, KEPT)
    after = {(typ, name) for typ, name, _ in account.made}
    assert before <= after
    added = [f"{typ.rpartition(':')[2]} {name}" for typ, name in after - before]
    assert sorted(added) == [
        "ArtifactBucket artifacts",
        "Bucket artifacts",
        "BucketLifecycleConfiguration artifacts",
        "BucketPolicy artifacts",
        "BucketPublicAccessBlock artifacts",
        "BucketServerSideEncryptionConfiguration artifacts",
        "BucketVersioning artifacts",
        "ImageRepository images",
        "JobQueue rl-c6g-medium-flex",
        "LifecyclePolicy images",
        "Parameter fleet",
        "Parameter queues/c6g-medium",
        "Parameter queues/c6g-medium-flex",
        "Parameter queues/c6g-medium-spot",
        "Parameter secrets/WANDB_API_KEY",
        "Parameter tags",
        "Policy submitters",
        "Publishing publishing",
        "Repository images",
        "Role batch-service-role",
        "Role spot-fleet-role",
        "RolePolicy read-secrets",
        "RolePolicy use-artifacts",
        "RolePolicyAttachment batch-service-role-AWSBatchServiceRole",
        "RolePolicyAttachment spot-fleet-role-AmazonEC2SpotFleetTaggingRole",
        "SchedulingPolicy rl-share",
        "Secret WANDB_API_KEY",
        "SecretVersion WANDB_API_KEY",
        "Secrets secrets",
    ]
    assert fleet.secrets == {"WANDB_API_KEY": "arn:WANDB_API_KEY"}


def test_value_of_a_secret_is_in_one_place(account: Double) -> None:
    """Its version, where Pulumi keeps it encrypted; not in the fleet document, not in a policy."""
    fleet = built(EVERYTHING, KEPT)
    holders = [name for typ, name, inputs in account.made if "hunter2" in json.dumps(inputs)]
    assert holders == ["WANDB_API_KEY"]
    assert "hunter2" not in str(fleet)


def test_published_parts_make_the_document(account: Double) -> None:
    fleet = built(EVERYTHING, KEPT)
    parts = {
        name: inputs["insecureValue"]
        for typ, name, inputs in account.made
        if typ.endswith(":Parameter")
    }
    assert fleet_from_parameters(parts) == fleet
    paths = {inputs["name"] for typ, _, inputs in account.made if typ.endswith(":Parameter")}
    assert paths == {f"/runfleet/rl/{name}" for name in parts}


def test_another_type_adds_only_its_own(account: Double) -> None:
    built(ONE_TYPE)
    before = [(typ, name) for typ, name, _ in account.made]
    account.made.clear()
    built({"runfleet:instanceTypes": "c6g.medium,g4dn.xlarge"})
    after = [(typ, name) for typ, name, _ in account.made]
    added = [pair for pair in after if pair not in before]
    assert set(before) <= set(after)
    assert len(added) == 7
    assert all("g4dn" in name for _, name in added)


def test_compute_environment(account: Double) -> None:
    """As AWS advises: in-place updates, no fixed name, no desired vCPUs, a numbered template."""
    built(ONE_TYPE)
    (inputs,) = [i for typ, name, i in account.made if "ComputeEnv" in typ and "spot" in name]
    assert inputs["namePrefix"] == "rl-c6g-medium-spot-"
    assert not {"name", "serviceRole"} & set(inputs)
    assert inputs["updatePolicy"] == {
        "terminateJobsOnUpdate": False,
        "jobExecutionTimeoutMinutes": 360,
    }
    assert inputs["computeResources"] == {
        "type": "SPOT",
        "allocationStrategy": "SPOT_PRICE_CAPACITY_OPTIMIZED",
        "minVcpus": 0,
        "maxVcpus": 256,
        "instanceTypes": ["c6g.medium"],
        "instanceRole": "arn:instance-profile",
        "securityGroupIds": ["machines-id"],
        "subnets": ["subnet-aaaaaaaa", "subnet-bbbbbbbb"],
        "ec2Configurations": [{"imageType": "ECS_AL2023"}],
        "launchTemplate": {"launchTemplateId": "c6g-medium-spot-id", "version": "3"},
    }


def test_machines(account: Double) -> None:
    built(ONE_TYPE | {"runfleet:rootVolumeGib": "200"})
    templates = {n: i for typ, n, i in account.made if "LaunchTemplate" in typ}
    spot, on_demand = templates["c6g-medium-spot"], templates["c6g-medium"]
    assert spot["metadataOptions"]["httpTokens"] == "required"
    assert spot["blockDeviceMappings"] == [
        {
            "deviceName": "/dev/xvda",
            "ebs": {
                "volumeSize": 200,
                "volumeType": "gp3",
                "encrypted": "true",
                "deleteOnTermination": "true",
            },
        }
    ]
    assert {t["resourceType"] for t in spot["tagSpecifications"]} == {"instance", "volume"}
    assert "userData" in spot
    assert "userData" not in on_demand


def test_everything_that_can_be_is_tagged(account: Double) -> None:
    """With the team's own tags, and what is of a queue with that. AWS takes none on the others."""
    built(EVERYTHING | {"runfleet:tags": "cost-center=4711"}, KEPT)
    aws = [(typ, name, i.get("tags", {})) for typ, name, i in account.made if typ[:4] == "aws:"]
    untagged = {
        typ.rpartition(":")[2]
        for typ, _, tags in aws
        if not {"cost-center": "4711", "stack": "rl"}.items() <= tags.items()
    }
    assert untagged == {
        "BucketLifecycleConfiguration",
        "BucketPolicy",
        "BucketPublicAccessBlock",
        "BucketServerSideEncryptionConfiguration",
        "BucketVersioning",
        "LifecyclePolicy",
        "RolePolicy",
        "RolePolicyAttachment",
        "SecretVersion",
    }
    of_queues = {(name, tags.get("queue")) for _, name, tags in aws if "c6g-medium" in name}
    assert len(of_queues) == 8  # queues and parameters of three, machines of two
    assert all(name.endswith(str(queue)) for name, queue in of_queues)


def test_fleet_document(account: Double) -> None:
    fleet = built(ONE_TYPE)
    assert {name: queue.arn for name, queue in fleet.queues.items()} == {
        "c6g-medium": "arn:rl-c6g-medium",
        "c6g-medium-spot": "arn:rl-c6g-medium-spot",
    }
    assert (fleet.job_role_arn, fleet.execution_role_arn) == ("arn:job-role", "arn:execution-role")
    assert account.made


def test_program_tells_mistakes_without_a_traceback(
    account: Double, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Through the environment as the engine hands it over; 32 is "the user has been told"."""
    config = {"runfleet:maxVcpus": "hunter2", "runfleet:spott": "1"}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(config))
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", '["runfleet:maxVcpus"]')
    with pytest.raises(SystemExit) as left:
        run_main()
    assert left.value.code == 32
    (told,) = caplog.messages
    assert told.startswith(
        "2 mistakes in the settings of stack rl:\n  runfleet:maxVcpus: is a secret"
    )
    assert "hunter2" not in told
    assert account.made == []


def test_program_exports_the_fleet(account: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(ONE_TYPE))
    monkeypatch.delenv("PULUMI_CONFIG_SECRET_KEYS", raising=False)
    exported: dict[str, pulumi.Output[Any]] = {}
    monkeypatch.setattr(pulumi, "export", exported.__setitem__)
    queues: list[list[str]] = []

    @pulumi.runtime.test
    def run() -> pulumi.Output[None]:
        run_main()
        return exported["fleet"].apply(lambda fleet: queues.append(list(fleet["queues"])))

    run()
    assert queues == [["c6g-medium", "c6g-medium-spot"]]
    assert account.made


@pytest.mark.slow
def test_catalogue_and_plan_load_neither_pulumi_nor_boto3() -> None:
    """The pure part can be used by tools that build nothing."""
    code = (
        "import sys, infra.plan, infra.settings, infra.choices, infra.data\n"
        "print(sorted({'pulumi', 'pulumi_aws', 'boto3', 'moto'} & set(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert loaded.stdout == "[]\n"
    assert parse_catalog(instance_types_csv())


def test_a_sandbox_that_is_down_is_named() -> None:
    err = NoAnswer('Could not connect to the endpoint URL: "http://127.0.0.1:4199/"')
    assert "python -m sandbox up" in err.told("rl")
    assert "aws sts" in NoAnswer("no credentials").told("rl")
