"""submit queues."""

from __future__ import annotations

import click
import msgspec

from submit import api
from submit.commands.options import fleet_option, json_option, stack_option
from submit.commands.text import say, show_json
from submit.errors import ServiceFailed, WrongUse
from submit.fleet import LOCAL, Fleet, Queue


@click.command("queues")
@stack_option
@fleet_option
@json_option
def command(stack: str | None, fleet: str | None, as_json: bool) -> int:  # noqa: FBT001 # click passes by name
    """Show the team's queues and the own machine: what `submit run --queue` takes."""
    with api.Session(fleet=fleet, stack=stack) as session:
        here = api.own_machine(session)
        try:
            found = api.queues(session)
        except WrongUse as err:
            if fleet or stack or err.slug != "no-project":
                raise
            say(f"{err.message}\n  next: {err.hint}")
            found = here
        except ServiceFailed:
            if not as_json:
                _print(here)
            raise
    if as_json:
        queues = found.queues | here.queues
        place = {"stack": found.stack, "account": found.account, "region": found.region}
        named = {name: msgspec.to_builtins(queue) for name, queue in queues.items()}
        show_json({**place, "queues": named})
        return 0
    if found is not here:
        say(f"the queues of {found.stack} (account {found.account}, {found.region})")
    _print(found)
    if found is not here:
        say("and of this machine")
        _print(here)
    return 0


def _print(found: Fleet) -> None:
    from submit.commands.tables import print_table  # noqa: PLC0415 # not for JSON

    print_table(
        ("queue", "instance", "arch", "vCPUs", "GiB", "GPUs", "market", "max"),
        [
            (
                name,
                queue.instance_type,
                queue.arch,
                queue.vcpus,
                f"{queue.memory_mib / 1024:.1f}",
                f"{queue.gpus} × {queue.gpu_model or 'GPU'}" if queue.gpus else "",
                _market(found, queue),
                queue.max_vcpus,
            )
            for name, queue in sorted(found.queues.items())
        ],
        spare=("max", "arch", "vCPUs", "GiB", "instance"),
    )


def _market(found: Fleet, queue: Queue) -> str:
    if found.account == LOCAL:
        return ""
    return "spot" if queue.spot else "on-demand"
