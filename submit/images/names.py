"""An image's name, taken apart as Docker does. Pure.

Distribution's "reference" grammar: a first part with a dot, a colon, or `localhost` is a
registry; without one the image is Docker Hub's, below `library/` if it has no other owner.
"""

from __future__ import annotations

import re

import msgspec

from submit.errors import WrongUse

DOCKER_HUB = "registry-1.docker.io"
_HUB_NAMES = frozenset({"docker.io", "index.docker.io", DOCKER_HUB})
_ECR = re.compile(
    r"(?P<account>\d{12})\.dkr[.-]ecr(-fips)?\.(?P<region>[a-z0-9-]+)"
    r"\.(amazonaws\.com(\.cn)?|on\.aws|on\.amazonwebservices\.com\.cn)"
)
_PART = r"[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(f"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_LOOPBACK = re.compile(r"127(\.\d{1,3}){3}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ImageName(msgspec.Struct, frozen=True, kw_only=True):
    """Where an image is: `tag` or `digest` says which one, a digest before a tag."""

    registry: str
    repository: str
    tag: str
    digest: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether the registry is one on this machine, which speaks plain HTTP."""
        host = self.registry.rpartition(":")[0] or self.registry
        return host in {"localhost", "[::1]"} or bool(_LOOPBACK.fullmatch(host))


class EcrPlace(msgspec.Struct, frozen=True):
    """The account and region of a registry of Amazon's."""

    account: str
    region: str


def parse_image(text: str) -> ImageName:
    """Raises WrongUse for what is no image's name."""
    rest, at, digest = text.partition("@")
    first, slash, path = rest.partition("/")
    if slash and (set(".:") & set(first) or first == "localhost"):
        registry = first
    else:
        registry, path = DOCKER_HUB, rest
    name, colon, tag = path.partition(":")
    if registry in _HUB_NAMES:
        registry = DOCKER_HUB
        name = name if "/" in name else f"library/{name}"
    if (
        not _REPOSITORY.fullmatch(name)
        or (colon and not _TAG.fullmatch(tag))
        or (at and not _DIGEST.fullmatch(digest))
    ):
        raise WrongUse("image-name", f"{text!r} is no image's name", "--image REPOSITORY:TAG")
    return ImageName(registry=registry, repository=name, tag=tag or "latest", digest=digest or None)


def has_tag(text: str) -> bool:
    """Whether the name says which one is meant."""
    return "@" in text or ":" in text.rpartition("/")[2]


def pin(text: str, digest: str) -> str:
    """The image of that name that has this digest, whatever its tag will mean later."""
    bare = text.partition("@")[0]
    path, slash, last = bare.rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}@{digest}"


def ecr_place(registry: str) -> EcrPlace | None:
    """Where in AWS the registry is, if it is one of Amazon's private ones."""
    match = _ECR.fullmatch(registry)
    return EcrPlace(match["account"], match["region"]) if match else None
