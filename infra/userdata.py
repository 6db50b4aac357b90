"""What a machine does before it takes jobs: EC2 user data. Pure."""

from __future__ import annotations

import base64

# The agent then stops the containers with SIGTERM when EC2 gives its two minutes' notice.
_SPOT_DRAINING = """\
#!/bin/sh
echo ECS_ENABLE_SPOT_INSTANCE_DRAINING=true >> /etc/ecs/ecs.config"""

# A boot hook runs before Docker starts, at each boot. EC2 names its local disks so in their
# model; several become one by striping where the image can do that. Without a disk, or if one
# can not be formatted, Docker stays on the root volume.
_DOCKER_ON_INSTANCE_STORE = """\
#cloud-boothook
#!/bin/sh
if mountpoint -q /var/lib/docker; then exit 0; fi
set -- $(lsblk --nodeps --paths --noheadings --output NAME,MODEL | awk '/Instance Storage/ { print $1 }')
if [ $# -eq 0 ]; then exit 0; fi
if [ $# -gt 1 ] && command -v mdadm > /dev/null &&
    mdadm --create /dev/md0 --level=0 --run --raid-devices=$# "$@"; then
    set -- /dev/md0
fi
mkfs.xfs -f "$1" && mkdir -p /var/lib/docker && mount -o noatime "$1" /var/lib/docker"""

_BOUNDARY = "==RUNFLEET=="


def user_data(*, spot: bool, instance_store: bool) -> str | None:
    """Base64 of MIME multipart, None where nothing is to do: Batch adds a part of its own, and
    refuses any other form.
    """
    parts = []
    if instance_store:
        parts.append(("cloud-boothook", _DOCKER_ON_INSTANCE_STORE))
    if spot:
        parts.append(("x-shellscript", _SPOT_DRAINING))
    if not parts:
        return None
    document = (
        f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n'
        + "".join(_part(kind, script) for kind, script in parts)
        + f"--{_BOUNDARY}--\n"
    )
    return base64.b64encode(document.encode("ascii")).decode("ascii")


def _part(kind: str, script: str) -> str:
    return f'--{_BOUNDARY}\nContent-Type: text/{kind}; charset="us-ascii"\n\n{script}\n'
