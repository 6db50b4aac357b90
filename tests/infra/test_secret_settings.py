"""infra.secret_settings: names and values of secrets, and mistakes that show neither value."""

from __future__ import annotations

import json

import pytest

from infra.secret_settings import read_secrets

WANDB, MANY = "runfleet:wandbApiKey", "runfleet:secrets"
VALUE = "hunter2"


def read(config: dict[str, str], kept: frozenset[str] = frozenset({WANDB, MANY})) -> dict[str, str]:
    values, mistakes = read_secrets(config, secret_keys=kept)
    assert mistakes == []
    return values


def wrong(config: dict[str, str], kept: frozenset[str] = frozenset({WANDB, MANY})) -> str:
    _, mistakes = read_secrets(config, secret_keys=kept)
    told = "\n".join(f"{m.path}: {m.problem} ({m.command})" for m in mistakes)
    assert VALUE not in told
    return told


def test_names_are_environment_variables() -> None:
    config = {WANDB: "a", MANY: json.dumps({"HF_TOKEN": "b"}), "aws:region": "us-east-1"}
    assert read(config) == {"WANDB_API_KEY": "a", "HF_TOKEN": "b"}


@pytest.mark.parametrize("config", [{}, {WANDB: "", MANY: "{}"}, {MANY: ""}])
def test_none(config: dict[str, str]) -> None:
    """As Pulumi.yaml's defaults have it."""
    assert read(config, frozenset()) == {}


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({WANDB: VALUE}, f"{WANDB}: stands in plain text"),
        ({WANDB: VALUE}, f"pulumi config set --secret {WANDB}"),
        ({MANY: f'{{"A": "{VALUE}"}}'}, f"pulumi config set --secret --path {MANY}.NAME"),
    ],
)
def test_plain_text_is_refused(config: dict[str, str], told: str) -> None:
    assert told in wrong(config, frozenset())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (VALUE, "is not a map"),
        (f'["{VALUE}"]', "is not a map"),
        ("[" * 100_000, "is not a map"),
        ('{"A": 1}', f"{MANY}.A: is not a text"),
        ('{"A": ""}', f"{MANY}.A: has 0 bytes"),
        (json.dumps({"A": VALUE * 10_000}), f"{MANY}.A: has 70000 bytes"),
        ('{"1A": "x"}', "not a name for an environment variable"),
        ('{"A B": "x"}', "not a name for an environment variable"),
        ('{"AWS_BATCH_X": "x"}', "a name that Batch or runfleet sets itself"),
        ('{"RUNFLEET_RUN": "x"}', "a name that Batch or runfleet sets itself"),
        (json.dumps({f"A{n}": "x" for n in range(51)}), "these are 51 secrets; at most 50"),
    ],
)
def test_what_is_refused(text: str, told: str) -> None:
    assert told in wrong({MANY: text})


def test_one_name_twice() -> None:
    told = wrong({WANDB: "x", MANY: '{"WANDB_API_KEY": "y"}'})
    assert "WANDB_API_KEY is set by runfleet:wandbApiKey already" in told
