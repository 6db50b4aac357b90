"""Secrets in the stack configuration: their names, and values that no message shows. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.mistakes import Mistake, shown
from infra.settings import NAMESPACE, SECRET_KEYS

WANDB_KEY, MANY_KEY = SECRET_KEYS
WANDB_VARIABLE = "WANDB_API_KEY"
MAX_BYTES = 65_536
"""Of one value (Secrets Manager, CreateSecret)."""
MAX_SECRETS = 50
"""As many as a policy on one role has room for (IAM: 10,240 characters)."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def read_secrets(
    config: Mapping[str, str], *, secret_keys: frozenset[str]
) -> tuple[dict[str, str], list[Mistake]]:
    """Values by the environment variable in which jobs get them, and all that is wrong.

    `runfleet:wandbApiKey` is WANDB_API_KEY, `runfleet:secrets` a map of further ones. Each has
    to be kept as a secret in the configuration: anything else stands readable in a file.
    """
    values: dict[str, str] = {}
    mistakes: list[Mistake] = []
    wandb = f"{NAMESPACE}:{WANDB_KEY}"
    if config.get(wandb):
        mistakes += _not_kept_secret(wandb, wandb, secret_keys)
        values[WANDB_VARIABLE] = config[wandb]
    many = f"{NAMESPACE}:{MANY_KEY}"
    further, unreadable = _read_map(many, config.get(many) or "{}")
    mistakes += unreadable
    if further:
        mistakes += _not_kept_secret(many, f"--path {many}.NAME", secret_keys)
    for name, value in further.items():
        mistakes += _wrong_name(f"{many}.{shown(name)[1:-1]}", name, values)
        values.setdefault(name, value)
    for name, value in values.items():
        path = wandb if name == WANDB_VARIABLE else f"{many}.{shown(name)[1:-1]}"
        mistakes += _wrong_value(path, value)
    if len(values) > MAX_SECRETS:
        problem = f"these are {len(values)} secrets; at most {MAX_SECRETS}"
        mistakes.append(Mistake(path=many, problem=problem))
    return values, mistakes


def _read_map(path: str, text: str) -> tuple[dict[str, str], list[Mistake]]:
    """The map in `text`; its values are never shown, so neither is a text that is no map."""
    try:
        members: Any = json.loads(text)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        command = f"pulumi config rm {path}; pulumi config set --secret --path {path}.NAME"
        return {}, [Mistake(path=path, problem="is not a map of names to texts", command=command)]
    wrong = [
        Mistake(path=f"{path}.{shown(name)[1:-1]}", problem="is not a text")
        for name, value in members.items()
        if not isinstance(value, str)
    ]
    return {name: value for name, value in members.items() if isinstance(value, str)}, wrong


def _not_kept_secret(path: str, target: str, secret_keys: frozenset[str]) -> Iterator[Mistake]:
    if path not in secret_keys:
        yield Mistake(
            path=path,
            problem="stands in plain text in the stack's file: take it for known, and renew it",
            command=f"pulumi config rm {path}; pulumi config set --secret {target}",
        )


def _wrong_name(path: str, name: str, others: Mapping[str, str]) -> Iterator[Mistake]:
    if not _VARIABLE.fullmatch(name):
        problem = (
            f"{shown(name)} is not a name for an environment variable: at most 128 letters, "
            "digits and _, no digit first"
        )
        yield Mistake(path=path, problem=problem)
    elif name.startswith(("AWS_BATCH", "RUNFLEET_")):
        problem = f"{name} is a name that Batch or runfleet sets itself; choose another"
        yield Mistake(path=path, problem=problem)
    elif name in others:
        problem = f"{name} is set by {NAMESPACE}:{WANDB_KEY} already; drop one of the two"
        yield Mistake(path=path, problem=problem)


def _wrong_value(path: str, value: str) -> Iterator[Mistake]:
    size = len(value.encode(errors="surrogatepass"))
    if not 1 <= size <= MAX_BYTES:
        problem = f"has {size} bytes; Secrets Manager takes 1 to {MAX_BYTES}"
        yield Mistake(path=path, problem=problem)
