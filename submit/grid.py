"""What people type for a grid: `lr=3e-4,1e-3` → Axis. Pure."""

from __future__ import annotations

from submit.errors import WrongUse
from submit.experiment import Axis


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
