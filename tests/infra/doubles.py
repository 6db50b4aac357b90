"""A double of AWS for the program: it gives back what it is given. Nothing here is a test."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import pulumi
import pytest

from infra.capacity import Standing
from infra.ending import Jobs
from infra.mistakes import Refused
from infra.program import build_fleet, planned_fleet
from submit.fleet import Fleet, parse_fleet

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


def refusal(config: dict[str, str]) -> dict[str, str]:
    with pytest.raises(Refused) as refused:
        planned_fleet(config, secret_keys=frozenset(), stack="rl", project="runfleet")
    return {mistake.path: mistake.problem for mistake in refused.value.mistakes}
