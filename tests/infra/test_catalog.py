"""infra.catalog and its data: what the fleet believes of EC2's instance types."""

from __future__ import annotations

import datetime as dt
import importlib.util
import re
from pathlib import Path

import pytest

from infra.catalog import (
    image_type,
    nearest_types,
    parse_catalog,
    usable_memory_mib,
    why_not_on_batch,
    why_own_image,
)
from infra.data import instance_types_csv
from submit.fleet import queue_name

ROOT = Path(__file__).resolve().parents[2]
CATALOG = parse_catalog(instance_types_csv())
PLAIN = [t for t in CATALOG.values() if not t.arch.endswith("_mac")]


def test_data_are_what_the_script_writes() -> None:
    """Same moto, same date, same bytes; after a newer moto: python tools/make_catalog.py."""
    pytest.importorskip("moto")
    spec = importlib.util.spec_from_file_location("make_catalog", ROOT / "tools/make_catalog.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    dated = re.match(r"# EC2 instance types as of (\d{4}-\d\d-\d\d) ", instance_types_csv())
    assert dated
    assert script.catalog_text(as_of=dt.date.fromisoformat(dated[1])) == instance_types_csv()


def test_arm_is_in_the_name() -> None:
    """Graviton: family a1, or a g behind the generation's digit. An independent reading."""
    graviton = re.compile(r"a1$|[a-z]+\d+[a-z]*g")
    assert {t.name for t in PLAIN if graviton.match(t.family)} == {
        t.name for t in PLAIN if t.arch == "arm64"
    }


@pytest.mark.parametrize(
    ("name", "vcpus", "memory_mib", "arch", "gpus", "gpu_model"),
    [
        ("c6g.medium", 1, 2048, "arm64", 0, ""),
        ("c5a.large", 2, 4096, "x86_64", 0, ""),
        ("g4dn.xlarge", 4, 16384, "x86_64", 1, "T4"),
        ("g5g.xlarge", 4, 8192, "arm64", 1, "T4g"),
        ("g6f.large", 2, 8192, "x86_64", 0, "L4"),
        ("p4d.24xlarge", 96, 1179648, "x86_64", 8, "A100"),
        ("p3.2xlarge", 8, 62464, "x86_64", 1, "V100"),
        ("t2.micro", 1, 1024, "x86_64", 0, ""),
    ],
)
def test_types_are_as_ec2_sells_them(
    name: str, vcpus: int, memory_mib: int, arch: str, gpus: int, gpu_model: str
) -> None:
    found = CATALOG[name]
    assert (found.vcpus, found.memory_mib, found.arch) == (vcpus, memory_mib, arch)
    assert (found.gpus, found.gpu_model) == (gpus, gpu_model)


def test_every_type_can_be_planned() -> None:
    """No type without CPU or memory to give, and no two with one queue name."""
    assert all(t.vcpus > 0 and 0 < usable_memory_mib(t.memory_mib) < t.memory_mib for t in PLAIN)
    assert len({queue_name(name, spot=False) for name in CATALOG}) == len(CATALOG)


def test_memory_that_is_known_to_be_registered() -> None:
    """8 GiB register about 7,985 MiB, less the agent's 32."""
    assert usable_memory_mib(8192) <= 7985 - 32
    assert usable_memory_mib(8192) >= 8192 * 0.94
    assert usable_memory_mib(16384) == 15564 - 32


def test_nvidia_image_exactly_for_nvidia_on_x86() -> None:
    assert image_type(CATALOG["g4dn.xlarge"]) == "ECS_AL2023_NVIDIA"
    for name in ("c6g.medium", "c5a.large", "g5g.xlarge", "g4ad.xlarge", "inf2.xlarge", "a1.large"):
        assert image_type(CATALOG[name]) == "ECS_AL2023"


def test_families_without_an_image_of_batch() -> None:
    own = {t.family for t in PLAIN if why_own_image(t)}
    assert own == {
        *("a1", "g5g", "p3", "g3", "g3s", "g4ad"),
        *("g6f", "gr6f"),
        *("inf1", "inf2", "trn1", "trn1n", "trn2", "trn2u", "dl2q", "f2", "vt1"),
    }


def test_families_that_batch_does_not_take() -> None:
    """Those with CPU credits, and those that start no image of today."""
    never = {t.family for t in CATALOG.values() if why_not_on_batch(t)}
    assert never == {
        *("t1", "t2", "t3", "t3a", "t4g", "t8i"),
        *("c1", "m1", "m2"),
        *(family for family in {t.family for t in CATALOG.values()} if family.startswith("mac")),
    }


def test_families_without_spot() -> None:
    none = {t.family for t in PLAIN if not t.spot and not why_not_on_batch(t)}
    assert all(re.match(r"u-|u7|hpc|trn2u$", family) for family in none)
    assert {"hpc7g", "u-6tb1"} <= none


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("g4dn.xlage", "g4dn.xlarge"),
        ("g4dn-xlarge", "g4dn.xlarge"),
        ("G4DN.xlarge", "g4dn.xlarge"),
        ("c6g.mediun", "c6g.medium"),
        ("m5.larg", "m5.large"),
        ("p6-b200-48xlarge", "p6-b200.48xlarge"),
        ("g4dn", "g4dn.xlarge"),
    ],
)
def test_nearest(typed: str, meant: str) -> None:
    assert nearest_types(typed, CATALOG)[0] == meant


def test_nearest_of_nonsense_is_nothing() -> None:
    assert nearest_types("?" * 200, CATALOG) == []
