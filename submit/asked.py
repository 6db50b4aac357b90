"""What a person asks for, by options or in a file, and the experiment that it makes. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from submit.errors import WrongUse
from submit.experiment import Axis, Cell, Experiment, Resources
from submit.grid import zip_axes

_SHELL = re.compile(
    r"""[|&;<>()*?\[\]~#\n`$!]          # what a shell minds outside of quotes
    | \{[^{}]*(,|\.\.)[^{}]*\}         # {a,b} and {1..3}, but not {name}
    | \A\s*[A-Za-z_][A-Za-z0-9_]*=     # a variable before the program
    """,
    re.VERBOSE,
)
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_DOUBLE_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_SHELL_IN_DOUBLE = re.compile(r"[`$]")


Variables = tuple[tuple[str, str], ...]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is None, or empty, was not asked for."""

    queue: str | None = None
    command: tuple[str, ...] = ()
    seeds: tuple[int, ...] | None = None
    axes: tuple[Axis, ...] = ()
    zips: tuple[tuple[str, ...], ...] = ()
    include: tuple[Cell, ...] = ()
    exclude: tuple[Cell, ...] = ()
    image: str | None = None
    nodes: int | None = None
    vcpus: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    shm_mib: int | None = None
    timeout_s: int | None = None
    environment: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    retries: int | None = None
    fallback: str | None = None
    after: int | None = None
    name: str | None = None
    group: str | None = None
    project: str | None = None
    entity: str | None = None
    tags: tuple[str, ...] = ()
    share: str | None = None
    workers: int | None = None


def merge(first: Asked, last: Asked) -> Asked:
    """`first` with all that `last` asks for in its place.

    Parameters and variables are replaced one by one, by their names; everything else as a whole.
    """
    wanted: dict[str, Any] = {
        name: value
        for name in Asked.__struct_fields__
        if (value := getattr(last, name)) not in (None, ())
    }
    if last.axes and first.axes:
        wanted["axes"] = _merge_axes(first.axes, last.axes)
    wanted["environment"] = _merge_variables(first.environment, last.environment)
    return msgspec.structs.replace(first, **wanted)


def make_experiment(asked: Asked) -> Experiment:
    """The experiment. An image that was not asked for is empty.

    Raises WrongUse for a zip that does not fit.
    """
    return Experiment(
        command=asked.command,
        axes=zip_axes(asked.axes, asked.zips),
        seeds=asked.seeds or (),
        image=asked.image or "",
        resources=Resources(
            vcpus=asked.vcpus,
            nodes=None if asked.nodes == 1 else asked.nodes,
            memory_mib=asked.memory_mib,
            gpus=asked.gpus,
            shm_mib=asked.shm_mib,
            timeout_s=asked.timeout_s,
        ),
        environment=asked.environment,
        secrets=asked.secrets,
        retries=asked.retries,
        exclude=asked.exclude,
        include=asked.include,
        name=script_name(asked.command) if asked.name is None else asked.name,
        group=asked.group or "",
        project=asked.project or "",
        entity=asked.entity or "",
        tags=asked.tags,
        share=asked.share or "",
        workers=asked.workers,
    )


def parse_command(text: str) -> tuple[str, ...]:
    """The words of a command that is given as one text, started without a shell; where it says
    what only a shell can do, bash is started, and parameters follow as its arguments.

    Raises WrongUse for a quote that is not closed, and for no word at all.
    """
    try:
        words = shlex.split(text)
    except ValueError as err:
        raise WrongUse(
            "command", f"{text!r} is no command: {_lower(err)}", "quote it as for a shell"
        ) from err
    if not words:
        raise WrongUse("command", "the command is empty", "python train.py")
    bare = _SINGLE_QUOTED.sub("''", text.strip())
    in_double = "".join(_DOUBLE_QUOTED.findall(bare))
    if _SHELL.search(_DOUBLE_QUOTED.sub('""', bare)) or _SHELL_IN_DOUBLE.search(in_double):
        return ("/bin/bash", "-c", f'{text.strip()} "$@"', "bash")
    return tuple(words)


def script_name(words: Sequence[str]) -> str:
    """After the script that is run: `python -u examples/ppo.py` → ppo."""
    parts = [part for word in words for part in word.split()]
    scripts = [part for part in parts if part.endswith((".py", ".sh"))]
    name = (scripts or parts or [""])[0].rpartition("/")[2]
    return name.removesuffix(".py").removesuffix(".sh")


def _merge_variables(first: Variables, last: Variables) -> Variables:
    """A variable that one of them gives twice stays so: it is told later."""
    replaced = dict(last)
    kept = tuple((name, replaced.pop(name, value)) for name, value in first)
    if len(dict(first)) < len(first) or len(dict(last)) < len(last):
        return (*kept, *last)
    return (*kept, *replaced.items())


def _merge_axes(first: tuple[Axis, ...], last: tuple[Axis, ...]) -> tuple[Axis, ...]:
    given = {axis.names: axis for axis in last}
    kept = [given.get(axis.names, axis) for axis in first]
    known = {axis.names for axis in first}
    return (*kept, *(axis for axis in last if axis.names not in known))


def _lower(err: ValueError) -> str:
    text = str(err)
    return text[:1].lower() + text[1:]
