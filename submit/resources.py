"""What one job gets on a queue: defaults from the queue, refusals of what can't fit. Pure."""

from __future__ import annotations

import msgspec

from submit.errors import Refused
from submit.experiment import Resources
from submit.fleet import LOCAL, Fleet, Queue

MAX_NODES = 1000
"""Batch User Guide, "Multi-node parallel jobs"."""
MIN_TIMEOUT_S = 60
"""RegisterJobDefinition, JobTimeout: attemptDurationSeconds is at least 60."""


class JobResources(msgspec.Struct, frozen=True, kw_only=True):
    """What one job has, on each of its nodes; `timeout_s` None means no limit."""

    vcpus: int
    memory_mib: int
    gpus: int
    shm_mib: int
    timeout_s: int | None
    nodes: int = 1


def resolve_resources(asked: Resources, fleet: Fleet, queue_name: str) -> JobResources:
    """`asked`, completed with the queue's share for one vCPU, or on a GPU queue for one GPU; of a
    run on several nodes, with the whole machine.

    /dev/shm may take half of the memory, as on a plain Linux machine: Docker's own default
    of 64 MB breaks data loaders and NCCL.
    Raises Refused when no instance of the queue could ever run such a job.
    """
    queue = fleet.queues[queue_name]
    _refuse_misfit(asked, fleet, queue_name)
    nodes = asked.nodes or 1
    _refuse_nodes(nodes, fleet, queue_name)
    gpus, vcpus = (min(1, queue.gpus), 1) if nodes == 1 else (queue.gpus, queue.vcpus)
    gpus = gpus if asked.gpus is None else asked.gpus
    share = gpus / queue.gpus if gpus else (asked.vcpus or vcpus) / queue.vcpus
    memory_mib = asked.memory_mib or max(4, int(queue.memory_mib * share))
    if asked.shm_mib and asked.shm_mib > memory_mib:
        raise Refused(
            "shm-too-large",
            f"shared memory of {asked.shm_mib:,} MiB is part of the run's memory, which is "
            f"{memory_mib:,} MiB",
            f"--shm {memory_mib // 2}, or more --memory",
        )
    return JobResources(
        vcpus=asked.vcpus or max(1, int(queue.vcpus * share)),
        memory_mib=memory_mib,
        gpus=gpus,
        shm_mib=asked.shm_mib or max(1, memory_mib // 2),
        timeout_s=asked.timeout_s,
        nodes=nodes,
    )


def _refuse_misfit(asked: Resources, fleet: Fleet, queue_name: str) -> None:
    queue = fleet.queues[queue_name]
    if fleet.account != LOCAL and asked.timeout_s is not None and asked.timeout_s < MIN_TIMEOUT_S:
        raise Refused(
            "timeout-too-short",
            f"a run is to end after {asked.timeout_s} s, AWS Batch takes {MIN_TIMEOUT_S} s or more",
            "--hours 1m",
        )
    for what, wanted, has in (
        ("vCPUs", asked.vcpus, queue.vcpus),
        ("MiB of memory", asked.memory_mib, queue.memory_mib),
        ("GPUs", asked.gpus, queue.gpus),
    ):
        if wanted is not None and wanted > has:
            held = f"has {has:,} for jobs" if has else "has none"
            raise Refused(
                "too-large",
                f"a run asks for {wanted:,} {what.removesuffix('s') if wanted == 1 else what}; an instance of {queue_name} "
                f"({queue.instance_type}) {held}",
                _advice(asked, fleet, queue),
            )


def _refuse_nodes(nodes: int, fleet: Fleet, queue_name: str) -> None:
    """Batch runs jobs of several nodes on machines that are not taken away, one node on each
    (User Guide, "Multi-node parallel jobs").
    """
    if nodes == 1:
        return
    queue = fleet.queues[queue_name]
    if fleet.account == LOCAL:
        raise Refused(
            "nodes-local",
            f"{nodes} nodes for a run, and the own machine is one",
            "an on-demand queue of the fleet's: submit queues",
        )
    if nodes > MAX_NODES:
        raise Refused(
            "too-many-nodes",
            f"{nodes:,} nodes for a run; AWS Batch takes {MAX_NODES:,}",
            f"--nodes {MAX_NODES}",
        )
    if queue.spot:
        steady = sorted(
            (other.instance_type != queue.instance_type, name)
            for name, other in fleet.queues.items()
            if not other.spot
        )
        raise Refused(
            "nodes-on-spot",
            f"{nodes} nodes for a run, and {queue_name} has spot machines, on which AWS Batch runs "
            "no job of several nodes",
            f"--queue {steady[0][1]}" if steady else "pulumi config set onDemand true && pulumi up",
        )
    if nodes * queue.vcpus > queue.max_vcpus:
        raise Refused(
            "nodes-never-fit",
            f"{nodes} nodes for a run are {nodes * queue.vcpus:,} vCPUs of {queue.instance_type}; "
            f"{queue_name} may have {queue.max_vcpus:,} at once",
            f"--nodes {max(1, queue.max_vcpus // queue.vcpus)}, or more maxVcpus in the stack",
        )


def _advice(asked: Resources, fleet: Fleet, queue: Queue) -> str:
    if fleet.account == LOCAL:
        return "submit queues   (one of the fleet's may do)"
    fitting = sorted(
        (other.spot != queue.spot, other.gpus, other.vcpus, other.memory_mib, name)
        for name, other in fleet.queues.items()
        if (asked.vcpus or 0) <= other.vcpus
        and (asked.memory_mib or 0) <= other.memory_mib
        and (asked.gpus or 0) <= other.gpus
    )
    if not fitting:
        return "no queue of this fleet has such instances: submit queues"
    names = [name for *_, name in fitting]
    others = f"   (also: {', '.join(names[1:5])})" if len(names) > 1 else ""
    return f"submit run --queue {names[0]} …{others}"
