"""What AWS and the account have against a fleet, as the program tells it; a double stands for AWS."""

from __future__ import annotations

from typing import Any

import pytest

from infra.capacity import Standing, StandingEnvironment, StandingQueue
from infra.ending import Jobs
from infra.lookup import NoAnswer
from infra.program import planned_fleet
from infra.standing import NotCounted

from .doubles import ONE_TYPE, Double, Look, built, refusal

# pulumi_aws warns of resources of its own, which we do not use, when it loads its modules.
pytestmark = pytest.mark.filterwarnings(r"ignore:(aws\.)?(ec2|s3)[./]:DeprecationWarning")


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


def test_own_image(account: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Linux, whether the answer says so or says nothing; and of no other system."""
    own = {"runfleet:instanceTypes": '[{"type": "a1.medium", "imageId": "ami-12345678"}]'}

    def found(platform: str) -> dict[str, Any]:
        image = {"id": "ami-12345678", "architecture": "arm64", "rootDeviceName": "/dev/sda1"}
        return image | {"platform": platform, "blockDeviceMappings": []}

    for platform in ("", "Linux/UNIX"):
        monkeypatch.setattr(account, "get_ami", lambda _, said=platform: found(said))
        assert set(built(own).queues) == {"a1-medium", "a1-medium-spot"}
    monkeypatch.setattr(account, "get_ami", lambda _: found("windows"))
    assert "an image for windows" in refusal(own)["runfleet:instanceTypes[0].imageId"]
