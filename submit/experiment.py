"""Experiment and Run: what one `submit run` asks for, and its cells in a fixed order. Pure.

A run's index is mixed radix over the axes in the order given, the seed turning fastest.
The experiment's id is a digest of the request itself, so that the same request is the same
experiment on every machine.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator

import msgspec

from submit.errors import WrongUse

ID_LENGTH = 12
"""Characters of an experiment id: 60 bits, enough for a million experiments of one team."""

MAX_GROUP = 128
"""Characters of a group's name at Weights & Biases."""
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_PARAMETER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(
    r"((^|_)KEY$|(^|_)KEY_ID$|API_?KEY|SECRET|(^|_)PAT$|TOKEN|PASSWORD|PASSWD|CREDENTIAL)",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\{(\{?)([A-Za-z][A-Za-z0-9_.-]*)\}(\}?)")


class Resources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one run asks for; None means the queue's default. Memory in MiB, time in seconds."""

    vcpus: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    shm_mib: int | None = None
    timeout_s: int | None = None


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension of the grid: a parameter and its values, or several that go together.

    Each row has one value for each name.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: `parameters` in the order of the axes; `seed` None when none were asked for."""

    index: int
    parameters: tuple[tuple[str, str], ...]
    seed: int | None
    wandb_run_id: str


class Experiment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command over a grid of parameters and seeds, in an image, with resources.

    An empty `image` is the fleet's, and is filled in before anything else is made of it.
    `name` and `group`, and where Weights & Biases files its runs (`project`, `entity`), are for
    people and are not part of the identity; nor is `workers`, how many runs may go at once on the
    own machine. `folder` is where its runs work there, when no image holds them. `retries` counts further attempts after a lost machine. `generation` is above 0 when the same request was
    wanted again.
    """

    command: tuple[str, ...]
    axes: tuple[Axis, ...] = ()
    seeds: tuple[int, ...] = ()
    image: str = ""
    resources: Resources = Resources()
    environment: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    retries: int = 3
    generation: int = 0
    folder: str = ""
    name: str = ""
    group: str = ""
    project: str = ""
    entity: str = ""
    workers: int | None = None


def check_experiment(experiment: Experiment) -> None:
    """Raises WrongUse for the first thing that no backend could run as asked."""
    if not experiment.command or not experiment.command[0]:
        raise WrongUse(
            "no-command",
            "no command to run was given",
            "submit run --queue QUEUE --seeds 3 -- python train.py",
        )
    _check_axes(experiment.axes)
    _check_environment(experiment.environment)
    _check_once(experiment)
    _check_text("the command", *experiment.command)
    _check_text("the name or the group", experiment.name, experiment.group)
    if len(experiment.group) > MAX_GROUP:
        raise WrongUse("group", f"the group has {len(experiment.group)} letters, W&B takes 128")
    for axis in experiment.axes:
        for row in axis.rows:
            _check_text(f"a value of {' and '.join(axis.names)}", *row)
    _check_seeds(experiment.seeds)


def experiment_id(experiment: Experiment) -> str:
    """The digest of the request, 12 characters a-z2-7: the same request, the same id."""
    identity = msgspec.structs.replace(
        experiment, name="", group="", project="", entity="", workers=None
    )
    digest = hashlib.sha256(msgspec.json.encode(identity, order="sorted")).digest()
    bits = int.from_bytes(digest[:8], "big")
    return "".join(_BASE32[bits >> shift & 31] for shift in range(59, 59 - 5 * ID_LENGTH, -5))


def run_count(experiment: Experiment) -> int:
    """How many runs the experiment has."""
    return math.prod(len(axis.rows) for axis in experiment.axes) * max(1, len(experiment.seeds))


def nth_run(experiment: Experiment, index: int, identity: str | None = None) -> Run:
    """Run number `index` (from 0). Who knows the experiment's id already saves time with it.

    Raises IndexError outside of the grid.
    """
    if not 0 <= index < run_count(experiment):
        raise IndexError(index)
    rest, seed = index, None
    if experiment.seeds:
        rest, digit = divmod(rest, len(experiment.seeds))
        seed = experiment.seeds[digit]
    cells: list[tuple[str, str]] = []
    for axis in reversed(experiment.axes):
        rest, digit = divmod(rest, len(axis.rows))
        cells[:0] = zip(axis.names, axis.rows[digit], strict=True)
    return Run(
        index=index,
        parameters=tuple(cells),
        seed=seed,
        wandb_run_id=wandb_run_id(identity or experiment_id(experiment), index),
    )


def iter_runs(experiment: Experiment) -> Iterator[Run]:
    """All runs, lazily, in the order of their indexes."""
    identity = experiment_id(experiment)
    return (nth_run(experiment, index, identity) for index in range(run_count(experiment)))


def wandb_run_id(experiment: str, index: int) -> str:
    """The Weights & Biases id of a run: stable over attempts, retries and machines."""
    return f"{experiment}-{index}"


class Literal(msgspec.Struct, frozen=True):
    """A part of an argument that is the same in every run."""

    text: str


class Filled(msgspec.Struct, frozen=True):
    """A part of an argument that takes the value of a parameter, or the seed (`name` "seed")."""

    name: str


Part = Literal | Filled


def argument_parts(experiment: Experiment) -> tuple[tuple[Part, ...], ...]:
    """The command's arguments as parts: literal text and places that a run fills.

    `{name}` and `{seed}` in the command are such places (`{{name}}` is literal text); what
    the command does not mention is appended as `--name value` and `--seed N`.
    """
    names = [name for axis in experiment.axes for name in axis.names]
    if experiment.seeds:
        names.append("seed")
    arguments = [_split_placeholders(argument, frozenset(names)) for argument in experiment.command]
    mentioned = {part.name for parts in arguments for part in parts if isinstance(part, Filled)}
    for name in names:
        if name not in mentioned:
            arguments += [(Literal(f"--{name}"),), (Filled(name),)]
    return tuple(arguments)


def run_arguments(experiment: Experiment, run: Run) -> tuple[str, ...]:
    """The argument list that `run` is started with."""
    values = dict(run.parameters) | {"seed": str(run.seed)}
    return tuple(
        "".join(part.text if isinstance(part, Literal) else values[part.name] for part in parts)
        for parts in argument_parts(experiment)
    )


def environment_suffix(parameter: str) -> str:
    """What follows RUNFLEET_PARAM_ for a parameter: `env-id` → `ENV_ID`."""
    return re.sub(r"[^A-Z0-9]", "_", parameter.upper())


def _split_placeholders(argument: str, names: frozenset[str]) -> tuple[Part, ...]:
    parts: list[Part] = []
    at = 0
    text = ""
    for match in _PLACEHOLDER.finditer(argument):
        doubled, name, closing = match.groups()
        if name not in names:
            continue
        text += argument[at : match.start()]
        at = match.end()
        if doubled and closing:
            text += "{" + name + "}"
            continue
        text += doubled
        parts += [Literal(text), Filled(name)] if text else [Filled(name)]
        text = closing
    text += argument[at:]
    return (*parts, Literal(text)) if text or not parts else tuple(parts)


def _check_axes(axes: tuple[Axis, ...]) -> None:
    seen: dict[str, str] = {"SEED": "seed"}
    for axis in axes:
        for name in axis.names:
            if not _PARAMETER_NAME.fullmatch(name):
                raise WrongUse(
                    "parameter-name",
                    f"{name!r} can't be a parameter's name: it must begin with a letter and "
                    "hold letters, digits, '-', '_' and '.' only",
                    "--grid learning-rate=3e-4,1e-3",
                )
            other = seen.setdefault(environment_suffix(name), name)
            if name == "seed" or other != name:
                raise WrongUse(
                    "parameter-clash",
                    f"the parameters {other!r} and {name!r} would share one environment variable"
                    if name != "seed"
                    else "seeds are not a parameter of the grid",
                    "give one of them another name" if name != "seed" else "--seeds 1,2,3",
                )
            if sum(name in a.names for a in axes) > 1 or axis.names.count(name) > 1:
                raise WrongUse("parameter-twice", f"the parameter {name!r} is given twice")
        if not axis.rows:
            raise WrongUse(
                "no-values",
                f"the parameter {' and '.join(axis.names)} has no values",
                f"--grid {axis.names[0]}=VALUE,VALUE",
            )
        if len(set(axis.rows)) < len(axis.rows):
            twice = next(row for row in axis.rows if axis.rows.count(row) > 1)
            raise WrongUse(
                "value-twice",
                f"the parameter {' and '.join(axis.names)} has the value {', '.join(twice)!r} twice",
            )


def _check_once(experiment: Experiment) -> None:
    """A variable has one value: from --env, or from a secret."""
    names = [name for name, _ in experiment.environment] + list(experiment.secrets)
    names += ["WANDB_PROJECT"] if experiment.project else []
    names += ["WANDB_ENTITY"] if experiment.entity else []
    for name in names:
        if names.count(name) > 1:
            raise WrongUse(
                "environment-twice", f"the variable {name} is given twice", "--env K=V once"
            )


def _check_environment(environment: tuple[tuple[str, str], ...]) -> None:
    for name, value in environment:
        if not _ENVIRONMENT_NAME.fullmatch(name):
            raise WrongUse(
                "environment-name", f"{name!r} is no name of an environment variable", "--env K=V"
            )
        if name.startswith(("AWS_BATCH", "RUNFLEET_")):
            raise WrongUse(
                "environment-reserved",
                f"{name} is set by {'AWS Batch' if name.startswith('AWS_BATCH') else 'runfleet'} "
                "and can't be given",
            )
        if _SECRET_NAME.search(name):
            raise WrongUse(
                "environment-secret",
                f"{name} looks like a secret, and whoever may describe a job can read its "
                "environment",
                f"keep it in Secrets Manager and add --secret {name}",
            )
        _check_text(f"the environment variable {name}", value)


def _check_seeds(seeds: tuple[int, ...]) -> None:
    if len(set(seeds)) < len(seeds):
        raise WrongUse("seed-twice", "a seed is given twice", "--seeds 1,2,3")
    if any(seed < 0 for seed in seeds):
        raise WrongUse("seed-negative", "seeds are whole numbers from 0", "--seeds 1,2,3")


def _check_text(what: str, *texts: str) -> None:
    for text in texts:
        if "\0" in text:
            raise WrongUse("nul", f"{what} holds a NUL character, which no process can be given")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise WrongUse("not-utf8", f"{what} is not valid UTF-8")
