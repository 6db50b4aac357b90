"""Images in Amazon's private registries. Speaks boto3, which is loaded when needed."""

from __future__ import annotations

import base64
import hashlib
import urllib.request
from typing import Any

import msgspec

from submit.backends.aws_errors import answered
from submit.errors import ServiceFailed
from submit.images.names import EcrPlace, ImageName
from submit.images.platforms import (
    INDEX_TYPES,
    MANIFEST_TYPES,
    Found,
    Unreadable,
    read_config,
    read_manifest,
)
from submit.images.registry import MOST_BYTES, TIMEOUT_S, Credentials, Denied, NoAnswer, NotFound

DENIED = frozenset({"aws-AccessDeniedException", "no-credentials", "expired", "bad-credentials"})


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    """An image that a repository holds, as far as its registry tells."""

    tags: tuple[str, ...]
    digest: str | None = None
    pushed: str | None = None
    size_bytes: int | None = None


def look_up(image: ImageName, place: EcrPlace) -> Found:
    """The image as ECR has it: two calls at most. Raises NotFound, Denied and NoAnswer."""
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
        raise NotFound
    text = answer["images"][0]["imageManifest"].encode()
    try:
        platforms, config = read_manifest(text)
        if config:
            platforms = _config_platforms(client, image, place, config)
    except Unreadable as err:
        raise NoAnswer(f"its answer can't be read: {err}") from err
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


def _config_platforms(
    client: Any, image: ImageName, place: EcrPlace, config: str
) -> tuple[str, ...]:
    """The platform of a single image; none where ECR does not hand the configuration out."""
    try:
        url = answered(
            client.get_download_url_for_layer,
            registryId=place.account,
            repositoryName=image.repository,
            layerDigest=config,
        )["downloadUrl"]
    except ServiceFailed:
        return ()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 # AWS signed it
            return read_config(answer.read(MOST_BYTES))
    except OSError as err:
        raise NoAnswer(str(err)) from err


def _client(region: str) -> Any:
    import boto3  # noqa: PLC0415 # takes a third of a second

    session = answered(boto3.session.Session, region_name=region)
    return answered(session.client, service_name="ecr")
