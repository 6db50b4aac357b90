"""submit doctor."""

from __future__ import annotations

import sys

import click

from submit import api
from submit.commands.options import fleet_option, json_option, stack_option
from submit.commands.text import plural, say, show_json
from submit.errors import Refused
from submit.findings import Finding, Verdict

COLOURS = {Verdict.OK: "green", Verdict.PROBLEM: "red", Verdict.UNKNOWN: "yellow"}
LABEL = 9
"""Columns for the verdict."""


@click.command("doctor")
@stack_option
@fleet_option
@json_option
def command(stack: str | None, fleet: str | None, as_json: bool) -> int:  # noqa: FBT001 # click passes by name
    """Look at credentials, clock, stack, queues, roles, secrets, logs and quotas.

    Each line says ok, problem (and what to do) or unknown. Exits with 3 when there is a problem.
    """
    findings: list[Finding] = []
    with api.Session(fleet=fleet, stack=stack) as session:
        for finding in api.examine(session):
            findings.append(finding)
            if not as_json:
                _print(finding)
    if as_json:
        show_json(findings)
    problems = sum(finding.verdict is Verdict.PROBLEM for finding in findings)
    if not as_json:
        say(f"{plural(problems, 'problem')}" if problems else "nothing wrong was found")
    return Refused.exit_code if problems else 0


def _print(finding: Finding) -> None:
    word = f"{finding.verdict.value:<{LABEL}}"
    colour = None if _is_plain() else COLOURS[finding.verdict]
    click.echo(f"{click.style(word, fg=colour)}{finding.what}: {finding.says}")
    if finding.next:
        click.echo(f"{'':<{LABEL}}next: {finding.next}")


def _is_plain() -> bool:
    import os  # noqa: PLC0415 # here alone

    return bool(os.environ.get("NO_COLOR")) or not sys.stdout.isatty()
