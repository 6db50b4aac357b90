"""What EC2 instance types offer to a container. Facts from moto's copy of EC2's own list."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_X86_64 = ("m6i", "c6i", "r6i", "c7i")
BUNDLES: Mapping[str, tuple[str, ...]] = {
    "optimal": _X86_64,
    "default_x86_64": _X86_64,
    "default_arm64": ("m6g", "c6g", "r6g", "c7g"),
}
"""Families that Batch chooses from under these names (API Reference, ComputeResource)."""
AGENT_MIB = 32
"""ECS_RESERVED_MEMORY as Batch sets it (User Guide, Compute environment memory management)."""


class InstanceType(NamedTuple):
    """`memory_mib` is what the ECS agent registers: less than the nominal size."""

    name: str
    architectures: tuple[str, ...]
    vcpus: int
    memory_mib: int
    gpus: int
    spot: bool


@functools.lru_cache(4096)
def instance_type(name: str) -> InstanceType | None:
    """The type of that name, None if EC2 has none."""
    facts = _catalogue().get(name)
    if facts is None:
        return None
    nominal = facts["MemoryInfo"]["SizeInMiB"]
    return InstanceType(
        name=name,
        architectures=tuple(facts["ProcessorInfo"]["SupportedArchitectures"]),
        vcpus=facts["VCpuInfo"]["DefaultVCpus"],
        memory_mib=nominal - _kernel_mib(nominal) - AGENT_MIB,
        gpus=sum(
            gpu.get("Count", 0)
            for gpu in facts.get("GpuInfo", {}).get("Gpus", [])
            if gpu.get("Manufacturer") == "NVIDIA"
        ),
        spot="spot" in facts.get("SupportedUsageClasses", []),
    )


@functools.lru_cache(4096)
def expand(name: str) -> tuple[InstanceType, ...]:
    """The types that an entry of instanceTypes stands for: a type, a family, or a bundle.

    Empty when EC2 has no such type or family.
    """
    if name in BUNDLES:
        return tuple(found for family in BUNDLES[name] for found in expand(family))
    if "." in name:
        found = instance_type(name)
        return (found,) if found else ()
    names = sorted(n for n in _catalogue() if n.partition(".")[0] == name and "metal" not in n)
    return tuple(t for t in map(instance_type, names) if t)


def relative_price(of: InstanceType) -> float:
    """What one costs beside another: by vCPU, GiB and GPU, as EC2's prices roughly go."""
    return of.vcpus * 2 + of.memory_mib / 1024 * 0.5 + of.gpus * 40


def is_arm(name: str) -> bool:
    """Whether a type of that name is Graviton (EC2 naming: a `g` after the generation)."""
    return bool(re.match(r"a1\b|[a-z]+[0-9]+[a-z]*g[a-z]*\b", name.partition(".")[0]))


def _kernel_mib(nominal: int) -> int:
    """What kernel and firmware keep of the nominal memory: 207 MiB of 8 GiB were seen."""
    return max(64, nominal * 207 // 8192)


@functools.cache
def _catalogue() -> dict[str, Any]:
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # noqa: PLC0415 # takes a second

    return dict(INSTANCE_TYPES)
