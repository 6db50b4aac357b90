"""Builds an image and pushes it. Starts `docker`; the plan of it is pure.

Passwords go to Docker on its standard input, never on a command line.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from submit.errors import Refused, ServiceFailed, WrongUse
from submit.images.context import context_tag
from submit.images.names import ecr_place, has_tag, parse_image
from submit.images.platforms import ARCHITECTURES

BUILDER = "runfleet"
"""A builder of our own: Docker's default one builds for a single platform at a time."""
KNOWN = tuple(f"linux/{arch}" for arch in ARCHITECTURES.values())


def plan_build(
    image: str,
    *,
    context: str,
    dockerfile: str,
    archs: Sequence[str],
    push: bool,
    cache: bool,
    arguments: Sequence[str] = (),
) -> tuple[str, ...]:
    """The command that builds the image, for the machine's own platform where `archs` is empty.
    With `cache` the layers are kept beside the image in its repository, for other machines.
    `arguments` are the Dockerfile's, as NAME=VALUE.

    Raises WrongUse for platforms that no queue has, or that can't be loaded together.
    """
    for arch in archs:
        if arch not in KNOWN:
            raise WrongUse(
                "archs", f"no queue has machines of {arch!r}", f"--archs {','.join(KNOWN)}"
            )
    if len(archs) > 1 and not push:
        raise WrongUse(
            "archs-push",
            "an image of several platforms can't be loaded into this machine's Docker",
            f"submit image build --push --archs {','.join(archs)}, or one of them",
        )
    parse_image(image)
    command = ["docker", "buildx", "build", "--tag", image, "--file", dockerfile]
    for argument in arguments:
        command += ["--build-arg", argument]
    if archs:
        command += ["--platform", ",".join(archs)]
    command += ["--builder", BUILDER, "--push"] if push else ["--load"]
    if push and cache:
        where = f"type=registry,ref={image.rpartition(':')[0]}:cache"
        # As OCI's manifests: ECR takes no others for a cache.
        command += ["--cache-from", where]
        command += ["--cache-to", f"{where},mode=max,image-manifest=true,oci-mediatypes=true"]
    return (*command, context)


def build_image(
    image: str,
    *,
    archs: Sequence[str] | str | None = (),
    push: bool = False,
    context: Path = Path(),
    dockerfile: Path | None = None,
    cache: bool = False,
    arguments: Sequence[str] = (),
) -> str:
    """Builds the folder's image, pushes it if asked to; its name with its tag. A name without a
    tag gets one that says its content, so that equal files are one image. `archs` may be
    `linux/amd64,linux/arm64`; `arguments` are the Dockerfile's, as NAME=VALUE, and no secrets.

    Raises WrongUse, Refused, and ServiceFailed where Docker fails, which has said why.
    """
    file = dockerfile or context / "Dockerfile"
    archs = tuple(archs.split(",")) if isinstance(archs, str) and archs else tuple(archs or ())
    try:
        tagged = (
            image
            if has_tag(image)
            else f"{image}:{context_tag(context, file, (*archs, *arguments))}"
        )
    except OSError as err:
        raise WrongUse(
            "no-dockerfile",
            f"{err.filename}: {err.strerror}",
            "submit image build --file FILE FOLDER",
        ) from err
    command = plan_build(
        tagged,
        context=str(context),
        dockerfile=str(file),
        archs=archs,
        push=push,
        cache=cache,
        arguments=arguments,
    )
    if push:
        log_in(tagged)
        _make_builder()
    _run(command)
    return tagged


def push_image(source: str, target: str) -> str:
    """Pushes an image of this machine's Docker under the target's name; that name."""
    parse_image(source)
    parse_image(target)
    log_in(target)
    if source != target:
        _run(("docker", "tag", source, target))
    _run(("docker", "push", target))
    return target


def log_in(image: str) -> None:
    """Lets Docker into the image's registry if it is Amazon's; others have their `docker login`."""
    registry = parse_image(image).registry
    place = ecr_place(registry)
    if place is None:
        return
    from submit.images.ecr import login  # noqa: PLC0415 # loads boto3

    user, password = login(place)
    _run(("docker", "login", "--username", user, "--password-stdin", registry), told=password)


def _make_builder() -> None:
    look = ("docker", "buildx", "inspect", BUILDER)
    if _start(look, quiet=True).returncode:
        _run(("docker", "buildx", "create", "--name", BUILDER, "--driver", "docker-container"))


def _run(command: Sequence[str], told: str | None = None) -> None:
    done = _start(command, told)
    if done.returncode:
        if "buildx" in command and _start(("docker", "buildx", "version"), quiet=True).returncode:
            raise Refused(
                "no-buildx",
                "this Docker has no buildx plugin, which builds images",
                "install docker-buildx-plugin or your system's docker-buildx; "
                "then docker buildx version",
            )
        shown = shlex.join(command[:3]) + (" …" if len(command) > 3 else "")  # noqa: PLR2004
        raise ServiceFailed(
            "docker",
            f"`{shown}` ended with {done.returncode}",
            "docker info",
        )


def _start(
    command: Sequence[str], told: str | None = None, *, quiet: bool = False
) -> subprocess.CompletedProcess[str]:
    """Its output goes to standard error: what a command answers is not for programs to read."""
    program = shutil.which(command[0])
    if program is None:
        raise Refused(
            "no-docker",
            f"{command[0]} is not installed here, or not on PATH",
            "install Docker with its buildx plugin; then docker info",
        )
    out = subprocess.DEVNULL if quiet else sys.stderr.fileno() if _has_descriptor() else None
    return subprocess.run(
        [program, *command[1:]],
        input=told,
        stdin=None if told is not None else subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.DEVNULL if quiet else None,
        env=_without_keys(os.environ),
        check=False,
        text=True,
    )


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def _without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Docker and its plugins have no use for the key of W&B."""
    return {name: value for name, value in environ.items() if name != "WANDB_API_KEY"}
