"""What no backend could run as asked, told before anything is planned. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from submit.errors import WrongUse
from submit.experiment import (
    SEED,
    Axis,
    Cell,
    Experiment,
    environment_suffix,
    parameter_names,
    run_count,
)
from submit.nearest import nearest
from submit.shell_code import check_shell_code

MAX_GROUP = 128
"""Characters of a group's name at Weights & Biases."""
MAX_TAG = 64
"""Characters of a tag at Weights & Biases."""
_PARAMETER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(
    r"((^|_)KEY$|(^|_)KEY_ID$|API_?KEY|SECRET|(^|_)PAT$|TOKEN|PASSWORD|PASSWD|CREDENTIAL)",
    re.IGNORECASE,
)
_SHARE = re.compile(r"[A-Za-z0-9]{1,255}")


def check_experiment(experiment: Experiment) -> None:
    """Raises WrongUse for the first thing that no backend could run as asked."""
    if not experiment.command or not experiment.command[0]:
        raise WrongUse(
            "no-command",
            "no command to run was given",
            "submit run --queue QUEUE --seeds 3 -- python train.py",
        )
    check_axes(experiment.axes)
    check_seeds(experiment.seeds)
    _check_included(experiment)
    _check_excluded(experiment)
    check_environment(experiment.environment)
    _check_once(experiment)
    _check_text("the command", *experiment.command)
    check_shell_code(experiment)
    check_labels(experiment)


def _check_included(experiment: Experiment) -> None:
    names = parameter_names(experiment)
    if not experiment.axes:
        _check_names(names)
    # Only the grid's own cells are compared with: a cell that is excluded may come back in.
    grid = _rows_by_name(experiment.axes)
    seen: set[frozenset[tuple[str, str]]] = set()
    for cell in experiment.include:
        text = cell_text(cell)
        given = [name for name, _ in cell]
        if SEED in given:
            raise WrongUse(
                "include-seed",
                f"--include {text}: a cell that is included runs with every seed",
                "--exclude takes a seed, and leaves out what it names",
            )
        _check_cell_names("--include", cell, names)
        if missing := [name for name in names if name not in given]:
            raise WrongUse(
                "include-incomplete",
                f"--include {text}: it has no value for {' and '.join(missing)}",
                f"--include {text},{','.join(f'{name}=VALUE' for name in missing)}",
            )
        _check_text(f"--include {text}", *(value for _, value in cell))
        values = dict(cell)
        if frozenset(cell) in seen:
            raise WrongUse("include-twice", f"--include {text} is given twice", "leave it out")
        seen.add(frozenset(cell))
        in_grid = experiment.axes and all(
            tuple(values[name] for name in names) in rows for names, rows in grid
        )
        if in_grid and not any(set(out) <= set(cell) for out in experiment.exclude):
            raise WrongUse(
                "include-twice", f"--include {text}: the grid has this cell already", "leave it out"
            )


def _check_excluded(experiment: Experiment) -> None:
    if experiment.exclude and experiment.include and not experiment.axes:
        raise WrongUse(
            "exclude-nothing",
            f"--exclude {cell_text(experiment.exclude[0])}: there is no grid to leave cells out of; "
            "a cell that is included runs with every seed",
            "leave it out, and its cell or seed too; or --grid NAME=VALUE,VALUE",
        )
    values_of = {
        name: dict.fromkeys(row[place] for row in axis.rows)
        for axis in experiment.axes
        for place, name in enumerate(axis.names)
    }
    if experiment.seeds:
        values_of[SEED] = dict.fromkeys(map(str, experiment.seeds))
    for cell in experiment.exclude:
        _check_cell_names("--exclude", cell, list(values_of))
        for name, value in cell:
            if value not in values_of[name]:
                values = list(values_of[name])
                raise WrongUse(
                    "exclude-nothing",
                    f"--exclude {cell_text(cell)}: {name} is never {value!r}"
                    f"{nearest(value, values)}",
                    f"--exclude {name}={values[0]}",
                )
    if experiment.exclude and not run_count(experiment):
        raise WrongUse(
            "no-runs", "nothing is left to run: every cell is excluded", "leave an --exclude out"
        )


def _check_cell_names(option: str, cell: Cell, names: Sequence[str]) -> None:
    given = [name for name, _ in cell]
    for name in given:
        if name not in names:
            raise WrongUse(
                "unknown-parameter",
                f"{option} {cell_text(cell)}: the grid has no parameter {name!r}"
                f"{nearest(name, names)}",
                f"{option} {_example(names)}",
            )
        if given.count(name) > 1:
            raise WrongUse(
                "parameter-twice",
                f"{option} {cell_text(cell)}: {name!r} is given twice",
                "name it once",
            )


def _example(names: Sequence[str]) -> str:
    return f"{names[0]}=VALUE" if names else "goes with --grid NAME=VALUE,VALUE"


def _rows_by_name(
    axes: Sequence[Axis],
) -> list[tuple[tuple[str, ...], frozenset[tuple[str, ...]]]]:
    return [(axis.names, frozenset(axis.rows)) for axis in axes]


def cell_text(cell: Cell) -> str:
    """`lr=3e-4,env-id=Pong`."""
    return ",".join(f"{name}={value}" for name, value in cell)


def check_labels(experiment: Experiment) -> None:
    """Raises WrongUse for what is for people, at W&B and in tags, or whose share it is."""
    _check_text("the name or the group", experiment.name, experiment.group)
    for what, text in (("name", experiment.name), ("group", experiment.group)):
        if not text.isprintable():  # a terminal would obey it, a table break
            raise WrongUse(
                what,
                f"the {what} {text!r} holds letters that can't be printed",
                f"--{what} {''.join(one if one.isprintable() else ' ' for one in text)!r}",
            )
    if len(experiment.group) > MAX_GROUP:
        raise WrongUse(
            "group",
            f"the group has {len(experiment.group)} letters, W&B takes 128",
            f"--group {experiment.group[:MAX_GROUP]}",
        )
    for tag in experiment.tags:
        _check_text("a tag", tag)
        if not 1 <= len(tag) <= MAX_TAG or "," in tag or not tag.isprintable():
            raise WrongUse(
                "tag",
                f"{tag!r} is no tag: W&B takes 1 to {MAX_TAG} letters, and no comma",
                "--tag ablation,paper2",
            )
    if len(set(experiment.tags)) < len(experiment.tags):
        raise WrongUse("tag-twice", "a tag is given twice", "--tag A,B, each once")
    if experiment.share and not _SHARE.fullmatch(experiment.share):
        raise WrongUse(
            "share",
            f"{experiment.share!r} is no share's name: AWS Batch takes 1 to 255 letters and digits",
            "--share paper2",
        )


def check_axes(axes: tuple[Axis, ...]) -> None:
    """Raises WrongUse for names that no parameters can have together, and values of none."""
    _check_names([name for axis in axes for name in axis.names])
    for axis in axes:
        names = " and ".join(axis.names)
        if not axis.rows:
            raise WrongUse(
                "no-values",
                f"the parameter {names} has no values",
                f"--grid {axis.names[0]}=VALUE,VALUE",
            )
        if len(set(axis.rows)) < len(axis.rows):
            twice = next(row for row in axis.rows if axis.rows.count(row) > 1)
            raise WrongUse(
                "value-twice",
                f"the parameter {names} has the value {', '.join(twice)!r} twice",
                "leave one of them out",
            )
        for row in axis.rows:
            _check_text(f"a value of {names}", *row)


def _check_names(names: Sequence[str]) -> None:
    """The names of the parameters: legal, and each with an environment variable of its own."""
    seen: dict[str, str] = {}
    for name in names:
        if not _PARAMETER_NAME.fullmatch(name):
            raise WrongUse(
                "parameter-name",
                f"{name!r} can't be a parameter's name: it must begin with a letter and "
                "hold letters, digits, '-', '_' and '.' only",
                "--grid learning-rate=3e-4,1e-3",
            )
        variable = environment_suffix(name)
        if variable == environment_suffix(SEED):
            raise WrongUse(
                "parameter-clash", "seeds are not a parameter of the grid", "--seeds 1,2,3"
            )
        other = seen.setdefault(variable, name)
        if other != name:
            raise WrongUse(
                "parameter-clash",
                f"the parameters {other!r} and {name!r} would share one environment variable",
                "give one of them another name",
            )
        if names.count(name) > 1:
            raise WrongUse(
                "parameter-twice", f"the parameter {name!r} is given twice", "name it once"
            )


def _check_once(experiment: Experiment) -> None:
    """A variable has one value: from --env, or from a secret."""
    names = [name for name, _ in experiment.environment] + list(experiment.secrets)
    names += ["WANDB_PROJECT"] if experiment.project else []
    names += ["WANDB_ENTITY"] if experiment.entity else []
    names += ["WANDB_TAGS"] if experiment.tags else []
    for name in names:
        if names.count(name) > 1:
            raise WrongUse(
                "environment-twice", f"the variable {name} is given twice", "--env K=V once"
            )


def check_environment(environment: tuple[tuple[str, str], ...]) -> None:
    """Raises WrongUse for variables that a run can't have, or must not where others can look."""
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
                f"--env MY_{name}={value or 'VALUE'}",
            )
        if _SECRET_NAME.search(name):
            raise WrongUse(
                "environment-secret",
                f"{name} looks like a secret, and whoever may describe a job can read its "
                "environment",
                f"keep it in Secrets Manager and add --secret {name}",
            )
        _check_text(f"the environment variable {name}", value)


def check_seeds(seeds: tuple[int, ...]) -> None:
    """Raises WrongUse for seeds that are given twice, or below 0."""
    if len(set(seeds)) < len(seeds):
        raise WrongUse("seed-twice", "a seed is given twice", "--seeds 1,2,3")
    if any(seed < 0 for seed in seeds):
        raise WrongUse("seed-negative", "seeds are whole numbers from 0", "--seeds 1,2,3")


def _check_text(what: str, *texts: str) -> None:
    for text in texts:
        if "\0" in text:
            raise WrongUse(
                "nul",
                f"{what} holds a NUL character, which no process can be given",
                "leave the NUL out; bytes travel as base64, or in a file",
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise WrongUse(
                "not-utf8",
                f"{what} is not valid UTF-8",
                "write it in UTF-8; bytes travel as base64, or in a file",
            )
