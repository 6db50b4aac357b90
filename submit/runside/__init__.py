"""What runs in the container before the user's command. Pure.

`run.sh` is the program, plain POSIX sh, carried in the job's command, so that any image
with `sh` works. `encode_grid` writes what it reads: an experiment as environment variables.
Nothing of it is ever evaluated as shell code.
"""

from __future__ import annotations

import re
from pathlib import Path

from submit.experiment import (
    Experiment,
    Literal,
    Part,
    argument_parts,
    environment_suffix,
    experiment_id,
    grid_size,
    parameter_names,
)
from submit.ranges import encode_ranges

FOR_PEOPLE = ("WANDB_ENTITY", "WANDB_NAME", "WANDB_PROJECT", "WANDB_RUN_GROUP", "WANDB_TAGS")
"""Variables that are no part of an experiment's identity."""
MAX_LABEL_BYTES = 60
"""Of the experiment's name in a run's: W&B takes 128 characters, and the parameters want room."""
PLAN_PREFIX = "RUNFLEET_PLAN_"
"""The variables that only the run side reads; it removes them before it starts the command."""
RUNS_VARIABLE = PLAN_PREFIX + "RUNS"
"""The job's own runs (submit.ranges)."""

_ESCAPED = re.compile(r"[\\\x01-\x1f\x7f]")


def script() -> str:
    """The run side's program."""
    # Not importlib.resources: importing it takes a fifth of a dry run's time.
    return Path(__file__).with_name("run.sh").read_text(encoding="utf-8")


def encode_grid(experiment: Experiment) -> dict[str, str]:
    """The part of the environment that is the same for all jobs of the experiment."""
    names = parameter_names(experiment)
    places = {name: f"@{number}" for number, name in enumerate(names)} | {"seed": "#"}
    environment = {
        "RUNFLEET_EXPERIMENT": experiment_id(experiment),
        "WANDB_RUN_GROUP": experiment.group or experiment_id(experiment),
        "WANDB_NAME": _label(experiment.name),
        PLAN_PREFIX + "ARGV": "".join(
            f"{line}\n"
            for parts in argument_parts(experiment)
            for line in (*(_part_line(part, places) for part in parts), ";")
        )
        + "".join(f"= {escape(name)}=\n{places[name]}\n!\n" for name in _named(experiment, names)),
    }
    if experiment.project:
        environment["WANDB_PROJECT"] = experiment.project
    if experiment.entity:
        environment["WANDB_ENTITY"] = experiment.entity
    if experiment.tags:
        environment["WANDB_TAGS"] = ",".join(experiment.tags)
    if experiment.include:
        cells = (dict(cell) for cell in experiment.include)
        lines = (escape(cell[name]) for cell in cells for name in names)
        environment[PLAN_PREFIX + "INCLUDED"] = "".join(
            f"{line}\n"
            for line in (
                f"{len(names)} {grid_size(experiment)}",
                *map(environment_suffix, names),
                *lines,
            )
        )
    if experiment.axes:
        environment[PLAN_PREFIX + "AXES"] = "".join(
            f"{line}\n"
            for axis in experiment.axes
            for line in (
                f"{len(axis.names)} {len(axis.rows)}",
                *map(environment_suffix, axis.names),
                *(escape(value) for row in axis.rows for value in row),
            )
        )
    if experiment.seeds:
        environment[PLAN_PREFIX + "SEEDS"] = encode_ranges(experiment.seeds)
    return environment


def encode_runs(runs: str) -> dict[str, str]:
    """The part of the environment that tells one job which runs are its own (submit.ranges)."""
    return {RUNS_VARIABLE: runs}


def escape(text: str) -> str:
    """`text` on one line, such that printf's %b gives it back (POSIX printf, §4 of its page)."""
    return _ESCAPED.sub(lambda match: _escape_character(match[0]), text)


def _named(experiment: Experiment, names: list[str]) -> list[str]:
    """What a run's name tells of it, the seed last."""
    return [*names, "seed"] if experiment.seeds else names


def _label(name: str) -> str:
    return name.encode()[:MAX_LABEL_BYTES].decode(errors="ignore")


def _escape_character(character: str) -> str:
    named = {"\\": "\\\\", "\n": "\\n"}
    return named.get(character) or f"\\0{ord(character):03o}"


def _part_line(part: Part, places: dict[str, str]) -> str:
    return "=" + escape(part.text) if isinstance(part, Literal) else places[part.name]
