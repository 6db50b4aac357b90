"""Images in Amazon's private registries. Speaks boto3, which is loaded when needed."""

from __future__ import annotations

import base64
import hashlib
import urllib.error
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from submit.backends.aws_errors import answered
from submit.errors import ServiceFailed
from submit.images.fetching import Denied, NoAnswer, NotFound, fetch
from submit.images.names import EcrPlace, ImageName
from submit.images.platforms import (
    INDEX_TYPES,
    MANIFEST_TYPES,
    Found,
    Kind,
    Unreadable,
    platforms_of,
)
from submit.images.registry import Credentials

ABSENT = frozenset({"ImageNotFound", "InvalidImageDigest", "InvalidImageTag"})
DENIED = frozenset({"aws-AccessDeniedException", "no-credentials", "expired", "bad-credentials"})


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    """An image that a repository holds, as far as its registry tells."""

    tags: tuple[str, ...]
    digest: str | None = None
    pushed: str | None = None
    size_bytes: int | None = None


def look_up(image: ImageName, place: EcrPlace) -> Found:
    """The image as ECR has it: one call for an index, two for a single image. Raises
    NotFound, Denied, NoAnswer, and NoImage for what is none.
    """
    client = _client(place.region)
    which = {"imageDigest": image.digest} if image.digest else {"imageTag": image.tag}
    try:
        answer = answered(
            client.batch_get_image,
            registryId=place.account,
            repositoryName=image.repository,
            imageIds=[which],
            acceptedMediaTypes=[*INDEX_TYPES, *MANIFEST_TYPES],
        )
    except ServiceFailed as err:
        if err.slug == "aws-RepositoryNotFoundException":
            raise NotFound from err
        raise (Denied if err.slug in DENIED else NoAnswer)(err.message) from err
    if not answer["images"]:
        raise _failure(answer["failures"])
    text = answer["images"][0]["imageManifest"].encode()

    def ask(kind: Kind, digest: str) -> bytes | None:
        if kind == "manifests":
            return _manifest(client, image, place, digest)
        return _blob(client, image, place, digest)

    try:
        platforms = platforms_of(text, ask)
    except Unreadable as err:
        raise NoAnswer(f"its answer can't be read: {err}") from err
    except ServiceFailed as err:
        raise NoAnswer(err.message) from err
    return Found(digest=f"sha256:{hashlib.sha256(text).hexdigest()}", platforms=platforms)


def login(place: EcrPlace) -> Credentials:
    """User and password for `docker login`, good for 12 hours. Raises ServiceFailed."""
    client = _client(place.region)
    answer = answered(client.get_authorization_token)
    token = answer["authorizationData"][0]["authorizationToken"]
    user, _, password = base64.b64decode(token).decode().partition(":")
    return user, password


def list_images(image: ImageName, place: EcrPlace) -> list[Tagged]:
    """The tagged images of the repository, the latest first. Raises ServiceFailed."""
    client = _client(place.region)
    pages = client.get_paginator("describe_images").paginate(
        registryId=place.account,
        repositoryName=image.repository,
        filter={"tagStatus": "TAGGED"},
    )
    details = answered(lambda: [one for page in pages for one in page["imageDetails"]])
    details.sort(key=lambda one: one["imagePushedAt"], reverse=True)
    return [
        Tagged(
            tags=tuple(one.get("imageTags", ())),
            digest=one["imageDigest"],
            pushed=one["imagePushedAt"].isoformat(timespec="minutes"),
            size_bytes=one.get("imageSizeInBytes"),
        )
        for one in details
    ]


def _failure(failures: Sequence[Mapping[str, Any]]) -> Exception:
    """Why there is no image in the answer (ECR API Reference, "ImageFailure")."""
    if all(one.get("failureCode") in ABSENT for one in failures):
        return NotFound()
    return NoAnswer(str(failures[0].get("failureReason") or failures[0].get("failureCode")))


def _manifest(client: Any, image: ImageName, place: EcrPlace, digest: str) -> bytes | None:
    answer = answered(
        client.batch_get_image,
        registryId=place.account,
        repositoryName=image.repository,
        imageIds=[{"imageDigest": digest}],
        acceptedMediaTypes=[*INDEX_TYPES, *MANIFEST_TYPES],
    )
    images = answer["images"]
    return images[0]["imageManifest"].encode() if images else None


def _blob(client: Any, image: ImageName, place: EcrPlace, digest: str) -> bytes | None:
    """None where ECR does not hand it out: who may look an image up may not always pull it."""
    try:
        url = answered(
            client.get_download_url_for_layer,
            registryId=place.account,
            repositoryName=image.repository,
            layerDigest=digest,
        )["downloadUrl"]
    except ServiceFailed:
        return None
    try:
        return fetch(url)
    except urllib.error.HTTPError as err:
        raise NoAnswer(f"it answers {err.code} {err.reason}") from err


def _client(region: str) -> Any:
    import boto3  # noqa: PLC0415 # takes a third of a second

    session = answered(boto3.session.Session, region_name=region)
    return answered(session.client, service_name="ecr")
