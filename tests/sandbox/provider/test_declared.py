"""The provider's tables against pulumi_aws itself."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest

from sandbox.provider.functions import FUNCTIONS
from sandbox.provider.kind import Kind
from sandbox.provider.kinds import KINDS
from sandbox.provider.plugin import VERSION

from . import declared
from .conftest import Engine


def token_of(value: Any) -> str:
    return value.token if isinstance(value, Kind) else str(value)


@pytest.mark.parametrize("kind", KINDS, ids=token_of)
def test_outputs_are_those_declared(kind: Kind) -> None:
    assert kind.outputs == set(declared.outputs(kind.token))


@pytest.mark.parametrize("kind", KINDS, ids=token_of)
def test_inputs_are_among_those_declared(kind: Kind) -> None:
    assert kind.inputs <= set(declared.inputs(kind.token))
    assert kind.required == declared.required(kind.token)
    for path, names in kind.nested.items():
        assert names <= declared.nested_inputs(kind.token, path)


@pytest.mark.parametrize("kind", KINDS, ids=token_of)
def test_the_region_can_be_given_wherever_there_is_one(kind: Kind) -> None:
    assert ("region" in kind.inputs) == ("region" in declared.inputs(kind.token))


@pytest.mark.parametrize("kind", KINDS, ids=token_of)
def test_what_replaces_is_an_input(kind: Kind) -> None:
    assert kind.replaces <= kind.inputs


ARGUMENTS: dict[str, dict[str, Any]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": {},
    "aws:index/getPartition:getPartition": {},
    "aws:index/getRegion:getRegion": {},
    "aws:ec2/getVpc:getVpc": {"default": True},
    "aws:ec2/getSubnets:getSubnets": {},
    "aws:ec2/getSubnet:getSubnet": {
        "filters": [
            {"name": "availability-zone", "values": ["us-east-1a"]},
            {"name": "default-for-az", "values": ["true"]},
        ]
    },
    "aws:ec2/getAmi:getAmi": {"filters": [{"name": "image-id", "values": ["ami-12c6146b"]}]},
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": {
        "locationType": "availability-zone",
        "filters": [{"name": "instance-type", "values": ["c6g.medium"]}],
    },
}


@pytest.mark.parametrize("token", FUNCTIONS)
def test_functions_answer_as_declared(engine: Engine, token: str) -> None:
    arguments, results = declared.function(token)
    assert FUNCTIONS[token][0] <= arguments
    answer = engine.invoke(token, **ARGUMENTS[token])
    assert declared.result_misfits(token, answer) == []
    assert set(answer) >= set(results) - (arguments - set(ARGUMENTS[token]) | {"filters"})


def test_it_has_the_version_of_the_real_one() -> None:
    """So that the engine takes it for the plugin that the program asks for."""
    assert version("pulumi-aws") == VERSION
