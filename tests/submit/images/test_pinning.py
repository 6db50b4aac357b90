"""An experiment has one image: a tag that moves changes none of its later jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from submit import api
from submit.errors import ServiceFailed
from submit.experiment import Experiment, experiment_id
from submit.images import check
from submit.images.names import ImageName
from submit.images.platforms import Found
from submit.plan import DIGEST_TAG
from tests.submit.fake import FLEET, Clock, FakeBatch, session

OLD, NEW = (f"sha256:{letter * 64}" for letter in "ab")
EXPERIMENT = Experiment(command=("x",), seeds=(1, 2), image="ghcr.io/lab/ppo:1")


class Tag:
    """What the tag means now."""

    def __init__(self) -> None:
        self.digest = OLD
        self.asked = 0

    def look_up(self, image: ImageName, _credentials: Any) -> Found:
        assert image.repository == "lab/ppo"
        self.asked += 1
        return Found(digest=self.digest, platforms=("linux/amd64", "linux/arm64"))


@pytest.fixture
def tag(monkeypatch: pytest.MonkeyPatch) -> Tag:
    found = Tag()
    monkeypatch.setattr(check, "look_up", found.look_up)
    return found


@pytest.fixture
def batch() -> FakeBatch:
    return FakeBatch(Clock())


@pytest.fixture
def ours(tmp_path: Path, batch: FakeBatch) -> Iterator[api.Session]:
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(FLEET))
    with session(tmp_path, batch) as made:
        made.fleet = str(tmp_path / "fleet.json")
        yield made


def planned(ours: api.Session) -> api.Plan:
    return api.check_image(ours, api.plan(ours, EXPERIMENT, "c6g-medium"))


def images(batch: FakeBatch) -> list[str]:
    return [
        definition.request["containerProperties"]["image"]
        for definition in batch.definitions.values()
    ]


def test_the_definition_has_the_digest_and_the_identity_has_not(
    ours: api.Session, batch: FakeBatch, tag: Tag
) -> None:
    plan = planned(ours)
    api.send(ours, plan)
    assert tag.asked == 1
    assert images(batch) == [f"ghcr.io/lab/ppo@{OLD}"]
    assert plan.submission.experiment_id == experiment_id(EXPERIMENT)
    assert plan.submission.jobs[0].request["tags"][DIGEST_TAG] == OLD


def test_what_was_begun_goes_on_with_its_image(
    ours: api.Session, batch: FakeBatch, tag: Tag
) -> None:
    batch.faults = ["refuse"]
    with pytest.raises(ServiceFailed):
        api.send(ours, planned(ours))
    batch.faults = ["lost", ""]
    api.send(ours, planned(ours))
    tag.digest = NEW
    again = planned(ours)
    assert again.submission.digest == OLD
    api.send(ours, again)
    batch.end("job-0", ("FAILED", "boom"))
    api.retry(ours, api.find(ours, "latest"))
    assert images(batch) == [f"ghcr.io/lab/ppo@{OLD}"]
    assert len(batch.jobs) == 2


def test_what_was_sent_unchecked_stays_as_it_is(
    ours: api.Session, batch: FakeBatch, tag: Tag
) -> None:
    api.send(ours, api.plan(ours, EXPERIMENT, "c6g-medium"))
    assert planned(ours).submission.digest is None
    assert tag.asked == 0
    assert images(batch) == ["ghcr.io/lab/ppo:1"]
