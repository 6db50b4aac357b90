"""infra.mistakes: what people read."""

from __future__ import annotations

from infra.mistakes import Mistake, Refused, shown


def test_message() -> None:
    """Golden: natural order, a command under its line, what to do next."""
    refused = Refused(
        [
            Mistake(path="runfleet:instanceTypes[10]", problem="later"),
            Mistake(path="runfleet:instanceTypes[2]", problem="sooner"),
            Mistake(path="runfleet:maxVcpu", problem="no such key", command="pulumi config rm X"),
        ]
    )
    assert refused.told("rl") == (
        "3 mistakes in the settings of stack rl:\n"
        "  runfleet:instanceTypes[2]: sooner\n"
        "  runfleet:instanceTypes[10]: later\n"
        "  runfleet:maxVcpu: no such key\n"
        "      pulumi config rm X\n"
        "Nothing was changed. Edit Pulumi.rl.yaml, then type: pulumi up"
    )


def test_one() -> None:
    refused = Refused([Mistake(path="runfleet:spot", problem="bad")])
    assert refused.told("rl").startswith("1 mistake in the settings of stack rl:\n")


def test_long_values_are_cut() -> None:
    assert len(shown("x" * 1000)) == 60
    assert shown({"a": "ö\n"}) == '{"a": "ö\\n"}'
