"""submit.images.ecr against a local AWS's ECR."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.testing import running
from submit.images import ecr
from submit.images.check import check_image
from submit.images.fetching import NoAnswer, NotFound
from submit.images.names import EcrPlace, parse_image
from submit.images.platforms import INDEX_TYPES
from tests.submit.fake import FLEET

pytestmark = pytest.mark.slow
HOST = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
PLACE = EcrPlace("123456789012", "us-east-1")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with running() as sandbox, pytest.MonkeyPatch.context() as patch:
        for name, value in sandbox.env().items():
            patch.setenv(name, value)
        made = sandbox.client("ecr")
        made.create_repository(repositoryName="rl")
        yield made


def index(*archs: str) -> str:
    entries = [
        {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": f"sha256:{number:064x}",
            "size": 1,
            "platform": {"architecture": arch, "os": "linux"},
        }
        for number, arch in enumerate(archs)
    ]
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX_TYPES[0], "manifests": entries})


def test_an_index_is_looked_up_and_pinned(client: Any) -> None:
    for arch in ("amd64", "arm64"):  # ECR wants an index's images to be there
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "x", "size": 1, "digest": f"sha256:{arch[0] * 64}"},
            "layers": [],
        }
        client.put_image(repositoryName="rl", imageManifest=json.dumps(manifest), imageTag=arch)
    client.put_image(
        repositoryName="rl",
        imageManifest=index("amd64", "arm64"),
        imageManifestMediaType=INDEX_TYPES[0],
        imageTag="both",
    )
    found = ecr.look_up(parse_image(f"{HOST}/rl:both"), PLACE)
    assert found.platforms == ("linux/amd64", "linux/arm64")
    notes: list[str] = []
    environ = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}  # ECR is asked there, too
    assert (
        check_image(f"{HOST}/rl:both", FLEET, "c6g-medium", environ, notes.append) == found.digest
    )
    assert notes == []
    tags = [image.tags for image in ecr.list_images(parse_image(f"{HOST}/rl"), PLACE)]
    assert ("both",) in tags


@pytest.mark.parametrize("image", ["rl:none", "none:1", f"rl@sha256:{'9' * 64}"])
@pytest.mark.usefixtures("client")
def test_what_is_not_there(image: str) -> None:
    with pytest.raises(NotFound):
        ecr.look_up(parse_image(f"{HOST}/{image}"), PLACE)


@pytest.mark.usefixtures("client")
def test_docker_is_let_in_as_aws_says() -> None:
    user, password = ecr.login(PLACE)
    assert user == "AWS"
    assert password


def test_an_index_of_which_ecr_tells_no_more_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = {"digest": f"sha256:{'1' * 64}", "size": 1}
    manifest = json.dumps({"schemaVersion": 2, "mediaType": INDEX_TYPES[0], "manifests": [bare]})

    class Client:
        def batch_get_image(self, **asked: Any) -> dict[str, Any]:
            if "imageDigest" in asked["imageIds"][0]:
                error = {"Error": {"Code": "ThrottlingException", "Message": "slower"}}
                raise ClientError(error, "BatchGetImage")
            return {"images": [{"imageManifest": manifest}], "failures": []}

    monkeypatch.setattr(ecr, "_client", lambda _region: Client())
    with pytest.raises(NoAnswer, match="slower"):
        ecr.look_up(parse_image(f"{HOST}/rl:1"), PLACE)


def test_what_ecr_can_not_fetch_is_not_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository that passes another registry's images on may fail to, for the moment."""

    class Client:
        def batch_get_image(self, **_: Any) -> dict[str, Any]:
            failure = {"failureCode": "UpstreamTooManyRequests", "failureReason": "wait a while"}
            return {"images": [], "failures": [failure]}

    monkeypatch.setattr(ecr, "_client", lambda _region: Client())
    with pytest.raises(NoAnswer, match="wait a while"):
        ecr.look_up(parse_image(f"{HOST}/hub/python:3"), PLACE)
