"""submit.images.names: what Docker understands by a name."""

from __future__ import annotations

import pytest

from submit.errors import WrongUse
from submit.images.names import DOCKER_HUB, EcrPlace, ImageName, ecr_place, parse_image, pin

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("python", DOCKER_HUB, "library/python", "latest", None),
        ("python:3.12-slim", DOCKER_HUB, "library/python", "3.12-slim", None),
        ("lab/ppo", DOCKER_HUB, "lab/ppo", "latest", None),
        ("docker.io/python", DOCKER_HUB, "library/python", "latest", None),
        ("ghcr.io/lab/ppo:1.2", "ghcr.io", "lab/ppo", "1.2", None),
        ("localhost/ppo", "localhost", "ppo", "latest", None),
        ("localhost:5000/a/b/c:x", "localhost:5000", "a/b/c", "x", None),
        (f"python@{DIGEST}", DOCKER_HUB, "library/python", "latest", DIGEST),
        (f"ghcr.io/lab/ppo:1@{DIGEST}", "ghcr.io", "lab/ppo", "1", DIGEST),
    ],
)
def test_parts(text: str, registry: str, repository: str, tag: str, digest: str | None) -> None:
    assert parse_image(text) == ImageName(
        registry=registry, repository=repository, tag=tag, digest=digest
    )


@pytest.mark.parametrize(
    "text",
    ["", "Lab/ppo", "a b", "a:", "a:b:c", "a@sha256:1", "a@", "/a", "a//b", "ghcr.io/", "-a"],
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(WrongUse):
        parse_image(text)


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("python", f"python@{DIGEST}"),
        ("python:3.12", f"python@{DIGEST}"),
        ("localhost:5000/ppo", f"localhost:5000/ppo@{DIGEST}"),
        ("localhost:5000/lab/ppo:1", f"localhost:5000/lab/ppo@{DIGEST}"),
        (f"ghcr.io/lab/ppo:1@sha256:{'f' * 64}", f"ghcr.io/lab/ppo@{DIGEST}"),
    ],
)
def test_pinned_to_a_digest(text: str, pinned: str) -> None:
    assert pin(text, DIGEST) == pinned


@pytest.mark.parametrize(
    ("registry", "region"),
    [
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com", "eu-west-1"),
        ("123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("123456789012.dkr-ecr.eu-west-1.on.aws", "eu-west-1"),
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.org", None),
        ("public.ecr.aws", None),
        ("ghcr.io", None),
    ],
)
def test_amazons_registries(registry: str, region: str | None) -> None:
    assert ecr_place(registry) == (EcrPlace("123456789012", region) if region else None)


@pytest.mark.parametrize(
    ("registry", "local"),
    [
        ("localhost", True),
        ("localhost:5000", True),
        ("127.0.0.1:5000", True),
        ("[::1]:5000", True),
        ("localhost.evil.org", False),
        ("127.evil.org", False),
        ("ghcr.io", False),
    ],
)
def test_plain_http_is_for_this_machine_alone(registry: str, local: bool) -> None:  # noqa: FBT001
    name = ImageName(registry=registry, repository="a", tag="b")
    assert name.is_local is local
