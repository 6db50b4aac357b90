"""infra.choices: settings that are well-formed and still make no fleet."""

from __future__ import annotations

import re

import pytest

from infra.catalog import parse_catalog
from infra.choices import MAX_COMPUTE_ENVIRONMENTS, MAX_TAGS, Choice, choose
from infra.data import instance_types_csv
from infra.settings import Settings, TypeSettings

CATALOG = parse_catalog(instance_types_csv())
MANY = sorted(
    t.name for t in CATALOG.values() if t.family in {"c5", "m5", "r5", "c5a"} and t.vcpus <= 96
)


def types(*items: TypeSettings | str) -> tuple[TypeSettings, ...]:
    return tuple(TypeSettings(type=item) if isinstance(item, str) else item for item in items)


def chosen(settings: Settings) -> list[Choice]:
    choices, mistakes = choose(settings, CATALOG)
    assert mistakes == []
    return choices


def problems(settings: Settings) -> list[tuple[str, str]]:
    return [(mistake.path, mistake.problem) for mistake in choose(settings, CATALOG)[1]]


def test_default() -> None:
    """Six types, each with an on-demand and a spot queue, on-demand first."""
    choices = chosen(Settings())
    assert [choice.instance_type.name for choice in choices] == [
        "g4dn.4xlarge",
        "g4dn.xlarge",
        "r5ad.large",
        "c6g.medium",
        "m6gd.medium",
        "c5a.large",
    ]
    assert all(choice.markets == (False, True) for choice in choices)
    assert {choice.max_vcpus for choice in choices} == {256}


def test_an_item_goes_before_the_stack() -> None:
    settings = Settings(
        max_vcpus=64,
        spot=False,
        spot_bid_percentage=80,
        instance_types=types(
            "c5a.large",
            TypeSettings(type="c6g.medium", spot=True, max_vcpus=4, spot_bid_percentage=50),
            TypeSettings(type="m5.large", spot=True, on_demand=False),
        ),
    )
    plain, own, spot_only = chosen(settings)
    assert (plain.markets, plain.max_vcpus, plain.spot_bid_percentage) == ((False,), 64, 80)
    assert (own.markets, own.max_vcpus, own.spot_bid_percentage) == ((False, True), 4, 50)
    assert spot_only.markets == (True,)


def test_own_image_makes_any_type_possible() -> None:
    names = ("a1.medium", "g5g.xlarge", "p3.2xlarge", "g3.4xlarge", "g4ad.xlarge", "inf2.xlarge")
    items = [TypeSettings(type=name, image_id="ami-12345678") for name in names]
    assert [choice.image_id for choice in chosen(Settings(instance_types=types(*items)))] == [
        "ami-12345678"
    ] * len(names)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("g4dn.xlage", 'no EC2 instance type "g4dn.xlage"; nearest: g4dn.xlarge, '),
        ("", 'no EC2 instance type ""'),
        ("a1.medium", r"Amazon Linux 2023.* a1; write {type: a1.medium, imageId: ami-…}"),
        ("g5g.xlarge", "no image with NVIDIA's driver for ARM"),
        ("p3.2xlarge", "does not support p3"),
        ("g3.4xlarge", "does not support g3"),
        ("g4ad.xlarge", "no driver for its Radeon Pro V520"),
        ("inf2.xlarge", "no driver for its Inferentia2"),
        ("g6f.large", "a fraction of an NVIDIA L4, and Batch counts whole GPUs"),
        ("mac2.metal", "it is a Mac, and Batch runs Linux containers; drop it, or take c6g.medium"),
        (TypeSettings(type="mac2.metal", image_id="ami-12345678"), "is a Mac"),
        ("t3.large", "Batch takes no burstable types; drop it, or take c5a.large"),
        (TypeSettings(type="t2.micro", spot=False, image_id="ami-12345678"), "no burstable types"),
        (
            "hpc7g.4xlarge",
            "sells no hpc7g.4xlarge as spot; write {type: hpc7g.4xlarge, spot: false}",
        ),
        (TypeSettings(type="c5a.large", spot=False, on_demand=False), "neither a spot nor an"),
        (TypeSettings(type="c5a.large", max_vcpus=1), "has 2 vCPUs, its maxVcpus is 1"),
        ("m7i.metal-48xl", None),
        ("m8i.96xlarge", "384 vCPUs, the stack's maxVcpus is 256.*maxVcpus: 384}"),
        (TypeSettings(type="hpc7g.4xlarge", spot=False), None),
    ],
)
def test_one_type(item: TypeSettings | str, told: str | None) -> None:
    found = problems(Settings(instance_types=types("c6g.medium", item)))
    if told is None:
        assert found == []
    else:
        ((path, problem),) = found
        assert path == "runfleet:instanceTypes[1]"
        assert re.search(told, problem)


def test_everything_wrong_is_told_at_once() -> None:
    settings = Settings(
        instance_types=(None, *types("nope.large", "a1.medium", "c6g.medium", "c6g.medium")),
        subnet_ids=("subnet-12345678", "subnet-12345678"),
        tags={"stack": "x", "Team": "y"},
        max_vcpus=1,
    )
    assert [path for path, _ in problems(settings)] == [
        "runfleet:instanceTypes[4]",
        "runfleet:subnetIds[1]",
        "runfleet:tags.stack",
        "runfleet:tags.Team",
        "runfleet:instanceTypes[1]",
        "runfleet:instanceTypes[2]",
    ]


def test_no_type_at_all() -> None:
    assert problems(Settings(instance_types=()))[0][0] == "runfleet:instanceTypes"


def test_more_queues_than_an_account_has() -> None:
    """25 pairs fit, 26 do not, 50 with one market do."""
    half = MAX_COMPUTE_ENVIRONMENTS // 2
    assert problems(Settings(instance_types=types(*MANY[:half]))) == []
    ((path, problem),) = problems(Settings(instance_types=types(*MANY[: half + 1])))
    assert path == "runfleet:instanceTypes"
    assert "52 queues" in problem
    one_market = Settings(instance_types=types(*MANY[: half + 1]), spot=False)
    assert problems(one_market) == []


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ({"cost-center": "4711"}, None),
        ({"team": "rl", "project": "atari"}, None),
        ({"queue": "x"}, "runfleet sets the tag queue"),
        ({"Stack": "x"}, "runfleet sets the tag stack"),
        ({"Team": "rl"}, "write team"),
        ({"a": "1", "A": "2"}, "differs from a"),
        ({f"t{n}": "" for n in range(MAX_TAGS + 1)}, "at most 40"),
    ],
)
def test_tags(tags: dict[str, str], told: str | None) -> None:
    found = problems(Settings(tags=tags))
    assert [told in problem for _, problem in found if told] == ([True] if told else [])
    assert bool(found) == bool(told)
