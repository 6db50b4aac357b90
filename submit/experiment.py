"""Experiment and Run: what one `submit run` asks for, and its cells in a fixed order. Pure.

A run's index is mixed radix over the axes in the order given, the seed turning fastest; the
cells that are included follow the grid, and the indexes of excluded ones are nobody's. The
experiment's id is a digest of the request itself, so that the same request is the same
experiment on every machine.
"""

from __future__ import annotations

import bisect
import hashlib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from submit.cells import Pattern, Span, kept_spans

ID_LENGTH = 12
"""Characters of an experiment id: 60 bits, enough for a million experiments of one team."""

SEED = "seed"
"""What the seed is called among parameters."""
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_PLACEHOLDER = re.compile(r"\{(\{?)([A-Za-z][A-Za-z0-9_.-]*)\}(\}?)")


class Resources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one run asks for; None means the queue's default. Memory in MiB, time in seconds.

    A run of several `nodes` gets all else on each of them.
    """

    vcpus: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    shm_mib: int | None = None
    timeout_s: int | None = None
    nodes: int | None = None


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension of the grid: a parameter and its values, or several that go together.

    Each row has one value for each name.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Cell = tuple[tuple[str, str], ...]
"""Some parameters, by name, with a value each."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: `parameters` in the order of the axes; `seed` None when none were asked for."""

    index: int
    parameters: tuple[tuple[str, str], ...]
    seed: int | None
    wandb_run_id: str


class Experiment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command over a grid of parameters and seeds, in an image, with resources.

    `exclude` leaves out every run that has all the values of one of its cells, the seed among
    them if it is given; `include` adds cells to the grid, each with a value for every parameter,
    and each with every seed. An empty `image` is the fleet's, and is filled in before anything
    else is made of it. `retries` counts further attempts after a lost machine; None is as many as is
    usual there, on the own machine none (retries_of). `generation` is
    above 0 when the same request was wanted again. `folder` is where its runs work on the own machine, when no
    image holds them; `workers`, how many of them may go at once there.
    """

    command: tuple[str, ...]
    axes: tuple[Axis, ...] = ()
    seeds: tuple[int, ...] = ()
    image: str = ""
    resources: Resources = Resources()
    environment: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    retries: int | None = None
    generation: int = 0
    folder: str = ""
    exclude: tuple[Cell, ...] = ()
    include: tuple[Cell, ...] = ()
    name: str = ""
    group: str = ""
    project: str = ""
    entity: str = ""
    """Where Weights & Biases files the runs."""
    tags: tuple[str, ...] = ()
    share: str = ""
    """Whose share of a fair-share queue it counts for; empty is the user's."""
    workers: int | None = None


DEFAULT_RETRIES = 3
LOCAL_RETRIES = 0
"""On the own machine no machine is taken away: a lost run is not started again unasked."""
NO_IDENTITY: dict[str, object] = {
    "name": "",
    "group": "",
    "project": "",
    "entity": "",
    "tags": (),
    "share": "",
    "workers": None,
}
"""What is for people and for the queue, not for what runs: no part of the identity."""


def experiment_id(experiment: Experiment) -> str:
    """The digest of the request, 12 characters a-z2-7: the same request, the same id."""
    identity = msgspec.structs.replace(experiment, **NO_IDENTITY)
    if identity.retries == DEFAULT_RETRIES:  # as if nobody had said so
        identity = msgspec.structs.replace(identity, retries=None)
    digest = hashlib.sha256(msgspec.json.encode(identity, order="sorted")).digest()
    bits = int.from_bytes(digest[:8], "big")
    return "".join(_BASE32[bits >> shift & 31] for shift in range(59, 59 - 5 * ID_LENGTH, -5))


def retries_of(experiment: Experiment) -> int:
    """How many further attempts a run has after a lost machine."""
    return DEFAULT_RETRIES if experiment.retries is None else experiment.retries


def run_count(experiment: Experiment) -> int:
    """How many runs the experiment has."""
    return sum(last - first + 1 for first, last in run_spans(experiment))


def run_spans(experiment: Experiment) -> tuple[Span, ...]:
    """The indexes of the runs, ascending."""
    spans = kept_spans(_radices(experiment), _patterns(experiment))
    start = math.prod(_radices(experiment))
    added = len(experiment.include) * max(1, len(experiment.seeds))
    return (*spans, (start, start + added - 1)) if added else spans


def iter_indexes(experiment: Experiment) -> Iterator[int]:
    """The indexes of the runs, lazily and ascending."""
    return (n for first, last in run_spans(experiment) for n in range(first, last + 1))


def has_run(experiment: Experiment, index: int) -> bool:
    """Whether there is a run of that index."""
    return next(_absent(run_spans(experiment), (index,)), None) is None


def nth_run(experiment: Experiment, index: int, identity: str | None = None) -> Run:
    """The run of that index. Who knows the experiment's id already saves time with it.

    Raises IndexError where there is none.
    """
    return next(runs_at(experiment, (index,), identity))


def runs_at(
    experiment: Experiment, indexes: Collection[int], identity: str | None = None
) -> Iterator[Run]:
    """The runs of those indexes, in their order. Raises IndexError where there is none."""
    for index in _absent(run_spans(experiment), indexes):
        raise IndexError(index)
    known = identity or experiment_id(experiment)
    return (_run(experiment, index, known) for index in indexes)


def absent_runs(experiment: Experiment, indexes: Iterable[int]) -> list[int]:
    """Those of the indexes that no run has."""
    return list(_absent(run_spans(experiment), indexes))


def _absent(spans: Sequence[Span], indexes: Iterable[int]) -> Iterator[int]:
    firsts = [first for first, _ in spans]
    for index in indexes:
        at = bisect.bisect_right(firsts, index) - 1
        if at < 0 or spans[at][1] < index:
            yield index


def iter_runs(experiment: Experiment, identity: str | None = None) -> Iterator[Run]:
    """All runs, lazily, in the order of their indexes."""
    known = identity or experiment_id(experiment)
    return (_run(experiment, index, known) for index in iter_indexes(experiment))


def parameter_names(experiment: Experiment) -> list[str]:
    """The parameters, in the order of the axes; without any, of the first cell included."""
    if experiment.axes or not experiment.include:
        return [name for axis in experiment.axes for name in axis.names]
    return [name for name, _ in experiment.include[0]]


def parameter_values(experiment: Experiment, name: str) -> list[str]:
    """The values that the parameter is given, each once."""
    values = [
        row[axis.names.index(name)]
        for axis in experiment.axes
        if name in axis.names
        for row in axis.rows
    ]
    values += [value for cell in experiment.include for other, value in cell if other == name]
    return list(dict.fromkeys(values))


def grid_size(experiment: Experiment) -> int:
    """How many cells the axes make: those that are included are not among them."""
    if not experiment.axes:
        return 0 if experiment.include else 1
    return math.prod(len(axis.rows) for axis in experiment.axes)


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
_Digits = dict[str, frozenset[int]]


def argument_parts(experiment: Experiment) -> tuple[tuple[Part, ...], ...]:
    """The command's arguments as parts: literal text and places that a run fills.

    `{name}` and `{seed}` in the command are such places (`{{name}}` is literal text); what
    the command does not mention is appended as `--name value` and `--seed N`.
    """
    names = parameter_names(experiment)
    if experiment.seeds:
        names.append(SEED)
    arguments = [_split_placeholders(argument, frozenset(names)) for argument in experiment.command]
    mentioned = {part.name for parts in arguments for part in parts if isinstance(part, Filled)}
    for name in names:
        if name not in mentioned:
            arguments += [(Literal(f"--{name}"),), (Filled(name),)]
    return tuple(arguments)


def run_arguments(experiment: Experiment, run: Run) -> tuple[str, ...]:
    """The argument list that `run` is started with."""
    values = dict(run.parameters) | {SEED: str(run.seed)}
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


def _run(experiment: Experiment, index: int, identity: str) -> Run:
    cell, seed = index, None
    if experiment.seeds:
        cell, digit = divmod(index, len(experiment.seeds))
        seed = experiment.seeds[digit]
    return Run(
        index=index,
        parameters=_cell(experiment, cell),
        seed=seed,
        wandb_run_id=wandb_run_id(identity, index),
    )


def _cell(experiment: Experiment, number: int) -> Cell:
    """The parameters of that cell: of the grid, or behind it of those that are included."""
    beyond = number - grid_size(experiment)
    if beyond >= 0 and experiment.include:
        values = dict(experiment.include[beyond])
        return tuple((name, values[name]) for name in parameter_names(experiment))
    cells: list[tuple[str, str]] = []
    for axis in reversed(experiment.axes):
        number, digit = divmod(number, len(axis.rows))
        cells[:0] = zip(axis.names, axis.rows[digit], strict=True)
    return tuple(cells)


def _radices(experiment: Experiment) -> tuple[int, ...]:
    """The seed is the last digit; the first stands for a grid that has no cells at all."""
    cells = [len(axis.rows) for axis in experiment.axes] or [grid_size(experiment)]
    return (*cells, len(experiment.seeds) or 1)


def _patterns(experiment: Experiment) -> tuple[Pattern, ...]:
    """The cells that are left out, as digits of the grid's numbers."""
    if not experiment.exclude:
        return ()
    places = _digits_by_value(experiment)
    return tuple(_pattern(places, dict(cell)) for cell in experiment.exclude)


def _pattern(places: Sequence[Mapping[str, _Digits]], cell: Mapping[str, str]) -> Pattern:
    """Each place that the cell minds, with the digits that have all its values there."""
    minds: list[tuple[int, frozenset[int]]] = []
    for place, named in enumerate(places):
        having = [named[name].get(cell[name], frozenset()) for name in named if name in cell]
        if having:
            minds.append((place, frozenset.intersection(*having)))
    return tuple(minds)


def _digits_by_value(experiment: Experiment) -> list[dict[str, _Digits]]:
    """For each place the names that it settles, and for each value the digits that have it."""
    places = [
        {name: _index(row[n] for row in axis.rows) for n, name in enumerate(axis.names)}
        for axis in experiment.axes
    ] or [{}]
    return [*places, {SEED: _index(map(str, experiment.seeds))}]


def _index(values: Iterable[str]) -> _Digits:
    found: dict[str, list[int]] = {}
    for digit, value in enumerate(values):
        found.setdefault(value, []).append(digit)
    return {value: frozenset(digits) for value, digits in found.items()}
