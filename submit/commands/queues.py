"""submit queues."""

from __future__ import annotations

import click
import msgspec

from submit import api
from submit.commands.options import fleet_option, json_option, stack_option
from submit.commands.text import say, show_json


@click.command("queues")
@stack_option
@fleet_option
@json_option
def command(stack: str | None, fleet: str | None, as_json: bool) -> int:  # noqa: FBT001 # click passes by name
    """Show the team's queues: what `submit run --queue` takes."""
    with api.Session(fleet=fleet, stack=stack) as session:
        found = api.queues(session)
    if as_json:
        queues = {name: msgspec.to_builtins(queue) for name, queue in found.queues.items()}
        place = {"stack": found.stack, "account": found.account, "region": found.region}
        show_json({**place, "queues": queues})
        return 0
    from submit.commands.tables import print_table  # noqa: PLC0415 # not for JSON

    say(f"the queues of {found.stack} (account {found.account}, {found.region})")
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
                "spot" if queue.spot else "on-demand",
                queue.max_vcpus,
            )
            for name, queue in sorted(found.queues.items())
        ],
    )
    return 0
