"""How a container is asked for at the command line of docker or podman. Pure.

API Reference, ContainerProperties: each member there names the option of `docker run` that it
stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

LABEL = "runfleet.sandbox"
"""Marks a sandbox's containers; its value is the sandbox's folder."""
_HEEDED = re.compile(
    "PATH|HOME|USER|TMPDIR|(LD|DOCKER|PODMAN|CONTAINERS?|BUILDAH|STORAGE|REGISTRY|XDG|SSL|SSH|DBUS)_.*"
    "|CONTAINER|GO[A-Z]+|.*_PROXY",
    re.IGNORECASE,
)
"""Variables that the engine's own client heeds: a job's must not steer it."""


class Variables(NamedTuple):
    """How variables reach a container, none of them by the command line, which all can read."""

    inherited: dict[str, str]
    """By the client's own environment."""
    filed: dict[str, str]
    """By a file, a line each: the client would heed them itself."""


def variables(environment: Mapping[str, str], secrets: frozenset[str]) -> Variables | str:
    """How they are handed over; a sentence when one can't be."""
    inherited: dict[str, str] = {}
    filed: dict[str, str] = {}
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            return f"the variable {name!r} can't be handed to a container"
        if not _HEEDED.fullmatch(name):
            inherited[name] = value
        elif name in secrets:
            return f"{name} steers the container engine: give the secret another name"
        elif "\n" in name + value:
            return f"{name} steers the container engine: its value must be one line"
        else:
            filed[name] = value
    return Variables(inherited, filed)


def create(
    engine: str,
    *,
    name: str,
    label: str,
    container: Mapping[str, Any],
    variables: Variables,
    env_file: str | None,
) -> list[str]:
    """The command that makes the container."""
    return [
        *(engine, "create", "--name", name, "--label", f"{LABEL}={label}"),
        *("--pull", "never", "--log-driver", "json-file", "--network", "host"),
        *_resources(engine, container),
        *_linux(container.get("linuxParameters", {}), container),
        *_rights(container),
        *_volumes(name, container),
        *(("--env-file", env_file) if env_file else ()),
        *(word for variable in variables.inherited for word in ("--env", variable)),
        container["image"],
        *container["command"],
    ]


def volume_names(name: str, container: Mapping[str, Any]) -> list[str]:
    """The volumes that are made for the container: those without a place on the host."""
    return [
        _volume(name, volume)
        for volume in container.get("volumes", [])
        if not volume.get("host", {}).get("sourcePath")
    ]


def _resources(engine: str, container: Mapping[str, Any]) -> Iterator[str]:
    wanted = {r["type"]: int(r["value"]) for r in container["resourceRequirements"]}
    vcpus, memory = wanted.get("VCPU", container.get("vcpus", 0)), _memory(container)
    yield from ("--cpu-shares", str(1024 * vcpus), "--memory", f"{memory}m")
    gpus = wanted.get("GPU", 0)
    if gpus and engine == "docker":
        yield from ("--gpus", str(gpus))
    elif gpus:
        for number in range(gpus):
            yield from ("--device", f"nvidia.com/gpu={number}")


def _memory(container: Mapping[str, Any]) -> int:
    wanted = {r["type"]: int(r["value"]) for r in container["resourceRequirements"]}
    return int(wanted.get("MEMORY", container.get("memory", 0)))


def _linux(parameters: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    if parameters.get("initProcessEnabled"):
        yield "--init"
    if "sharedMemorySize" in parameters:
        yield from ("--shm-size", f"{parameters['sharedMemorySize']}m")
    if "maxSwap" in parameters:
        yield from ("--memory-swap", f"{_memory(container) + parameters['maxSwap']}m")
        if "swappiness" in parameters:
            yield from ("--memory-swappiness", str(parameters["swappiness"]))
    for mount in parameters.get("tmpfs", []):
        options = ",".join([f"size={mount['size']}m", *mount.get("mountOptions", [])])
        yield from ("--tmpfs", f"{mount['containerPath']}:{options}")
    for device in parameters.get("devices", []):
        inside = device.get("containerPath", device["hostPath"])
        rights = "".join(right[0].lower() for right in device.get("permissions", [])) or "rwm"
        yield from ("--device", f"{device['hostPath']}:{inside}:{rights}")


def _rights(container: Mapping[str, Any]) -> Iterator[str]:
    if container.get("privileged"):
        yield "--privileged"
    if container.get("readonlyRootFilesystem"):
        yield "--read-only"
    if container.get("user"):
        yield from ("--user", container["user"])
    for limit in container.get("ulimits", []):
        yield from ("--ulimit", f"{limit['name']}={limit['softLimit']}:{limit['hardLimit']}")


def _volumes(name: str, container: Mapping[str, Any]) -> Iterator[str]:
    sources = {
        volume.get("name"): volume.get("host", {}).get("sourcePath") or _volume(name, volume)
        for volume in container.get("volumes", [])
    }
    for mount in container.get("mountPoints", []):
        end = ":ro" if mount.get("readOnly") else ""
        source = sources[mount.get("sourceVolume")]
        yield from ("--volume", f"{source}:{mount.get('containerPath')}{end}")


def _volume(name: str, volume: Mapping[str, Any]) -> str:
    """Of the whole task: its containers share it."""
    return f"{name.partition('.')[0]}-{volume.get('name')}"
