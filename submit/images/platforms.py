"""For which machines an image is built, and whether a queue's are among them. Pure.

Reads what registries answer: an index of several platforms, or a single image's manifest, in
OCI's types and Docker's (OCI Image Format, "image index" and "image manifest"; Distribution,
"Image manifest version 2, schema 2").
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

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
_T = TypeVar("_T")


_OTHER_NAMES = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64"}
"""Under which some tools file what Go, and so Docker, calls otherwise."""
_CONFIG_TYPES = frozenset(
    {
        "",
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
        "application/octet-stream",  # Docker 1.10's
    }
)
"""Of the configuration of an image; charts and other artifacts have their own."""
_ATTESTATION = "vnd.docker.reference.type"
"""An annotation of what stands beside images in an index (BuildKit)."""
_MOST_UNNAMED = 8
_DEEPEST = 2

Kind = Literal["manifests", "blobs"]
Ask = Callable[[Kind, str], bytes | None]
"""Fetches by digest; None for what its registry keeps to itself."""


class Unreadable(ValueError):
    """The text is no answer that a registry gives about an image."""


class NoImage(ValueError):
    """It is something else that registries hold; its text says what."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An image as its registry has it. `platforms` are such as `linux/arm64`; none where the
    registry did not say.
    """

    digest: str
    platforms: tuple[str, ...]


class _Platform(msgspec.Struct, frozen=True):
    architecture: str = ""
    os: str = ""


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    digest: str
    media_type: str = ""
    platform: _Platform | None = None
    annotations: dict[str, str] | None = None


class _Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """An index has `manifests`, a single image a `config`."""

    schema_version: int = 2
    manifests: tuple[_Entry, ...] | None = None
    config: _Entry | None = None


def platforms_of(body: bytes, ask: Ask, depth: int = 0) -> tuple[str, ...]:
    """The platforms of the index or the single image of which that is the manifest; `ask` is
    asked for what it does not say itself.

    Raises Unreadable, and NoImage for what is none.
    """
    manifest = _decode(body, _Manifest)
    if manifest.manifests is not None:
        return _platforms_in(manifest.manifests, ask, depth)
    if manifest.config is None:
        old = manifest.schema_version == 1
        raise Unreadable(
            "Docker's first format, which no engine of today runs"
            if old
            else "neither an index nor an image"
        )
    if manifest.config.media_type not in _CONFIG_TYPES:
        raise NoImage(manifest.config.media_type)
    told = ask("blobs", manifest.config.digest)
    if told is None:
        return ()
    one = _text(_decode(told, _Platform))
    return (one,) if one else ()


def _platforms_in(entries: Sequence[_Entry], ask: Ask, depth: int) -> tuple[str, ...]:
    """Each once. Into images whose platform the index does not tell is looked."""
    found = []
    unnamed = []
    for entry in entries:
        platform = entry.platform or _Platform()
        if platform.os == "unknown" or _ATTESTATION in (entry.annotations or {}):
            continue
        if _text(platform):
            found.append(_text(platform))
        elif entry.media_type in {"", *INDEX_TYPES, *MANIFEST_TYPES} and depth < _DEEPEST:
            unnamed.append(entry.digest)
    for digest in unnamed[:_MOST_UNNAMED]:
        body = ask("manifests", digest)
        if body is not None:
            with contextlib.suppress(NoImage):  # a signature, perhaps, beside the images
                found += platforms_of(body, ask, depth + 1)
    return tuple(dict.fromkeys(found))


def _decode(body: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise Unreadable(str(err)) from err


def _text(platform: _Platform) -> str:
    """Such as `linux/arm64`; empty where the architecture is not told."""
    arch = platform.architecture.lower()
    return f"{platform.os.lower() or 'linux'}/{_OTHER_NAMES.get(arch, arch)}" if arch else ""


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
