"""For which machines an image is built, and whether a queue's are among them. Pure.

Reads what registries answer: an index of several platforms, or a single image's manifest, in
OCI's types and Docker's (OCI Image Format, "image index" and "image manifest"; Distribution,
"Image manifest version 2, schema 2").
"""

from __future__ import annotations

import msgspec

from submit.errors import Refused
from submit.fleet import Fleet

INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
"""What the platforms of images call the architectures of EC2."""


class Unreadable(ValueError):
    """The text is no answer that a registry gives about an image."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An image as its registry has it. `platforms` are such as `linux/arm64`; none where the
    registry did not say.
    """

    digest: str
    platforms: tuple[str, ...]


class _Platform(msgspec.Struct, frozen=True):
    architecture: str
    os: str


class _Entry(msgspec.Struct, frozen=True):
    digest: str
    platform: _Platform | None = None


class _Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """An index has `manifests`, a single image a `config`."""

    media_type: str = ""
    manifests: tuple[_Entry, ...] | None = None
    config: _Entry | None = None


def read_manifest(body: bytes) -> tuple[tuple[str, ...], str | None]:
    """The platforms of an index; or, of a single image's manifest, the digest of the
    configuration that tells its platform.

    Raises Unreadable.
    """
    try:
        manifest = msgspec.json.decode(body, type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise Unreadable(str(err)) from err
    if manifest.manifests is not None:
        named = [entry.platform for entry in manifest.manifests if entry.platform]
        # Attestations stand in an index as unknown/unknown (BuildKit).
        return tuple(dict.fromkeys(_text(one) for one in named if one.os != "unknown")), None
    if manifest.config is not None:
        return (), manifest.config.digest
    raise Unreadable("neither an index nor an image")


def read_config(body: bytes) -> tuple[str, ...]:
    """The one platform of a single image. Raises Unreadable."""
    try:
        return (_text(msgspec.json.decode(body, type=_Platform)),)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise Unreadable(str(err)) from err


def refuse_other_platform(image: str, found: Found, fleet: Fleet, queue_name: str) -> None:
    """Raises Refused for an image that the queue's machines can't run, with the ways out."""
    queue = fleet.queues[queue_name]
    wanted = f"linux/{ARCHITECTURES.get(queue.arch, queue.arch)}"
    if not found.platforms or wanted in found.platforms:
        return
    others = [
        name
        for name, other in sorted(fleet.queues.items())
        if f"linux/{ARCHITECTURES.get(other.arch, other.arch)}" in found.platforms
        and (other.gpus > 0) == (queue.gpus > 0)
    ]
    others.sort(key=lambda name: (fleet.queues[name].spot != queue.spot, name))
    elsewhere = f", or --queue {others[0]}" if others else ""
    raise Refused(
        "other-platform",
        f"{image} is built for {', '.join(found.platforms)}, and {queue_name} "
        f"({queue.instance_type}) runs {wanted}",
        f"submit image build --push --archs {wanted}{elsewhere}",
    )


def _text(platform: _Platform) -> str:
    return f"{platform.os}/{platform.architecture}"
