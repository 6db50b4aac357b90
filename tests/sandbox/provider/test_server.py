"""What the provider refuses, names, previews, and keeps when something goes wrong."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime.proto import provider_pb2, status_pb2

from sandbox.provider import wire
from sandbox.provider.cloud import Failed
from sandbox.provider.plugin import LAUNCHER, install
from sandbox.provider.server import Provider
from sandbox.testing import Running

from .cases import trust
from .conftest import Engine, Made, Refused, python, serving, struct

ROLE = "aws:iam/role:Role"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
PROFILE = "aws:iam/instanceProfile:InstanceProfile"
ENVIRONMENT = "aws:batch/computeEnvironment:ComputeEnvironment"
LOGS = "aws:cloudwatch/logGroup:LogGroup"


def refusal(call: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def test_unknown_type_is_named(engine: Engine) -> None:
    error = refusal(lambda: engine.new("aws:sqs/queue:Queue", {}))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
    assert error.details() == "the sandbox's provider has no resource aws:sqs/queue:Queue"


def test_unknown_function_is_named(engine: Engine) -> None:
    error = refusal(lambda: engine.invoke("aws:ec2/getAmiIds:getAmiIds"))
    assert error.details() == "the sandbox's provider has no function aws:ec2/getAmiIds:getAmiIds"


def test_unknown_properties_are_named_wherever_they_are(engine: Engine) -> None:
    """All of them at once: none is ever ignored."""
    inputs = {
        "type": "MANAGED",
        "tenancy": "dedicated",
        "computeResources": {
            "maxVcpus": 1,
            "colour": "red",
            "ec2Configurations": [{"imageType": "ECS_AL2023"}, {"kernel": "6"}],
        },
    }
    with pytest.raises(Refused) as caught:
        engine.new(ENVIRONMENT, inputs)
    assert [name for name, _ in caught.value.args[0]] == [
        "tenancy",
        "computeResources.colour",
        "computeResources.ec2Configurations.kernel",
    ]


def test_unknown_argument_of_a_function_is_named(engine: Engine) -> None:
    with pytest.raises(Refused) as caught:
        engine.invoke("aws:ec2/getVpc:getVpc", state="available")
    assert caught.value.args[0] == [("state", "the sandbox does not have it")]


def test_missing_property_is_named(engine: Engine) -> None:
    with pytest.raises(Refused) as caught:
        engine.new(ROLE, {})
    assert caught.value.args[0] == [("assumeRolePolicy", "is required")]


@pytest.mark.parametrize(
    ("inputs", "fault"),
    [
        ({"name": "x" * 65}, ("name", "expected length to be in the range (1 - 64)")),
        ({"namePrefix": "x" * 39}, ("namePrefix", "expected length to be in the range (1 - 38)")),
        ({"name": "x", "namePrefix": "x"}, ("namePrefix", "conflicts with name")),
    ],
)
def test_name_that_can_not_be_had_is_refused_before_anything_is_made(
    engine: Engine, inputs: dict[str, Any], fault: tuple[str, str]
) -> None:
    with pytest.raises(Refused) as caught:
        engine.new(ROLE, inputs | {"assumeRolePolicy": trust("ec2")})
    assert caught.value.args[0] == [fault]


def test_name_prefix_that_just_fits_makes_a_name_that_fits(engine: Engine) -> None:
    role = engine.make(ROLE, {"namePrefix": "x" * 38, "assumeRolePolicy": trust("ec2")})
    assert len(role.state["name"]) == 64


def test_resource_without_a_name_gets_one_and_keeps_it(engine: Engine) -> None:
    """The logical name and a few digits; a replacement gets new ones, beside the old one."""
    role = engine.make(ROLE, {"assumeRolePolicy": trust("ec2")}, logical_name="machines")
    assert role.state["name"].startswith("machines-")
    assert role.state["name"] == role.inputs["name"]
    assert role.read() == (role.inputs, role.state)
    assert role.diff({"assumeRolePolicy": trust("ec2")}).changes == []
    diff = role.diff({"assumeRolePolicy": trust("ec2"), "path": "/teams/"})
    assert (diff.replaces, diff.delete_first) == (["path"], False)


def test_name_that_is_taken_out_of_the_program_is_given_up(engine: Engine) -> None:
    named = engine.make(LOGS, {"name": "/fleet/named"})
    assert named.diff({}).replaces == ["name"]


def test_same_prefix_twice_makes_two(engine: Engine) -> None:
    first, second = (
        engine.make(LOGS, {"namePrefix": "/fleet/"}, logical_name=name) for name in ("a", "b")
    )
    assert first.state["name"] < second.state["name"]


def test_what_is_not_known_yet_is_previewed_as_such(engine: Engine) -> None:
    """And counts as a change: the value may well be another."""
    unknown = wire.UNKNOWN
    profile = engine.new(PROFILE, {"name": "p", "role": unknown})
    assert profile.preview_create()["role"] == unknown
    made = engine.make(PROFILE, {"name": "p"})
    assert made.diff({"name": "p", "role": unknown}).changes == ["role"]
    assert made.update({"name": "p", "role": unknown}, preview=True)["role"] == unknown
    assert made.diff({"name": unknown}).replaces == ["name"]


def test_environment_of_which_nothing_is_known_is_replaced(engine: Engine) -> None:
    made = engine.new(ENVIRONMENT, {"type": "MANAGED", "computeResources": {"maxVcpus": 1}})
    diff = made.diff({"type": "MANAGED", "computeResources": wire.UNKNOWN})
    assert diff.replaces == ["computeResources"]


def test_order_of_what_has_none_is_no_change(engine: Engine) -> None:
    def inputs(*subnets: str) -> dict[str, Any]:
        return {"type": "MANAGED", "computeResources": {"maxVcpus": 1, "subnets": subnets}}

    made = engine.new(ENVIRONMENT, inputs("a", "b"))
    assert made.diff(inputs("b", "a")).changes == []
    assert made.diff(inputs("b", "c")).changes == ["computeResources"]


def test_policy_that_says_the_same_in_other_words_is_no_drift(
    engine: Engine, sandbox: Running
) -> None:
    role = engine.make(ROLE, {"name": "drift", "assumeRolePolicy": trust("ec2")})
    spaced = json.dumps(json.loads(trust("ec2")), indent=2)
    sandbox.client("iam").update_assume_role_policy(RoleName="drift", PolicyDocument=spaced)
    assert role.read() == (role.inputs, role.state)
    other = trust("batch")
    sandbox.client("iam").update_assume_role_policy(RoleName="drift", PolicyDocument=other)
    found = role.read()
    assert found is not None
    assert found[0]["assumeRolePolicy"] == other


def test_refresh_shows_what_others_have_changed(engine: Engine, sandbox: Running) -> None:
    group = engine.make(LOGS, {"name": "/fleet/drift", "retentionInDays": 30})
    sandbox.client("logs").put_retention_policy(logGroupName="/fleet/drift", retentionInDays=7)
    found = group.read()
    assert found is not None
    assert found[0] == {"name": "/fleet/drift", "retentionInDays": 7}


def test_import_tells_all_that_a_program_could_give(engine: Engine) -> None:
    made = engine.make(LOGS, {"name": "/fleet/import", "retentionInDays": 30})
    made.inputs, made.state = {}, {}
    found = made.read()
    assert found is not None
    assert found[0] == {
        "name": "/fleet/import",
        "region": "us-east-1",
        "retentionInDays": 30,
        "skipDestroy": False,
    }


def test_resource_in_another_region_is_made_there(engine: Engine, sandbox: Running) -> None:
    engine.make(LOGS, {"name": "/fleet/far", "region": "us-west-2"})
    here = sandbox.client("logs").describe_log_groups(logGroupNamePrefix="/fleet/far")
    assert here["logGroups"] == []


def test_aws_s_own_words_reach_the_user(engine: Engine) -> None:
    engine.make(ROLE, {"name": "twice", "assumeRolePolicy": trust("ec2")})
    again = engine.new(ROLE, {"name": "twice", "assumeRolePolicy": trust("ec2")})
    assert refusal(again.create).details() == (
        "creating IAM Role (thing): operation error CreateRole, EntityAlreadyExists: "
        "Role with name twice already exists."
    )


@contextlib.contextmanager
def configured() -> Iterator[Any]:
    """A provider of one's own."""
    with serving(Provider("0.0.0")) as stub:
        stub.Configure(provider_pb2.ConfigureRequest(args=struct({"region": "us-east-1"})))
        yield stub


def half_made(made: Made) -> Any:
    """What the engine is told of the resource whose creation failed half-way."""
    error = refusal(made.create)
    status = status_pb2.Status()
    trailing = dict(error.trailing_metadata())
    status.ParseFromString(trailing["grpc-status-details-bin"])
    kept = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(kept)
    made.id, made.state = kept.id, python(kept.properties)
    made.engine.made.append(made)
    assert python(kept.inputs) == made.inputs
    return error, list(kept.reasons)


def test_what_fails_after_its_creation_is_not_lost(engine: Engine, sandbox: Running) -> None:
    """The engine keeps it, completes it at the next update, or deletes it."""
    profile = engine.new(PROFILE, {"name": "half", "role": "late"})
    error, reasons = half_made(profile)
    assert profile.id == profile.state["name"] == "half"
    said = "NoSuchEntity: Role late not found"
    assert reasons == [f"operation error AddRoleToInstanceProfile, {said}"]
    assert error.details() == f"creating IAM Instance Profile (half): {reasons[0]}"
    sandbox.client("iam").create_role(
        RoleName="late", AssumeRolePolicyDocument=trust("ec2"), Path="/"
    )
    assert profile.update(profile.inputs)["role"] == "late"


def test_environment_that_turns_out_invalid_is_not_lost(engine: Engine, sandbox: Running) -> None:
    """AWS's reason is told, and it can be taken away."""
    ec2 = sandbox.client("ec2")
    role = engine.make(ROLE, {"name": "machines", "assumeRolePolicy": trust("ec2")})
    profile = engine.make(PROFILE, {"name": "machines", "role": role.state["name"]})
    resources = {
        "type": "EC2",
        "maxVcpus": 4,
        "instanceTypes": ["c5a.large"],
        "subnets": [ec2.describe_subnets()["Subnets"][0]["SubnetId"]],
        "securityGroupIds": [ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]],
        "instanceRole": profile.state["arn"],
        "launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"},
    }
    made = engine.new(
        ENVIRONMENT, {"name": "bad", "type": "MANAGED", "computeResources": resources}
    )
    error, _ = half_made(made)
    assert "(bad): it is INVALID: " in error.details()
    assert "lt-0123456789abcdef0" in error.details()
    assert made.state["status"] == "INVALID"
    made.delete()
    assert made.read() is None


def test_what_can_not_even_be_read_after_its_creation_is_not_lost(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for is all that is known of it then."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with configured() as stub:
        engine = Engine(stub, sandbox)
        sandbox.fault("error", service="logs", operation="DescribeLogGroups", count=50)
        made = engine.new(LOGS, {"name": "/fleet/unread"})
        half_made(made)
        sandbox.app.faults.clear()
        assert (made.id, made.state) == ("/fleet/unread", {"name": "/fleet/unread"})
        assert made.update(made.inputs)["arn"].endswith(":/fleet/unread")
        engine.clear()


def test_settings_that_it_does_not_have_are_named(stub: Any) -> None:
    given = {"region": "us-east-1", "profile": "prod"}
    answer = stub.CheckConfig(provider_pb2.CheckRequest(news=struct(given)))
    assert [failure.property for failure in answer.failures] == ["profile"]


def test_another_region_is_another_provider(stub: Any) -> None:
    request = provider_pb2.DiffRequest(
        olds=struct({"region": "us-east-1"}), news=struct({"region": "us-west-2"})
    )
    assert list(stub.DiffConfig(request).replaces) == ["region"]


@pytest.mark.parametrize(
    "endpoint", ["", "https://batch.us-east-1.amazonaws.com", "http://127.0.0.1.example.com:80"]
)
def test_it_speaks_to_loopback_only(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is set, it never reaches an account."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with serving(Provider("0.0.0")) as stub:
        request = provider_pb2.ConfigureRequest(args=struct({"region": "us-east-1"}))
        error = refusal(lambda: stub.Configure(request))
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert f"AWS_ENDPOINT_URL is {endpoint or 'not set'}: python -m sandbox up" in error.details()


def test_without_a_region_it_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with serving(Provider("0.0.0")) as stub:
        error = refusal(lambda: stub.Configure(provider_pb2.ConfigureRequest()))
    assert error.details() == "no region is set: pulumi config set aws:region us-east-1"


def test_once_cancelled_it_waits_for_nothing(sandbox: Running) -> None:
    """Ctrl-C ends an update at once, however long AWS takes."""
    _ = sandbox
    provider = Provider("0.0.0")
    with serving(provider) as stub:
        stub.Configure(provider_pb2.ConfigureRequest(args=struct({"region": "us-east-1"})))
        stub.Cancel(empty_pb2.Empty())
    with pytest.raises(Failed, match="stopped while waiting for slow"):
        provider._cloud({}).wait("waiting for slow", lambda: False)


VALUES = st.recursive(
    st.booleans()
    | st.text()
    | st.integers(min_value=-(2**53), max_value=2**53)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES))
def test_values_come_through_the_wire_unchanged(properties: dict[str, Any]) -> None:
    assert wire.load(wire.dump(properties)) == properties


def test_plugin_is_put_where_the_engine_looks_for_it(tmp_path: Path) -> None:
    """Again and again, and also when it led to a clone that is gone."""
    install(tmp_path)
    install(tmp_path)
    (link,) = tmp_path.glob("plugins/resource-aws-v*/pulumi-resource-aws")
    assert os.access(link, os.X_OK)
    link.unlink()
    link.symlink_to(tmp_path / "gone")
    install(tmp_path)
    assert link.resolve() == LAUNCHER


@pytest.mark.slow
@pytest.mark.parametrize("by_name", [True, False])
def test_launcher_starts_from_any_folder_and_tells_its_port(by_name: bool, tmp_path: Path) -> None:  # noqa: FBT001 # a parameter of the test
    """With the virtual environment on PATH, or with what `python -m sandbox env` exports."""
    environment = {"PATH": os.defpath, "PYTHONSAFEPATH": "1"}
    if by_name:
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"
    else:
        environment["RUNFLEET_SANDBOX_PYTHON"] = sys.executable
    process = subprocess.Popen(
        [LAUNCHER, "127.0.0.1:1"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        process.terminate()
    assert 0 < port < 65536
