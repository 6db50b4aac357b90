"""Images for the runs, and the key that they track themselves with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from submit.errors import Refused
from submit.session import Session
from submit.stacks import load_fleet
from submit.tracking.wanted import wandb_secret

if TYPE_CHECKING:
    from submit.images.ecr import Tagged


def image_repository(session: Session) -> str:
    """Where the stack's images go. Raises Refused where it has no repository."""
    fleet = load_fleet(session)
    if not fleet.image_repository:
        raise Refused(
            "no-repository",
            f"the stack {fleet.stack} has no repository for images",
            f"--repository REPOSITORY, or pulumi config set repository true --stack {fleet.stack}, "
            f"then pulumi up --stack {fleet.stack}",
        )
    return fleet.image_repository


def build_image(
    image: str,
    *,
    archs: Sequence[str] | str | None = (),
    push: bool = False,
    context: Path | None = None,
    dockerfile: Path | None = None,
    cache: bool = False,
    arguments: Sequence[str] = (),
) -> str:
    """Builds a folder's image with Docker (submit.images.build); its name with its tag."""
    from submit.images.build import build_image as build  # noqa: PLC0415 # starts Docker

    return build(
        image,
        archs=archs,
        push=push,
        context=context or Path(),
        dockerfile=dockerfile,
        cache=cache,
        arguments=arguments,
    )


def push_image(source: str, target: str) -> str:
    """Pushes an image of this machine's Docker under another name; that name."""
    from submit.images.build import push_image as push  # noqa: PLC0415 # starts Docker

    return push(source, target)


def images(session: Session, repository: str) -> list[Tagged]:
    """The tagged images there, the latest first where the registry says when they came."""
    from submit.images.listing import list_images  # noqa: PLC0415 # asks the registry

    return list_images(repository, session.environ)


def store_wandb_key(session: Session, key: str) -> None:
    """Runs of the stack that start from now on have that key of Weights & Biases.

    Raises Refused for a stack that has no secret for it.
    """
    from submit.tracking.secret import put_secret  # noqa: PLC0415 # speaks boto3

    put_secret(wandb_secret(load_fleet(session)), key)
