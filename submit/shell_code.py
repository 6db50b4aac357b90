"""Where a value would be read as code by a shell, and not arrive as it is. Pure.

The run side starts the command without a shell; but the command may be one, or hand words to one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from submit.errors import WrongUse
from submit.experiment import (
    SEED,
    Experiment,
    Filled,
    argument_parts,
    environment_suffix,
    parameter_values,
)

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh"})
_WITH_FILE = frozenset({"--rcfile", "--init-file"})
"""Options of shells that are followed by a file, beside -o and -O that are by a name."""
_NO_CODE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
"""What is the same word in every shell, quoted or not."""


class _Caller(msgspec.Struct, frozen=True):
    """A program that hands the word of an option to a shell: its letter, its long name, and how many
    operands may stand before it.
    """

    letter: str
    long: str
    operands: int


_CALLERS = {
    "su": _Caller("c", "--command", 2),  # su - USER -c TEXT
    "runuser": _Caller("c", "--command", 2),
    "script": _Caller("c", "--command", 1),
    "flock": _Caller("c", "--command", 1),
    "env": _Caller("S", "--split-string", 0),  # no shell, but it takes words apart as one does
}
_JOINERS = frozenset({"ssh", "rsh"})
"""Programs that make one text of all their words, for a shell."""


class _Code(msgspec.Struct, frozen=True):
    """A word that is read as code: by what, and whether variables of the run are known there."""

    reader: str
    has_variables: bool = True


def check_shell_code(experiment: Experiment) -> None:
    """Raises WrongUse for a value that fills a place in text which a shell reads as code."""
    arguments = argument_parts(experiment)
    code = _code_places(experiment.command, len(arguments))
    for place, parts in enumerate(arguments):
        for part in parts:
            if place not in code or not isinstance(part, Filled) or part.name == SEED:
                continue
            for value in parameter_values(experiment, part.name):
                if not _NO_CODE.fullmatch(value):
                    raise _refusal(part.name, value, code[place])


def _refusal(name: str, value: str, code: _Code) -> WrongUse:
    message = (
        f"{{{name}}} stands in the text of {code.reader}, where its value {value!r} would be read "
        "as code"
    )
    variable = f"RUNFLEET_PARAM_{environment_suffix(name)}"
    hint = f'write "${variable}" in its place: the shell takes the value as it is'
    if not code.has_variables:
        hint = "start the program itself, or give it the value in a file or by a name of letters"
    return WrongUse("shell-code", message, hint)


def _code_places(command: Sequence[str], arguments: int) -> dict[int, _Code]:
    """The places of words that a shell reads as code. `arguments` counts also those behind the
    command, which the parameters make.
    """
    found: dict[int, _Code] = {}
    for at, word in enumerate(command):
        program = word.rpartition("/")[2]
        if program in _SHELLS:
            place = _shell_place(command, at)
            if place is not None:
                found[place] = _Code(" ".join(command[at:place]))
        elif program in _CALLERS:
            knows = program in {"script", "flock"}  # the others may clear the environment
            for place in _called_places(command, at, _CALLERS[program]):
                found.setdefault(place, _Code(program, knows))
        elif program in _JOINERS:
            for place in range(at + 1, arguments):
                found.setdefault(place, _Code(program, has_variables=False))
    return found


def _shell_place(command: Sequence[str], shell: int) -> int | None:
    """Where the code of a shell at that place stands, that its -c announces; options, some with a
    word of their own, may be before and behind the -c: `bash -euo pipefail -c TEXT`.
    """
    place, announced = shell + 1, False
    while place < len(command):
        word = command[place]
        if not word.startswith(("-", "+")):
            break
        place += 1
        if word in {"-", "--"}:
            break
        letters = "" if word.startswith("--") else word[1:]
        announced = announced or (word[0] == "-" and "c" in letters)
        place += sum(map(letters.count, "oO")) + (word in _WITH_FILE)
    return place if announced and place < len(command) else None


def _called_places(command: Sequence[str], at: int, caller: _Caller) -> Iterator[int]:
    """The words that such a program hands on: behind the option, or in one word with it."""
    operands = 0
    for place in range(at + 1, len(command)):
        word = command[place]
        name, equals, _ = word.partition("=")
        if word == "--":
            return
        if not word.startswith("-") or word == "-":
            operands += not (caller.operands == 0 and equals)  # env NAME=VALUE -S TEXT
            if operands > caller.operands:
                return
        elif name == caller.long or (not word.startswith("--") and caller.letter in word[1:]):
            yield place  # with the text in the same word: -cTEXT, --command=TEXT
            yield place + 1
