"""What people type for a grid: `lr=3e-4,1e-3` → Axis, `lr=1,env-id=Pong` → Cell. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from submit.errors import WrongUse
from submit.experiment import Axis, Cell
from submit.nearest import nearest


def parse_values(text: str) -> tuple[str, ...]:
    r"""The values between the commas of `text`; `\,` is a comma and `\\` a backslash within one.

    Values are taken as they stand, spaces included, so that each can be anything.
    """
    values, value, escaped = [], "", False
    for character in text:
        if escaped:
            value += character if character in ",\\" else "\\" + character
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            values.append(value)
            value = ""
        else:
            value += character
    return (*values, value + ("\\" if escaped else ""))


def parse_axis(text: str) -> Axis:
    """The axis that `NAME=VALUE,VALUE,…` stands for.

    Raises WrongUse where there is no name or no `=`.
    """
    name, equals, values = text.partition("=")
    if not name or not equals:
        raise WrongUse("grid", f"{text!r} is no NAME=VALUE,VALUE", "--grid lr=3e-4,1e-3")
    return axis(name, parse_values(values))


def axis(name: str, values: tuple[str, ...]) -> Axis:
    """One parameter and its values."""
    return Axis(names=(name,), rows=tuple((value,) for value in values))


def parse_cell(text: str) -> Cell:
    """The cell that `NAME=VALUE,NAME=VALUE,…` stands for.

    Raises WrongUse where there is no name or no `=`.
    """
    cell: list[tuple[str, str]] = []
    for pair in parse_values(text):
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise WrongUse(
                "cell", f"{text!r} is no NAME=VALUE,NAME=VALUE", "lr=3e-4,env-id=Pong-v5"
            )
        cell.append((name, value))
    return tuple(cell)


def parse_names(text: str) -> tuple[str, ...]:
    """The names of `a,b`, two or more.

    Raises WrongUse.
    """
    names = parse_values(text)
    if len(names) < 2 or not all(names):  # noqa: PLR2004 # one alone goes with nothing
        raise WrongUse("zip", f"{text!r} are not the names of parameters that go together", "a,b")
    return names


def env_ids(text: str) -> Axis:
    """The axis env-id of `A,B`.

    Raises WrongUse for an id without a letter.
    """
    names = parse_values(text)
    if not all(name.strip() for name in names):
        raise WrongUse("env-ids", f"{text!r} names an empty environment", "--env-ids A,B")
    return axis("env-id", names)


def zip_axes(axes: Sequence[Axis], zips: Sequence[tuple[str, ...]]) -> tuple[Axis, ...]:
    """The axes, those of each zip joined into one, in the place of the first of them: their
    first values go together, their second ones, and so on.

    Raises WrongUse for names that are no parameters, and for unequal numbers of values.
    """
    joined = list(axes)
    for names in zips:
        parts = [_axis_of(joined, name, names) for name in names]
        counts = {len(part.rows) for part in parts}
        if len(counts) > 1:
            told = ", ".join(f"{name} {len(p.rows)}" for name, p in zip(names, parts, strict=True))
            raise WrongUse(
                "zip",
                f"--zip {','.join(names)}: they must have the same number of values (there are: "
                f"{told})",
                "give each as many values, or leave --zip out: then every combination is run",
            )
        rows = tuple(
            tuple(row[0] for row in group) for group in zip(*(p.rows for p in parts), strict=True)
        )
        at = min(joined.index(part) for part in parts)
        joined[at] = Axis(names=names, rows=rows)
        joined = [one for one in joined if one not in parts]
    return tuple(joined)


def _axis_of(axes: Sequence[Axis], name: str, together: tuple[str, ...]) -> Axis:
    for one in axes:
        if one.names == (name,):
            return one
    several = any(name in one.names for one in axes) or together.count(name) > 1
    known = [one.names[0] for one in axes if len(one.names) == 1]
    raise WrongUse(
        "zip",
        f"--zip {','.join(together)}: {name!r} is in two zips"
        if several
        else f"--zip {','.join(together)}: the grid has no parameter {name!r}{nearest(name, known)}",
        f"--grid {name}=VALUE,VALUE",
    )
