"""infra.userdata: what machines do at their start, read as cloud-init reads it and run."""

from __future__ import annotations

import base64
import email
import os
import subprocess
from pathlib import Path

import pytest

from infra.userdata import user_data


def scripts(*, spot: bool, instance_store: bool) -> dict[str, str]:
    """The parts by their type."""
    encoded = user_data(spot=spot, instance_store=instance_store)
    assert encoded
    message = email.message_from_bytes(base64.b64decode(encoded))
    assert message.get_content_type() == "multipart/mixed"
    parts = message.get_payload()
    assert isinstance(parts, list)
    assert not any(part.defects for part in [message, *parts])
    return {part.get_content_type(): part.get_payload() for part in parts}


def test_nothing_to_do() -> None:
    assert user_data(spot=False, instance_store=False) is None


def test_parts() -> None:
    assert set(scripts(spot=True, instance_store=False)) == {"text/x-shellscript"}
    assert set(scripts(spot=False, instance_store=True)) == {"text/cloud-boothook"}
    assert len(scripts(spot=True, instance_store=True)) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disks", "mounted", "programs", "done"),
    [
        ([], False, [], []),
        (["/dev/nvme1n1"], True, [], []),
        (
            ["/dev/nvme1n1"],
            False,
            [],
            ["mkfs.xfs -f /dev/nvme1n1", "mount -o noatime /dev/nvme1n1 /var/lib/docker"],
        ),
        (
            ["/dev/nvme1n1", "/dev/nvme2n1"],
            False,
            ["mdadm"],
            [
                "mdadm --create /dev/md0 --level=0 --run --raid-devices=2 /dev/nvme1n1 /dev/nvme2n1",
                "mkfs.xfs -f /dev/md0",
                "mount -o noatime /dev/md0 /var/lib/docker",
            ],
        ),
        (
            ["/dev/nvme1n1", "/dev/nvme2n1"],
            False,
            [],
            ["mkfs.xfs -f /dev/nvme1n1", "mount -o noatime /dev/nvme1n1 /var/lib/docker"],
        ),
    ],
)
def test_docker_on_local_disks(
    tmp_path: Path,
    disks: list[str],
    mounted: bool,  # noqa: FBT001 # a table
    programs: list[str],
    done: list[str],
) -> None:
    """The script runs with programs that only note how they were called."""
    log, bin_ = tmp_path / "log", tmp_path / "bin"
    bin_.mkdir()
    log.touch()
    table = ["/dev/nvme0n1 Amazon Elastic Block Store"]
    table += [f"{disk} Amazon EC2 NVMe Instance Storage" for disk in disks]
    bodies = {
        "mountpoint": f"exit {0 if mounted else 1}",
        "lsblk": "\n".join(f"echo '{line}'" for line in table),
        "mkdir": "",
        **{name: f'echo "{name} $*" >> {log}' for name in ("mkfs.xfs", "mount", *programs)},
    }
    for name, body in bodies.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{body}\n")
        (bin_ / name).chmod(0o755)
    (bin_ / "awk").symlink_to("/usr/bin/awk")
    script = scripts(spot=False, instance_store=True)["text/cloud-boothook"]
    assert script.startswith("#cloud-boothook\n#!/bin/sh\n")
    subprocess.run(
        ["/bin/sh", "-c", script], env={**os.environ, "PATH": str(bin_)}, check=True, timeout=60
    )
    assert log.read_text().splitlines() == done
