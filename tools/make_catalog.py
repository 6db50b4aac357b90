"""Writes infra/data/instance_types.csv: what the fleet has to know of each EC2 instance type.

    python tools/make_catalog.py --as-of YYYY-MM-DD

The source is the copy of EC2's DescribeInstanceTypes that the package moto carries (Apache-2.0).
The same moto and the same date give the same bytes. `--as-of` is the day of that moto release.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import gzip
import importlib.metadata
import importlib.resources
import io
import json
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "infra" / "data" / "instance_types.csv"

COLUMNS = (
    "type",
    "arch",
    "vcpus",
    "memory_mib",
    "gpus",
    "gpu_model",
    "gpu_mib",
    "other_accelerator",
    "spot",
    "instance_store_gb",
)

# Types that EC2 no longer lists in every region and moto not at all, but that teams with an
# image of their own still run. Figures from EC2's pages on previous-generation instances.
OLD_TYPES: tuple[tuple[str | int, ...], ...] = (
    ("g3.4xlarge", "x86_64", 16, 124928, 1, "M60", 8192, "", "yes", 0),
    ("g3.8xlarge", "x86_64", 32, 249856, 2, "M60", 8192, "", "yes", 0),
    ("g3.16xlarge", "x86_64", 64, 499712, 4, "M60", 8192, "", "yes", 0),
    ("g3s.xlarge", "x86_64", 4, 31232, 1, "M60", 8192, "", "yes", 0),
    ("g4ad.xlarge", "x86_64", 4, 16384, 0, "", 0, "Radeon Pro V520", "yes", 150),
    ("g4ad.2xlarge", "x86_64", 8, 32768, 0, "", 0, "Radeon Pro V520", "yes", 300),
    ("g4ad.4xlarge", "x86_64", 16, 65536, 0, "", 0, "Radeon Pro V520", "yes", 600),
    ("g4ad.8xlarge", "x86_64", 32, 131072, 0, "", 0, "Radeon Pro V520", "yes", 1200),
    ("g4ad.16xlarge", "x86_64", 64, 262144, 0, "", 0, "Radeon Pro V520", "yes", 2400),
    ("p3.2xlarge", "x86_64", 8, 62464, 1, "V100", 16384, "", "yes", 0),
    ("p3.8xlarge", "x86_64", 32, 249856, 4, "V100", 16384, "", "yes", 0),
    ("p3.16xlarge", "x86_64", 64, 499712, 8, "V100", 16384, "", "yes", 0),
)


# Types whose accelerator EC2's description leaves out.
UNDESCRIBED = {"trn2u.48xlarge": "Trainium2"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--as-of", required=True, type=dt.date.fromisoformat)
    parser.add_argument("--output", type=Path, default=TARGET)
    arguments = parser.parse_args()
    text = catalog_text(as_of=arguments.as_of)
    arguments.output.write_text(text, encoding="utf-8")
    print(f"{arguments.output}: {len(text.splitlines()) - 2} instance types")


def catalog_text(*, as_of: dt.date) -> str:
    """The whole file: a comment with the source and its date, the column names, one row a type."""
    rows = {str(row[0]): row for row in OLD_TYPES}
    rows |= {name: _row(name, facts) for name, facts in _described_types().items()}
    out = io.StringIO()
    version = importlib.metadata.version("moto")
    out.write(f"# EC2 instance types as of {as_of} (moto {version}); see tools/make_catalog.py\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows[name] for name in sorted(rows))
    return out.getvalue()


def _described_types() -> dict[str, Any]:
    packed = importlib.resources.files("moto.ec2").joinpath("resources/instance_types.json.gz")
    described: dict[str, Any] = json.loads(gzip.decompress(packed.read_bytes()))
    return described


def _row(name: str, facts: dict[str, Any]) -> tuple[str | int, ...]:
    architectures = facts["ProcessorInfo"]["SupportedArchitectures"]
    gpus = [g for g in facts.get("GpuInfo", {}).get("Gpus", []) if g["Manufacturer"] == "NVIDIA"]
    return (
        name,
        "x86_64" if "x86_64" in architectures else architectures[0],
        facts["VCpuInfo"]["DefaultVCpus"],
        facts["MemoryInfo"]["SizeInMiB"],
        sum(gpu["Count"] for gpu in gpus),
        gpus[0]["Name"] if gpus else "",
        gpus[0]["MemoryInfo"]["SizeInMiB"] if gpus else 0,
        _other_accelerator(facts) or UNDESCRIBED.get(name, ""),
        "yes" if "spot" in facts["SupportedUsageClasses"] else "no",
        facts.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
    )


def _other_accelerator(facts: dict[str, Any]) -> str:
    """The name of what the type has instead of an NVIDIA GPU, if anything."""
    for info, devices in (
        ("NeuronInfo", "NeuronDevices"),
        ("InferenceAcceleratorInfo", "Accelerators"),
        ("FpgaInfo", "Fpgas"),
        ("MediaAcceleratorInfo", "Accelerators"),
        ("GpuInfo", "Gpus"),
    ):
        for device in facts.get(info, {}).get(devices, []):
            if device.get("Manufacturer") != "NVIDIA":
                return str(device["Name"])
    return ""


if __name__ == "__main__":
    main()
