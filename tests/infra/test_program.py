"""infra.program, its components and look-ups, and __main__, with a double in place of AWS.

The double gives back what it is given, so these tests look at shapes alone: what is registered,
under which name, and what is said when AWS has no answer. That AWS takes it is for the tests
that run the engine.
"""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pulumi
import pytest

from infra.capacity import Standing, StandingEnvironment, StandingQueue
from infra.catalog import parse_catalog
from infra.data import instance_types_csv
from infra.ending import Jobs
from infra.lookup import NoAnswer
from infra.mistakes import Refused
from infra.program import build_fleet, planned_fleet
from infra.standing import NotCounted
from submit.fleet import Fleet, fleet_from_parameters, parse_fleet
from tests.sandbox.provider.declared import input_misfits

# pulumi_aws warns of resources of its own, which we do not use, when it loads its modules.
pytestmark = pytest.mark.filterwarnings(r"ignore:(aws\.)?(ec2|s3)[./]:DeprecationWarning")

ROOT = Path(__file__).resolve().parents[2]
SUBNETS = {
    "subnet-aaaaaaaa": ("vpc-11111111", "us-east-1a"),
    "subnet-bbbbbbbb": ("vpc-11111111", "us-east-1b"),
    "subnet-cccccccc": ("vpc-22222222", "us-east-1a"),
}
ONE_TYPE = {"runfleet:instanceTypes": "c6g.medium"}
Answer = Callable[[dict[str, Any]], dict[str, Any]]


class Double(pulumi.runtime.Mocks):
    """An account with two VPCs; `made` is what was registered in it."""

    default_vpc: bool = True
    zones: tuple[str, ...] = ("us-east-1a", "us-east-1b")

    def __init__(self) -> None:
        self.made: list[tuple[str, str, dict[str, Any]]] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.made.append((args.typ, args.name, args.inputs))
        names = {"name": args.name, "bucket": args.name}
        outputs = {**names, **args.inputs, "arn": f"arn:{args.name}", "latestVersion": 3}
        return f"{args.name}-id", outputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
        function = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", args.token.split(":")[2])
        answer: Answer = getattr(self, function)
        return answer(args.args)

    def get_caller_identity(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"accountId": "123456789012"}

    def get_partition(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"partition": "aws", "dnsSuffix": "amazonaws.com"}

    def get_region(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"region": "us-east-1"}

    def get_vpc(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked == {"default": True}
        if not self.default_vpc:
            raise LookupError("no matching EC2 VPC found")
        return {"id": "vpc-11111111"}

    def get_subnets(self, asked: dict[str, Any]) -> dict[str, Any]:
        ((by, (wanted,)),) = [(f["name"], f["values"]) for f in asked["filters"]]
        assert by == "vpc-id"
        return {"ids": [name for name, (vpc, _) in SUBNETS.items() if vpc == wanted]}

    def get_subnet(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["id"] not in SUBNETS:
            raise LookupError("no matching EC2 Subnet found")
        vpc, zone = SUBNETS[asked["id"]]
        return {"id": asked["id"], "vpcId": vpc, "availabilityZone": zone}

    def get_ami(self, asked: dict[str, Any]) -> dict[str, Any]:
        raise LookupError(f"no matching AMI found: {asked}")

    def get_instance_type_offerings(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["locationType"] == "availability-zone"
        ((by, wanted),) = [(f["name"], f["values"]) for f in asked["filters"]]
        assert by == "instance-type"
        pairs = [(name, zone) for name in wanted for zone in self.zones]
        return {"instanceTypes": [n for n, _ in pairs], "locations": [z for _, z in pairs]}


class Look:
    """What stands in the account: nothing, unless a test says so."""

    found = Standing(environments=(), queues=())
    in_queues: ClassVar[dict[str, list[Jobs]]] = {}

    def __init__(self, config: dict[str, str], *, account: str, region: str) -> None:
        assert (account, region) == ("123456789012", "us-east-1")
        _ = config

    def standing(self, stack: str) -> Standing:
        assert stack == "rl"
        return self.found

    def jobs(self, queues: Iterable[str]) -> dict[str, list[Jobs]]:
        return {name: self.in_queues[name] for name in queues if name in self.in_queues}


@pytest.fixture(scope="session")
def event_loop() -> None:
    """From Python 3.12 on, nobody else makes the loop that Pulumi's mocks work in.

    It stays open: its threads hold loops of the mocks' own, which nobody closes.
    """
    asyncio.set_event_loop(asyncio.new_event_loop())


@pytest.fixture
def account(
    monkeypatch: pytest.MonkeyPatch,
    event_loop: None,  # noqa: ARG001 # asked for, not used
) -> Iterator[Double]:
    double = Double()
    monkeypatch.setattr("infra.program.Look", Look)
    pulumi.runtime.set_mocks(double, project="runfleet", stack="rl", preview=False)
    yield double
    pulumi.runtime.settings.reset_options()


def built(config: dict[str, str], secret_keys: frozenset[str] = frozenset()) -> Fleet:
    """The fleet document of a stack with that configuration, through JSON as Pulumi keeps it."""
    documents: list[Any] = []

    @pulumi.runtime.test
    def run() -> pulumi.Output[None]:
        plan, secrets = planned_fleet(
            config, secret_keys=secret_keys, stack="rl", project="runfleet"
        )
        return build_fleet(plan, secrets)["fleet"].apply(documents.append)

    run()
    (document,) = documents
    return parse_fleet(json.dumps(document))


def run_main() -> None:
    """__main__.py as the language host runs it, but that Ctrl-C still ends pytest in its way."""
    before = signal.getsignal(signal.SIGINT)
    try:
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")
    finally:
        signal.signal(signal.SIGINT, before)


def refusal(config: dict[str, str]) -> dict[str, str]:
    with pytest.raises(Refused) as refused:
        planned_fleet(config, secret_keys=frozenset(), stack="rl", project="runfleet")
    return {mistake.path: mistake.problem for mistake in refused.value.mistakes}


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


def test_named_network(account: Double) -> None:
    built(ONE_TYPE | {"runfleet:subnetIds": "subnet-bbbbbbbb"})
    (group,) = [i for typ, _, i in account.made if typ.endswith(":SecurityGroup")]
    assert group["vpcId"] == "vpc-11111111"
    account.made.clear()
    built(ONE_TYPE | {"runfleet:vpcId": "vpc-22222222"})
    (group,) = [i for typ, _, i in account.made if typ.endswith(":SecurityGroup")]
    assert group["vpcId"] == "vpc-22222222"


@pytest.mark.parametrize(
    ("config", "path", "told"),
    [
        (
            {"runfleet:subnetIds": "subnet-aaaaaaaa,subnet-00000000"},
            "runfleet:subnetIds[1]",
            "the account has no subnet subnet-00000000",
        ),
        (
            {"runfleet:subnetIds": "subnet-aaaaaaaa,subnet-cccccccc"},
            "runfleet:subnetIds[1]",
            "subnet-cccccccc lies in vpc-22222222, not in vpc-11111111",
        ),
        (
            {"runfleet:subnetIds": "subnet-aaaaaaaa", "runfleet:vpcId": "vpc-22222222"},
            "runfleet:subnetIds[0]",
            "subnet-aaaaaaaa lies in vpc-11111111, not in vpc-22222222",
        ),
        ({"runfleet:vpcId": "vpc-00000000"}, "runfleet:vpcId", "no VPC vpc-00000000 with a subnet"),
    ],
)
def test_network_that_is_not_there(
    account: Double, config: dict[str, str], path: str, told: str
) -> None:
    found = refusal(ONE_TYPE | config)
    assert list(found) == [path]
    assert told in found[path]
    assert account.made == []


def test_no_default_vpc(account: Double) -> None:
    """The message names both settings that help."""
    account.default_vpc = False
    problem = refusal(ONE_TYPE)["runfleet:vpcId"]
    assert "no default VPC" in problem
    assert "runfleet:subnetIds" in problem


def test_zones(account: Double) -> None:
    account.zones = ("us-east-1e",)
    assert "offered in us-east-1e only" in refusal(ONE_TYPE)["runfleet:instanceTypes[0]"]


def test_all_that_the_account_has_against_it_is_told_at_once(account: Double) -> None:
    account.zones = ("us-east-1e",)
    config = {
        "runfleet:instanceTypes": '["c6g.medium", {"type": "c5a.large", "imageId": "ami-00000000"}]',
        "runfleet:subnetIds": "subnet-00000000,subnet-aaaaaaaa,subnet-cccccccc",
    }
    assert list(refusal(config)) == [
        "runfleet:instanceTypes[0]",
        "runfleet:instanceTypes[1]",
        "runfleet:instanceTypes[1].imageId",
        "runfleet:subnetIds[0]",
        "runfleet:subnetIds[2]",
    ]


OTHERS = Standing(
    environments=tuple(
        StandingEnvironment(name=f"dl-{n}", stack="dl", queue=f"q{n}") for n in range(49)
    ),
    queues=(),
)


def test_no_room(account: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Look, "found", OTHERS)
    assert "beside 49 compute environments" in refusal(ONE_TYPE)["runfleet:instanceTypes"]
    assert account.made == []


@pytest.mark.usefixtures("account")
def test_no_room_and_a_wish_to_try(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Look, "found", OTHERS)
    built(ONE_TYPE | {"runfleet:capacityCheck": "warn"})
    (told,) = caplog.messages
    assert "beside 49 compute environments" in told
    caplog.clear()
    built(ONE_TYPE | {"runfleet:capacityCheck": "none"})
    assert caplog.messages == []


@pytest.mark.usefixtures("account")
def test_account_that_can_not_be_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Building goes on: to count takes rights that a team may not have."""

    def refuse(_: Look, stack: str) -> Standing:  # noqa: ARG001 # asked for, not used
        raise NotCounted("AccessDenied")

    monkeypatch.setattr(Look, "standing", refuse)
    assert built(ONE_TYPE).queues
    assert caplog.messages == ["what stands in the account was not counted: AccessDenied"]


@pytest.mark.usefixtures("account")
def test_jobs_of_a_queue_that_goes_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue = StandingQueue(name="rl-c5a-1", stack="rl", queue="c5a-large", fair_share=False)
    monkeypatch.setattr(Look, "found", Standing(environments=(), queues=(queue,)))
    running = Jobs(status="RUNNING", jobs=2, runs=2)
    monkeypatch.setattr(Look, "in_queues", {"rl-c5a-1": [running]})
    built(ONE_TYPE)
    assert caplog.messages == ["jobs end with their queues: rl-c5a-1: 2 RUNNING"]


def test_aws_is_not_asked_while_the_settings_are_wrong(account: Double) -> None:
    """All that can be told without AWS comes first, and together."""
    account.default_vpc = False
    found = refusal({"runfleet:instanceTypes": "a1.medium,nope.large", "runfleet:maxVcpu": "3"})
    assert set(found) == {
        "runfleet:instanceTypes[0]",
        "runfleet:instanceTypes[1]",
        "runfleet:maxVcpu",
    }


def test_no_answer(account: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the settings' fault nor a traceback."""

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise ConnectionError("AccessDenied: not you")

    monkeypatch.setattr(account, "get_vpc", refuse)
    with pytest.raises(NoAnswer) as none:
        planned_fleet(ONE_TYPE, secret_keys=frozenset(), stack="rl", project="runfleet")
    told = none.value.told("rl")
    assert "AccessDenied: not you" in told
    assert "aws sts get-caller-identity" in told


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
