"""What a container gets of its host: volumes, mounts, devices, limits. Pure.

A local process sees no volume: it has this machine's files.
"""

from __future__ import annotations

import re
from typing import Any

from sandbox.batch import limits
from sandbox.batch.rules import refusal

_VOLUME = re.compile("[A-Za-z0-9_-]{1,255}")  # API Reference, Volume, name
_ULIMIT = re.compile(
    "core|cpu|data|fsize|locks|memlock|msgqueue|nice|nofile|nproc|rss|rtprio|rttime|sigpending|stack"
)  # API Reference, Ulimit, name
_TMPFS_OPTION = re.compile(
    "defaults|ro|rw|(no)?(suid|dev|exec|atime|diratime|relatime|strictatime)|a?sync|dirsync|remount"
    "|(no)?mand|r?(bind|private|shared|slave)|r?unbindable|(mode|uid|gid|nr_inodes|nr_blocks|mpol)(=.*)?"
)  # API Reference, Tmpfs, mountOptions


def check(container: dict[str, Any]) -> None:
    """Raises ClientError for volumes, mount points, ulimits or linuxParameters that AWS refuses."""
    _check_volumes(container)
    _check_ulimits(container.get("ulimits", []))
    _check_linux(container.get("linuxParameters", {}))


def _check_volumes(container: dict[str, Any]) -> None:
    volumes = container.get("volumes", [])
    names = [volume.get("name") for volume in volumes]
    for name in names:
        if not _VOLUME.fullmatch(name or ""):
            raise refusal("volumes", f"the volume name {name!r} is not legal")
    if len(set(names)) < len(names):
        raise refusal("volumes", "volumes has a name twice")
    for mount in container.get("mountPoints", []):
        if mount.get("sourceVolume") not in names:
            raise refusal(
                "volumes", f"mountPoints.sourceVolume {mount.get('sourceVolume')!r}: no volume"
            )
    for volume in volumes:
        if volume.get("efsVolumeConfiguration"):
            _check_efs(volume["efsVolumeConfiguration"], has_role="jobRoleArn" in container)


def _check_efs(efs: dict[str, Any], *, has_role: bool) -> None:
    """API Reference, EFSVolumeConfiguration and EFSAuthorizationConfig."""
    encrypted = efs.get("transitEncryption") == "ENABLED"
    authorization = efs.get("authorizationConfig", {})
    limits.EFS_PORT.check(efs.get("transitEncryptionPort", 0))
    limits.EFS_ROOT.check(len(efs.get("rootDirectory", "/")))
    if authorization.get("accessPointId"):
        if efs.get("rootDirectory", "/") != "/":
            raise refusal("volumes", "rootDirectory must be / or left out with an EFS access point")
        if not encrypted:
            raise refusal("volumes", "an EFS access point needs transitEncryption ENABLED")
    if authorization.get("iam") == "ENABLED":
        if not encrypted:
            raise refusal("volumes", "EFS IAM authorization needs transitEncryption ENABLED")
        if not has_role:
            raise refusal("volumes", "EFS IAM authorization needs a jobRoleArn")


def _check_ulimits(ulimits: list[dict[str, Any]]) -> None:
    names = [limit["name"] for limit in ulimits]
    if len(set(names)) < len(names):
        raise refusal("ulimits", "ulimits has a name twice")
    for limit in ulimits:
        if not _ULIMIT.fullmatch(limit["name"]):
            raise refusal(
                "ulimits",
                f"the ulimit {limit['name']!r}: the names are {_ULIMIT.pattern.replace('|', ', ')}",
            )
        if limit["softLimit"] > limit["hardLimit"]:
            raise refusal("ulimits", f"the soft limit of {limit['name']} is above its hard limit")


def _check_linux(parameters: dict[str, Any]) -> None:
    """API Reference, LinuxParameters and Tmpfs."""
    swap, swappiness = parameters.get("maxSwap"), parameters.get("swappiness")
    if swappiness is not None and not 0 <= swappiness <= 100:  # noqa: PLR2004 # API Reference
        raise refusal("Linux parameters", f"swappiness is {swappiness}: it is between 0 and 100")
    if swap is not None and swap < 0:
        raise refusal("Linux parameters", f"maxSwap is {swap}: it is 0 or more")
    if parameters.get("sharedMemorySize", 1) < 1:
        raise refusal(
            "Linux parameters",
            f"sharedMemorySize is {parameters['sharedMemorySize']}: it is 1 or more",
        )
    for mount in parameters.get("tmpfs", []):
        if not mount["containerPath"].startswith("/"):
            raise refusal(
                "Linux parameters",
                f"tmpfs.containerPath {mount['containerPath']!r} must be absolute",
            )
        if mount["size"] < 1:
            raise refusal("Linux parameters", f"tmpfs.size is {mount['size']}: it is 1 or more")
        for option in mount.get("mountOptions", []):
            if not _TMPFS_OPTION.fullmatch(option):
                raise refusal(
                    "Linux parameters", f"tmpfs.mountOptions has {option!r}, which is none"
                )
