"""A long list of options, in the order in which a person asks: under headings."""

from __future__ import annotations

from collections.abc import Mapping

import click

OTHERS = "Options"


def write_options(
    command: click.Command,
    ctx: click.Context,
    formatter: click.HelpFormatter,
    headings: Mapping[str, str],
) -> None:
    """The options of each heading, by their names; what is under none, last."""
    options = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
    shown = {option: record for option in options if (record := option.get_help_record(ctx))}
    named = {name: option for option in shown for name in option.opts}
    for heading, names in headings.items():
        with formatter.section(heading):
            formatter.write_dl([shown.pop(named[name]) for name in names.split()])
    if shown:
        with formatter.section(OTHERS):
            formatter.write_dl(list(shown.values()))
