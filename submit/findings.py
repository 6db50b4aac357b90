"""What `submit doctor` makes of what it is shown: ok, a problem, or not to be seen. Pure.

The rules are those of the AWS Batch User Guide ("Compute environment parameters",
"Troubleshooting AWS Batch") and of Signature Version 4 for the clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec

from submit.fleet import Fleet, Queue

MAX_SKEW_S = 300.0
"""A request signed at a time further off is refused (Signature Version 4, "Date handling")."""


class Verdict(str, Enum):
    """How a thing stands."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "unknown"
    """It could not be looked at; it may still work."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line: what was looked at, how it stands, in words, and what to do."""

    what: str
    verdict: Verdict
    says: str
    next: str = ""


def ok(what: str, says: str) -> Finding:
    """A thing that is as it should be."""
    return Finding(what=what, verdict=Verdict.OK, says=says)


def problem(what: str, says: str, hint: str) -> Finding:
    """A thing that keeps runs from working."""
    return Finding(what=what, verdict=Verdict.PROBLEM, says=says, next=hint)


def unknown(what: str, says: str, hint: str = "") -> Finding:
    """A thing that could not be looked at."""
    return Finding(what=what, verdict=Verdict.UNKNOWN, says=says, next=hint)


def judge_account(caller: str, account: str, fleet: Fleet) -> Finding:
    """Whether the credentials are for the account of the fleet."""
    if account == fleet.account:
        return ok("credentials", caller)
    return problem(
        "credentials",
        f"{caller}: of the account {account}; the fleet of {fleet.stack} is in {fleet.account}",
        "export AWS_PROFILE=…, then aws sts get-caller-identity",
    )


def judge_clock(here_s: float, there_s: float) -> Finding:
    """Whether the clock is near enough to AWS's that requests are taken."""
    skew = here_s - there_s
    if abs(skew) < MAX_SKEW_S:
        return ok("clock", f"{abs(skew):.0f} s from AWS's" if abs(skew) >= 1 else "as AWS's")
    way = "ahead of" if skew > 0 else "behind"
    return problem(
        "clock",
        f"{abs(skew) / 60:.0f} minutes {way} AWS's, which refuses requests at 5 minutes",
        "sudo timedatectl set-ntp true",
    )


def judge_queue(
    name: str,
    queue: Queue,
    described: Mapping[str, Any] | None,
    environments: Mapping[str, Mapping[str, Any]],
) -> Finding:
    """A queue as DescribeJobQueues has it (None: not there), and its compute environments by ARN
    as DescribeComputeEnvironments has them.
    """
    what = f"queue {name}"
    if described is None:
        return problem(what, f"{queue.arn} is not there", "pulumi refresh && pulumi up")
    state, status = described["state"], described["status"]
    if (state, status) != ("ENABLED", "VALID"):
        reason = described.get("statusReason")
        return problem(
            what,
            f"it is {state} and {status}" + (f": {reason}" if reason else ""),
            "pulumi up" if state == "ENABLED" else "pulumi refresh && pulumi up: it takes no jobs",
        )
    order = sorted(described["computeEnvironmentOrder"], key=lambda item: item["order"])
    wrong = [
        says
        for item in order
        if (says := _environment_trouble(queue, environments.get(item["computeEnvironment"])))
    ]
    if wrong and len(wrong) == len(order):
        return problem(what, "; ".join(wrong), "pulumi refresh && pulumi up")
    used = sum(_vcpus(environments.get(item["computeEnvironment"]), "desired") for item in order)
    most = sum(_vcpus(environments.get(item["computeEnvironment"]), "max") for item in order)
    says = f"ENABLED and VALID, {used} of at most {most} vCPUs are up"
    return ok(what, "; ".join([says, *wrong]))


def _environment_trouble(queue: Queue, described: Mapping[str, Any] | None) -> str:
    if described is None:
        return "its compute environment is not there"
    name = described["computeEnvironmentName"]
    state, status = described["state"], described["status"]
    if (state, status) != ("ENABLED", "VALID"):
        reason = described.get("statusReason")
        return f"the compute environment {name} is {state} and {status}" + (
            f": {reason}" if reason else ""
        )
    most = _vcpus(described, "max")
    if most < queue.vcpus:
        return (
            f"the compute environment {name} may have {most} vCPUs, one {queue.instance_type} "
            f"has {queue.vcpus}: no instance can ever start"
        )
    return ""


def _vcpus(described: Mapping[str, Any] | None, which: str) -> int:
    return int((described or {}).get("computeResources", {}).get(f"{which}vCpus") or 0)


def judge_secret(name: str, arn: str, described: Mapping[str, Any] | None) -> Finding:
    """A secret as DescribeSecret has it; None when it is not there."""
    what = f"secret {name}"
    if described is None:
        return problem(what, f"{arn} is not there", "pulumi refresh && pulumi up")
    if described.get("DeletedDate"):
        return problem(
            what,
            f"it is being deleted ({described['DeletedDate']})",
            f"aws secretsmanager restore-secret --secret-id {arn}",
        )
    if not described.get("VersionIdsToStages"):
        return problem(
            what,
            "it has no value, and a run that takes it can't start",
            f"pulumi config set --secret --path 'secrets.{name}' VALUE && pulumi up",
        )
    return ok(what, "there, with a value")


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """A quota of EC2's as Service Quotas has it."""

    code: str
    name: str
    value: float


def quota_of(queue: Queue, quotas: Iterable[Quota]) -> Quota | None:
    """The quota of vCPUs that the queue's instances count against, by the families in its name:
    `Running On-Demand G and VT instances`, `All P5 Spot Instance Requests`; None when there is none.

    A family of its own goes before its letters, these before the first of them ("Amazon EC2
    service quotas": im4gn and is4gen count as I).
    """
    family = queue.instance_type.partition(".")[0].upper()
    letters = re.match("[A-Z]*", family)
    kind = letters[0] if letters else ""
    by_family = {
        word.upper(): quota
        for quota in quotas
        if quota.name.endswith("Spot Instance Requests" if queue.spot else "instances")
        and quota.name.startswith("All " if queue.spot else "Running On-Demand ")
        for word in re.findall(r"[A-Za-z]+[0-9]*", quota.name)
    }
    generation = re.match("[A-Z]+[0-9]*", family)
    for name in (generation[0] if generation else "", kind, kind[:1]):
        if name in by_family:
            return by_family[name]
    return None


def judge_quota(quota: Quota, queues: Mapping[str, Queue]) -> Finding:
    """Whether the account may start instances for the queues that count against the quota."""
    what = f"EC2 quota {quota.name!r}"
    none = [name for name, queue in queues.items() if queue.vcpus > quota.value]
    if none:
        return problem(
            what,
            f"{quota.value:.0f} vCPUs: no instance can start for {', '.join(sorted(none))}",
            "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code "
            f"{quota.code} --desired-value {max(queues[name].max_vcpus for name in none)}",
        )
    most = max(queue.max_vcpus for queue in queues.values())
    less = f", fewer than the {most} that one queue may have" if quota.value < most else ""
    return ok(what, f"{quota.value:.0f} vCPUs{less}")
