"""submit image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from submit import api
from submit.commands.options import Parsed, fleet_option, json_option, stack_option
from submit.commands.text import say, show_json
from submit.errors import WrongUse

repository_option = click.option(
    "--repository", metavar="REPOSITORY", help="Where images go.  [default: the stack's own]"
)


def _argument(text: str) -> str:
    if not text.partition("=")[0] or "=" not in text:
        raise WrongUse(
            "build-arg", f"{text!r} is no NAME=VALUE", "--build-arg REQUIREMENTS=images/my.lock"
        )
    return text


@click.group("image", subcommand_metavar="build|push|ls …")
def command() -> None:
    """Build images, push them, and list those of the team."""


@command.command("build")
@click.argument(
    "folder", default=".", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option(
    "--file",
    "dockerfile",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The Dockerfile.  [default: FOLDER/Dockerfile]",
)
@repository_option
@click.option("--tag", help="[default: a digest of what is built]")
@click.option(
    "--archs", metavar="OS/ARCH,…", help="linux/amd64,linux/arm64.  [default: this machine's]"
)
@click.option("--push", is_flag=True, help="Push it; else it is loaded into this machine's Docker.")
@click.option(
    "--cache", is_flag=True, help="With --push: keep its layers there for other machines."
)
@click.option(
    "--build-arg",
    "arguments",
    multiple=True,
    type=Parsed("name=value", _argument),
    help="Of the Dockerfile; not for secrets.  [repeatable]",
)
@stack_option
@fleet_option
@json_option
def build(folder: Path, **given: Any) -> int:
    """Build the image of FOLDER.

    Its tag is a digest of the files, so equal files are one image, and no tag ever moves.
    """
    with api.Session(fleet=given["fleet"], stack=given["stack"]) as session:
        repository = given["repository"] or api.image_repository(session)
    image = api.build_image(
        f"{repository}:{given['tag']}" if given["tag"] else repository,
        archs=given["archs"],
        push=given["push"],
        context=folder,
        dockerfile=given["dockerfile"],
        cache=given["cache"],
        arguments=given["arguments"],
    )
    _tell(image, as_json=given["as_json"])
    return 0


@command.command("push")
@click.argument("image")
@repository_option
@stack_option
@fleet_option
@json_option
def push(image: str, repository: str | None, as_json: bool, **given: Any) -> int:  # noqa: FBT001 # click passes by name
    """Push IMAGE from this machine's Docker, under its own tag."""
    with api.Session(fleet=given["fleet"], stack=given["stack"]) as session:
        target = repository or api.image_repository(session)
    tag = image.rpartition("/")[2].partition(":")[2] or "latest"
    _tell(api.push_image(image, f"{target}:{tag}"), as_json=as_json)
    return 0


@command.command("ls")
@repository_option
@stack_option
@fleet_option
@json_option
def ls(repository: str | None, as_json: bool, **given: Any) -> int:  # noqa: FBT001 # click passes by name
    """List the repository's images, the latest first."""
    with api.Session(fleet=given["fleet"], stack=given["stack"]) as session:
        where = repository or api.image_repository(session)
        found = api.images(session, where)
    if as_json:
        show_json({"repository": where, "images": [msgspec.to_builtins(one) for one in found]})
        return 0
    from submit.commands.tables import print_table  # noqa: PLC0415 # not for JSON

    say(f"the images of {where}" if found else f"{where} has no images yet")
    if found:
        print_table(
            ("image", "pushed", "MiB"),
            [
                (
                    f"{where}:{', '.join(one.tags)}",
                    one.pushed,
                    None if one.size_bytes is None else one.size_bytes >> 20,
                )
                for one in found
            ],
        )
    return 0


def _tell(image: str, *, as_json: bool) -> None:
    if as_json:
        show_json({"image": image})
        return
    click.echo(image)
    say(f"  next: submit run --image {image} …")
