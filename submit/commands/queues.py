"""submit queues."""

from __future__ import annotations

import click
import msgspec

from submit import api
from submit.commands.options import fleet_option, json_option, session, stack_option
from submit.commands.output import show_json, show_table


@click.command("queues")
@stack_option
@fleet_option
@json_option
def command(stack: str | None, fleet: str | None, as_json: bool) -> None:  # noqa: FBT001 # click passes by name
    """Show the team's queues: what `submit run --queue` takes."""
    found = api.fleet(session(stack, fleet))
    if as_json:
        queues = {name: msgspec.to_builtins(queue) for name, queue in found.queues.items()}
        show_json({"stack": found.stack, "region": found.region, "queues": queues})
        return
    rows = [
        (
            name,
            queue.instance_type,
            queue.arch,
            queue.vcpus,
            f"{queue.memory_mib / 1024:.1f}",
            f"{queue.gpus} × {queue.gpu_model}" if queue.gpus else "",
            "spot" if queue.spot else "on-demand",
            queue.max_vcpus,
        )
        for name, queue in sorted(found.queues.items())
    ]
    columns = ("queue", "instance", "arch", "vCPUs", "GiB", "GPUs", "market", "max vCPUs")
    show_table(columns, rows, right="vCPUs GiB max vCPUs")
