"""An experiment has one image: a tag that moves changes none of its later jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from submit import api
from submit.errors import Refused, ServiceFailed
from submit.experiment import Experiment, experiment_id
from submit.images import check
from submit.images.fetching import NotFound
from submit.images.names import ImageName
from submit.images.platforms import Found
from submit.plan import DIGEST_TAG
from submit.standing import LOOK_HOLDS_S
from tests.submit.fake import FLEET, Clock, FakeBatch, session

OLD, NEW = (f"sha256:{letter * 64}" for letter in "ab")
EXPERIMENT = Experiment(command=("x",), seeds=(1, 2), image="ghcr.io/lab/ppo:1")


class Tag:
    """What the tag means now."""

    def __init__(self) -> None:
        self.digest = OLD
        self.asked = 0
        self.gone = False

    def look_up(self, image: ImageName, _credentials: Any) -> Found:
        assert image.repository == "lab/ppo"
        self.asked += 1
        if self.gone:
            raise NotFound
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
        for definition in batch.registered.values()
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


FIRST = ["DescribeJobDefinitions", "RegisterJobDefinition", "SubmitJob"]


def test_a_first_submission_with_its_image_looked_up_takes_three_calls(
    ours: api.Session, batch: FakeBatch, tag: Tag
) -> None:
    api.send(ours, planned(ours))
    assert (batch.calls, tag.asked) == (FIRST, 1)


def test_another_experiment_of_the_same_kind_takes_three_as_well(
    ours: api.Session, batch: FakeBatch, tag: Tag
) -> None:
    api.send(ours, planned(ours))
    batch.calls.clear()
    other = api.plan(ours, msgspec.structs.replace(EXPERIMENT, seeds=(3,)), "c6g-medium")
    api.send(ours, api.check_image(ours, other))
    assert batch.calls == ["DescribeJobDefinitions", "ListJobs", "SubmitJob"]
    assert images(batch) == [f"ghcr.io/lab/ppo@{tag.digest}"]


@pytest.mark.parametrize("gone", [False, True])
def test_a_colleague_s_is_found_when_the_tag_has_moved_or_is_gone(
    ours: api.Session, batch: FakeBatch, tag: Tag, tmp_path: Path, *, gone: bool
) -> None:
    api.send(ours, planned(ours))
    tag.digest, tag.gone = NEW, gone
    (tmp_path / "theirs").mkdir()
    with session(tmp_path / "theirs", batch) as theirs:
        theirs.fleet = ours.fleet
        plan = planned(theirs)
        assert plan.submission.digest == OLD
        assert api.send(theirs, plan).adopted == 1
    assert len(batch.jobs) == 1


def test_a_moved_tag_is_a_revision_of_the_same_definition(
    ours: api.Session, batch: FakeBatch, tag: Tag
) -> None:
    api.send(ours, planned(ours))
    tag.digest = NEW
    other = api.plan(ours, msgspec.structs.replace(EXPERIMENT, seeds=(3,)), "c6g-medium")
    api.send(ours, api.check_image(ours, other))
    assert images(batch) == [f"ghcr.io/lab/ppo@{digest}" for digest in (OLD, NEW)]
    assert [job.definition[-2:] for job in batch.jobs.values()] == [":1", ":2"]


def test_an_image_that_is_gone_is_refused_when_nobody_has_sent_any_of_it(
    ours: api.Session, batch: FakeBatch, tag: Tag
) -> None:
    tag.gone = True
    with pytest.raises(Refused, match="has no image"):
        planned(ours)
    assert batch.calls == ["DescribeJobDefinitions"]


def test_who_waits_before_sending_looks_again(
    ours: api.Session, batch: FakeBatch, tag: Tag, tmp_path: Path
) -> None:
    plan = planned(ours)
    assert tag.asked == 1
    (tmp_path / "theirs").mkdir()
    with session(tmp_path / "theirs", batch) as theirs:
        theirs.fleet = ours.fleet
        api.send(theirs, planned(theirs))
    ours.clock.sleep(LOOK_HOLDS_S + 1)
    assert api.send(ours, plan).adopted == 1
    assert len(batch.jobs) == 1


def test_who_was_quicker_is_found_by_the_revision(
    ours: api.Session, batch: FakeBatch, tag: Tag, tmp_path: Path
) -> None:
    plan = planned(ours)
    tag.digest = NEW
    (tmp_path / "theirs").mkdir()
    with session(tmp_path / "theirs", batch) as theirs:
        theirs.fleet = ours.fleet
        api.send(theirs, planned(theirs))
    assert api.send(ours, plan).adopted == 1
    assert len(batch.jobs) == 1


def test_a_look_that_fails_says_that_nothing_was_sent(
    ours: api.Session, batch: FakeBatch, tag: Tag, monkeypatch: pytest.MonkeyPatch
) -> None:
    def expired(_name: str) -> Any:
        raise ServiceFailed("aws-expired", "the credentials have expired", "aws sso login")

    monkeypatch.setattr(batch, "definitions", expired)
    with pytest.raises(ServiceFailed, match="expired\nnothing was sent"):
        planned(ours)
    assert tag.asked == 1
