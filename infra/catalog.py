"""EC2 instance types, offline: what each has, and what AWS Batch's own images run on. Pure."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Mapping

import msgspec

AGENT_MIB = 32
"""What the ECS agent keeps for itself (Batch User Guide, "Memory management")."""


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """One EC2 instance type. `gpus` counts whole NVIDIA GPUs; a type with a fraction of one
    has a `gpu_model` and none to count.
    """

    name: str
    arch: str
    """`x86_64`, `arm64`, or Apple's `arm64_mac` and `x86_64_mac`."""
    vcpus: int
    memory_mib: int
    """Nominal; see `usable_memory_mib`."""
    gpus: int
    gpu_model: str
    gpu_mib: int
    """Memory of one GPU."""
    other_accelerator: str
    """What it has instead of NVIDIA: Inferentia, an FPGA, …"""
    spot: bool
    instance_store_gb: int

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]


Catalog = Mapping[str, InstanceType]


def parse_catalog(text: str) -> dict[str, InstanceType]:
    """The types in `text`, by name: CSV with column names, lines with # before them left out."""
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    types = (
        InstanceType(
            name=row["type"],
            arch=row["arch"],
            vcpus=int(row["vcpus"]),
            memory_mib=int(row["memory_mib"]),
            gpus=int(row["gpus"]),
            gpu_model=row["gpu_model"],
            gpu_mib=int(row["gpu_mib"]),
            other_accelerator=row["other_accelerator"],
            spot=row["spot"] == "yes",
            instance_store_gb=int(row["instance_store_gb"]),
        )
        for row in rows
    )
    return {instance_type.name: instance_type for instance_type in types}


def why_no_type(name: str, catalog: Catalog) -> str:
    """What is wrong with a name that is no instance type, in words."""
    typed = name.strip().lower()
    if typed == "optimal" or re.fullmatch("default[_-](x86_64|arm64)", typed):
        return f"{typed} leaves the choice of types to Batch, and a queue here is of one type"
    sizes = [t.name for t in catalog.values() if t.family == typed]
    if sizes:
        return f"{typed} is a family of {len(sizes)} types, and a queue here is of one type"
    if "," in typed or ";" in typed:
        return "several types are a list: write [c6g.medium, c5a.large], or c6g.medium,c5a.large"
    return ""


def nearest_types(name: str, catalog: Catalog, *, count: int = 3) -> list[str]:
    """Names in the catalogue that `name` may have meant, best first."""
    typed = re.sub(r"[\s_-]+(?=[^-]*$)", ".", name.strip().lower())
    typed = typed if "." in typed else f"{typed}.large"
    close = difflib.get_close_matches(typed, catalog, n=count, cutoff=0.75)
    return close or difflib.get_close_matches(typed, catalog, n=count, cutoff=0.5)


def image_type(instance_type: InstanceType) -> str:
    """Batch's name for the kind of image: NVIDIA's drivers exist for x86-64 only.

    Always to be set: without it the AWS provider falls back to ECS_AL2, for which Batch has
    refused new compute environments since 30 June 2026.
    """
    nvidia = instance_type.gpus > 0 and instance_type.arch == "x86_64"
    return "ECS_AL2023_NVIDIA" if nvidia else "ECS_AL2023"


def usable_memory_mib(nominal_mib: int) -> int:
    """What one job can have on an instance of that nominal size; rather too little than too much.

    An instance registers less than its nominal memory, and a job that asks for more than is
    registered waits for ever. Batch advises to leave 5 % for kernel and daemons (an 8 GiB
    instance registers about 7,985 MiB); of small instances they take a larger part, so 256 MiB
    at the least.
    """
    return min(nominal_mib * 95 // 100, nominal_mib - 256) - AGENT_MIB


def why_not_on_batch(instance_type: InstanceType) -> str | None:
    """Why Batch does not take this type, whatever its image; None if it does."""
    if instance_type.arch.endswith("_mac"):
        return "it is a Mac, and Batch runs Linux containers"
    if _BURSTABLE.fullmatch(instance_type.family):
        return "Batch takes no burstable types"
    return _NOT_ON_BATCH.get(instance_type.family)


def why_own_image(instance_type: InstanceType) -> str | None:
    """Why Batch's own images do not do for this type; None if they do."""
    if instance_type.family in _NO_BATCH_IMAGE:
        return _NO_BATCH_IMAGE[instance_type.family]
    if instance_type.gpus and instance_type.arch == "arm64":
        return "Batch has no image with NVIDIA's driver for ARM"
    if instance_type.other_accelerator:
        return f"Batch's images have no driver for its {instance_type.other_accelerator}"
    if instance_type.gpu_model and not instance_type.gpus:
        return (
            f"it has a fraction of an NVIDIA {instance_type.gpu_model}, and Batch counts whole GPUs"
        )
    return None


# CreateComputeEnvironment answers with "Instance type can only be one of", and a list of the rest.
_BURSTABLE = re.compile("t[0-9]+[a-z]*")
_NOT_ON_BATCH = dict.fromkeys(("c1", "m1", "m2"), "Batch takes no types of the first generation")
_NO_BATCH_IMAGE = {
    # Batch API reference, Ec2Configuration: ECS_AL2023 without A1, ECS_AL2023_NVIDIA for other
    # than Graviton and without p3 and g3.
    "a1": "Amazon Linux 2023, which Batch's images are made of, does not run on a1",
    "p3": "NVIDIA's driver in Batch's images does not support p3",
    "g3": "NVIDIA's driver in Batch's images does not support g3",
    "g3s": "NVIDIA's driver in Batch's images does not support g3s",
}
