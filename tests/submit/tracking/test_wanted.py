"""submit.tracking.wanted: who asks for W&B, and what that takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from submit.errors import Refused, SubmitError
from submit.experiment import Experiment, experiment_id
from submit.fleet import Fleet
from submit.plan import plan_submission
from submit.tracking.wanted import KEY, wandb_secret, wants_tracking, with_tracking
from tests.submit.fake import FLEET

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:runfleet/rl/WANDB_API_KEY-a1b2c3"
TRACKED = msgspec.structs.replace(FLEET, secrets={KEY: ARN})
OWN = msgspec.structs.replace(FLEET, account="local")


def experiment(**fields: Any) -> Experiment:
    return Experiment(**{"command": ("python", "ppo.py"), "image": "i", "seeds": (1, 2), **fields})


TRACK = ("python", "ppo.py", "--track")


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, False),
        ({"group": "g", "name": "n"}, False),
        ({"command": TRACK}, True),
        ({"project": "atari"}, True),
        ({"entity": "lab"}, True),
        ({"command": TRACK, "environment": (("WANDB_MODE", "offline"),)}, False),
        ({"command": TRACK, "environment": (("WANDB_MODE", "online"),)}, True),
        ({"command": ("python", "--track-all", "not--track")}, False),
    ],
)
def test_who_asks_for_it(fields: dict[str, Any], *, wanted: bool) -> None:
    assert wants_tracking(experiment(**fields)) is wanted


def test_the_stacks_key_goes_with_it_by_name() -> None:
    found = with_tracking(experiment(project="atari"), TRACKED, lambda: pytest.fail("asked"))
    assert found.secrets == (KEY,)
    container = plan_submission(found, TRACKED, "c6g-medium", user="ada").definition.request[
        "containerProperties"
    ]
    assert container["secrets"] == [{"name": KEY, "valueFrom": ARN}]


def test_a_key_that_was_asked_for_by_name_is_not_given_twice() -> None:
    asked = experiment(project="atari", secrets=(KEY,))
    assert with_tracking(asked, TRACKED, bool) == asked


def test_without_tracking_nothing_is_needed() -> None:
    assert with_tracking(experiment(), FLEET, bool) == experiment()
    assert with_tracking(experiment(), OWN, bool) == experiment()


@pytest.mark.parametrize(("fleet", "how"), [(FLEET, "pulumi config set --secret"), (OWN, "login")])
def test_tracking_without_a_key_is_refused(fleet: Fleet, how: str) -> None:
    with pytest.raises(Refused) as found:
        with_tracking(experiment(command=TRACK), fleet, lambda: False)
    assert found.value.message.startswith("--track asks for Weights & Biases")
    assert how in found.value.hint


def test_on_the_own_machine_ones_own_key_will_do() -> None:
    assert with_tracking(experiment(command=TRACK), OWN, lambda: True).secrets == (KEY,)


@pytest.mark.parametrize(
    ("fields", "slug"),
    [
        ({"project": "a/b"}, "wandb-project"),
        ({"project": "x" * 129}, "wandb-project"),
        ({"entity": "a:b"}, "wandb-entity"),
    ],
)
def test_names_that_wandb_does_not_take(fields: dict[str, Any], slug: str) -> None:
    with pytest.raises(SubmitError) as found:
        with_tracking(experiment(**fields), TRACKED, bool)
    assert found.value.slug == slug


def test_where_it_is_filed_is_no_part_of_the_identity_nor_of_the_definition() -> None:
    filed = experiment(project="atari", entity="lab", name="n")
    assert experiment_id(filed) == experiment_id(experiment())
    sent = plan_submission(filed, FLEET, "c6g-medium", user="ada")
    bare = plan_submission(experiment(), FLEET, "c6g-medium", user="ada")
    assert sent.definition == bare.definition
    environment = sent.jobs[0].request["containerOverrides"]["environment"]
    assert {"name": "WANDB_PROJECT", "value": "atari"} in environment
    assert {"name": "WANDB_ENTITY", "value": "lab"} in environment


def test_a_stack_without_the_secret_says_how_it_gets_one() -> None:
    assert wandb_secret(TRACKED) == ARN
    with pytest.raises(Refused, match="keeps no secret WANDB_API_KEY"):
        wandb_secret(FLEET)
