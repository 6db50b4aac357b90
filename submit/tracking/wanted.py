"""Whether an experiment's runs report to Weights & Biases, and what they need for it. Pure.

Whoever does not ask for it needs nothing. Who does, by a project, an entity or the command's own
`--track`, needs a key: on AWS the stack's secret, which Batch hands to the run; on the own machine
the environment's or netrc's.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from submit.errors import Refused, WrongUse
from submit.experiment import Experiment
from submit.fleet import LOCAL, Fleet

KEY = "WANDB_API_KEY"
KEYLESS = frozenset({"offline", "disabled", "dryrun"})
"""Values of WANDB_MODE with which wandb asks no server."""
MAX_PROJECT = 128
FORBIDDEN = frozenset("/\\#?%:")
"""In a project's name (wandb, Settings.project)."""


def with_tracking(experiment: Experiment, fleet: Fleet, has_key: Callable[[], bool]) -> Experiment:
    """The experiment, with the key among its secrets if it wants one. `has_key` is asked on the
    own machine alone.

    Raises WrongUse for names that W&B does not take, Refused where there is no key.
    """
    _check_name("project", experiment.project)
    _check_name("entity", experiment.entity)
    if not wants_tracking(experiment) or KEY in experiment.secrets:
        return experiment
    if fleet.account == LOCAL:
        if not has_key():
            raise _no_key(experiment, "here", "wandb login, or export WANDB_API_KEY=…")
    elif KEY not in fleet.secrets:
        raise _no_key(experiment, f"in the stack {fleet.stack}", _make_secret(fleet))
    return msgspec.structs.replace(experiment, secrets=(*experiment.secrets, KEY))


def wants_tracking(experiment: Experiment) -> bool:
    """Whether its runs will ask W&B's server for anything."""
    if dict(experiment.environment).get("WANDB_MODE") in KEYLESS:
        return False
    return bool(experiment.project or experiment.entity or "--track" in experiment.command)


def wandb_secret(fleet: Fleet) -> str:
    """The ARN of the secret that holds the team's key. Raises Refused where there is none."""
    if KEY not in fleet.secrets:
        raise Refused(
            "no-wandb-secret",
            f"the stack {fleet.stack} keeps no secret {KEY} yet, and only its Pulumi program "
            "can let its jobs read one",
            _make_secret(fleet),
        )
    return fleet.secrets[KEY]


def _make_secret(fleet: Fleet) -> str:
    stack = f"--stack {fleet.stack}"
    return f"pulumi config set --secret wandbApiKey {stack}, then pulumi up {stack}"


def _no_key(experiment: Experiment, where: str, how: str) -> Refused:
    asked = "--track" if "--track" in experiment.command else "a project or entity"
    return Refused(
        "no-wandb-key",
        f"{asked} asks for Weights & Biases, and there is no key for it {where}",
        f"{how}; or --env WANDB_MODE=offline",
    )


def _check_name(what: str, name: str) -> None:
    wrong = sorted(FORBIDDEN.intersection(name))
    if wrong:
        raise WrongUse(
            f"wandb-{what}",
            f"--wandb-{what}: {name!r} holds {' '.join(wrong)}, which W&B does not take "
            f"in the name of a{'n' if what == 'entity' else ''} {what}",
            "--wandb-entity LAB --wandb-project ATARI",
        )
    if len(name) > MAX_PROJECT:
        raise WrongUse(
            f"wandb-{what}",
            f"--wandb-{what}: the name has {len(name)} letters, W&B takes {MAX_PROJECT}",
            "--wandb-entity LAB --wandb-project ATARI",
        )
