"""Which images a repository holds. Asks its registry."""

from __future__ import annotations

from collections.abc import Mapping

from submit.errors import Refused, ServiceFailed
from submit.images.credentials import docker_credentials
from submit.images.ecr import Tagged
from submit.images.fetching import Denied, NoAnswer, NotFound
from submit.images.names import ecr_place, parse_image
from submit.images.registry import list_tags


def list_images(repository: str, environ: Mapping[str, str]) -> list[Tagged]:
    """The tagged images: from Amazon's registries with size and time, from others the tags alone.

    Raises Refused and ServiceFailed.
    """
    image = parse_image(repository)
    place = ecr_place(image.registry)
    if place:
        from submit.images import ecr  # noqa: PLC0415 # loads boto3

        return ecr.list_images(image, place)
    try:
        tags = list_tags(image, lambda: docker_credentials(image.registry, environ))
    except NotFound as err:
        raise Refused(
            "no-repository",
            f"{image.registry} has no repository {image.repository}",
            "submit image build --push makes the first image; submit image ls --repository REPOSITORY",
        ) from err
    except Denied as err:
        raise Refused(
            "image-denied", f"{image.registry}: {err}", f"docker login {image.registry}"
        ) from err
    except NoAnswer as err:
        raise ServiceFailed(
            "registry", f"{image.registry} could not be asked: {err}", "the same line again"
        ) from err
    return [Tagged(tags=(tag,)) for tag in sorted(tags)]
