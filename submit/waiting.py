"""Why jobs wait, in words: from how their queue and the machines behind it are. Pure.

The words of AWS that are read here stand in the AWS Batch User Guide, "Jobs stuck in a RUNNABLE
status" and "Compute environment state and status".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class MachinesFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A compute environment: what it may start, and how many vCPUs it has asked for."""

    name: str
    state: str = "ENABLED"
    status: str = "VALID"
    reason: str | None = None
    instance_types: tuple[str, ...] = ()
    spot: bool = False
    max_vcpus: int | None = None
    desired_vcpus: int | None = None


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, and where its jobs may run, in the order in which it is tried."""

    name: str
    state: str = "ENABLED"
    status: str = "VALID"
    reason: str | None = None
    machines: tuple[MachinesFacts, ...] = ()


WAITS_FOR: Mapping[str, str] = {
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT": (
        "no instance of {types} can hold what a run asks for: cancel, and submit with less of "
        "--memory, --vcpus or --gpus"
    ),
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE": (
        "one run needs more vCPUs than the queue may ever have ({most}): pulumi config set "
        "maxVcpus MORE && pulumi up"
    ),
    "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS": (
        "AWS Batch's role may not start instances: pulumi up puts it right"
    ),
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY": (
        "AWS has no {types} free {market}at the moment; the runs start when it has{other}"
    ),
}
"""What a waiting job's status reason begins with, and what it means."""


def why_waiting(facts: QueueFacts | None, reasons: Iterable[str], vcpus: int) -> list[str]:
    """Sentences, the surest first, on why jobs with that many vCPUs wait in the queue. `reasons`
    are the status reasons of the jobs, as far as AWS gives any.
    """
    if facts is None:
        return ["the queue is gone: its jobs can't start any more; submit cancel, then run --again"]
    said = [*_queue_words(facts), *(word for one in facts.machines for word in _broken(one))]
    said += [_reason_words(reason, facts) for reason in dict.fromkeys(reasons)]
    usable = [one for one in facts.machines if one.state == "ENABLED" and one.status == "VALID"]
    return said or [word for one in usable for word in _busy(one, vcpus)]


def _queue_words(facts: QueueFacts) -> list[str]:
    if facts.status == "INVALID":
        return [f"the queue {facts.name} is INVALID: {facts.reason or 'AWS gives no reason'}"]
    if facts.state == "DISABLED":
        return [
            (
                f"the queue {facts.name} is disabled: aws batch update-job-queue --state ENABLED "
                f"--job-queue {facts.name}"
            )
        ]
    if facts.status in {"DELETING", "DELETED"}:
        return [f"the queue {facts.name} is being deleted"]
    return []


def _broken(one: MachinesFacts) -> list[str]:
    if one.status == "INVALID":
        return [f"its machines ({one.name}) are INVALID: {one.reason or 'AWS gives no reason'}"]
    if one.state == "DISABLED":
        return [
            (
                f"its machines ({one.name}) are disabled: aws batch update-compute-environment "
                f"--state ENABLED --compute-environment {one.name}"
            )
        ]
    if one.status in {"CREATING", "UPDATING", "DELETING"}:
        return [f"its machines ({one.name}) are {one.status}: this passes in a few minutes"]
    return []


def _reason_words(reason: str, facts: QueueFacts) -> str:
    types = ", ".join(dict.fromkeys(t for one in facts.machines for t in one.instance_types))
    spot = all(one.spot for one in facts.machines)
    words = {
        "types": types or "the queue's types",
        "most": sum(one.max_vcpus or 0 for one in facts.machines),
        "market": "as spot " if spot else "",
        "other": " (or: submit retry --queue with the on-demand one, after submit cancel)"
        if spot
        else "",
    }
    known = next((text for begin, text in WAITS_FOR.items() if reason.startswith(begin)), None)
    return known.format_map(words) if known else f"AWS Batch says: {reason}"


def _busy(one: MachinesFacts, vcpus: int) -> list[str]:
    most, has = one.max_vcpus, one.desired_vcpus
    if most is not None and most < vcpus:
        return [
            (
                f"a run needs {vcpus} vCPUs, {one.name} may have {most} in all: pulumi config set "
                "maxVcpus MORE && pulumi up"
            )
        ]
    if most is not None and has is not None and has + vcpus > most:
        return [
            (
                f"all {most} vCPUs that {one.name} may have are asked for: the others start as "
                "these end; more at a time: pulumi config set maxVcpus MORE && pulumi up"
            )
        ]
    market = "spot" if one.spot else "on-demand"
    if has:
        return [
            (
                f"{one.name} has asked for {has} vCPUs and may have {most}: instances take some "
                f"minutes to start; if it stays so, look at the account's EC2 quota for {market} vCPUs"
            )
        ]
    return [
        (
            f"no instance of {one.name} is up yet: the first takes some minutes; if it stays so, "
            f"look at the account's EC2 quota for {market} vCPUs"
        )
    ]
