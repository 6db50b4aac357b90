"""submit use."""

from __future__ import annotations

import click

from submit import api
from submit.commands.options import json_option
from submit.commands.text import plural, say, show_json
from submit.errors import WrongUse
from submit.sources import Output, Source


@click.command("use")
@click.argument("stack", metavar="[TEAM]", required=False)
@click.option("--ssm", is_flag=True, help="From SSM, also where a Pulumi project is at hand.")
@click.option("--region", metavar="REGION", default="", help="Where in SSM.  [default: AWS's]")
@click.option("--none", "nothing", is_flag=True, help="Forget the choice.")
@json_option
def command(*, stack: str | None, ssm: bool, region: str, nothing: bool, as_json: bool) -> int:
    """Choose the stack that all verbs mean where none is named, in every folder.

    Without TEAM: show what is in use. A stack with the setting `publish` is found in SSM
    without Pulumi, with AWS credentials alone.
    """
    if nothing and (stack or ssm or region):
        raise WrongUse(
            "use-none", "--none forgets the choice, and stands alone", "submit use --none"
        )
    if (ssm or region) and not stack:
        raise WrongUse("use-stack", "which stack's?", "submit use TEAM --ssm")
    with api.Session() as session:
        found = None
        if stack or nothing:
            found = api.use(session, stack, published=ssm, region=region)
        source = api.in_use(session)
        over = session.stack if stack and session.stack not in {None, stack} else None
    if as_json:
        show_json({"in_use": source})
        return 0
    if found:
        click.echo(f"{stack}: {plural(len(found.queues), 'queue')} in {found.region}")
    click.echo(f"in use: {_source_text(source)}")
    if over:
        say(f"but RUNFLEET_STACK or PULUMI_STACK names {over}, which goes before")
    if found:
        say("  next: submit queues")
    return 0


def _source_text(source: Source | None) -> str:
    if source is None:
        return "nothing; the stack is the one selected in the folder of the Pulumi project"
    if isinstance(source, Output):
        return f"the stack {source.stack} of the Pulumi project {source.project}"
    return f"the stack {source.stack}, from SSM in {source.region}"
