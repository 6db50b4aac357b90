"""Looks at all that a submission rests on, one thing after the other, and says how it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from submit.backends.aws_inspector import Inspector
from submit.errors import Refused, SubmitError
from submit.findings import (
    Finding,
    judge_account,
    judge_clock,
    judge_queue,
    judge_quota,
    judge_secret,
    ok,
    problem,
    quota_of,
    unknown,
)
from submit.fleet import Fleet, Queue
from submit.images.check import check_image
from submit.session import Session
from submit.stacks import load_fleet


class Connect(Protocol):
    """How the doctor comes by AWS in a region."""

    def __call__(self, region: str) -> Inspector:
        """AWS there."""


def examine(session: Session, connect: Connect = Inspector) -> Iterator[Finding]:
    """The findings, each as soon as it is known. Raises nothing: what fails is a finding."""
    yield _look("ledger", partial(_ledger, session))
    try:
        fleet = load_fleet(session, fresh=True)
    except SubmitError as err:
        yield problem("stack", err.message, err.hint)
        return
    yield ok("stack", f"{fleet.stack}, {len(fleet.queues)} queues in {fleet.region}")
    aws = connect(fleet.region)
    try:
        caller = aws.caller()
    except SubmitError as err:
        yield problem("credentials", err.message, err.hint)
        return
    yield judge_clock(session.clock.time(), caller.time_s)
    mine = judge_account(caller.arn, caller.account, fleet)
    yield mine
    if mine.next:
        return  # nothing of the fleet is to be seen from another account
    yield from _queues(fleet, aws)
    yield from _surroundings(fleet, aws)
    yield from look_at_image(session, fleet)
    yield from _quotas(fleet.queues, aws)


def _ledger(session: Session) -> Finding:
    sent = len(session.ledger().experiments())
    many = "1 experiment" if sent == 1 else f"{sent:,} experiments"
    return ok("ledger", f"{session.home}, {many}")


def _queues(fleet: Fleet, aws: Inspector) -> Iterator[Finding]:
    try:
        found = aws.queues(queue.arn for queue in fleet.queues.values())
        environments = aws.environments(
            item["computeEnvironment"]
            for described in found.values()
            for item in described["computeEnvironmentOrder"]
        )
    except SubmitError as err:
        yield unknown("queues", err.message, err.hint)
        return
    for name, queue in sorted(fleet.queues.items()):
        yield judge_queue(name, queue, found.get(queue.arn), environments)


def _surroundings(fleet: Fleet, aws: Inspector) -> Iterator[Finding]:
    roles = {"job role": fleet.job_role_arn, "execution role": fleet.execution_role_arn}
    for what, arn in roles.items():
        yield _look(what, partial(_role, what, arn, aws))
    for name, arn in sorted(fleet.secrets.items()):
        yield _look(f"secret {name}", partial(_secret, name, arn, aws))
    yield _look("log group", partial(_log_group, fleet.log_group, aws))


def _role(what: str, arn: str, aws: Inspector) -> Finding:
    return _there(what, arn, there=aws.role(arn) is not None)


def _secret(name: str, arn: str, aws: Inspector) -> Finding:
    return judge_secret(name, arn, aws.secret(arn))


def _log_group(name: str, aws: Inspector) -> Finding:
    return _there("log group", name, there=aws.has_log_group(name))


def look_at_image(session: Session, fleet: Fleet) -> Iterator[Finding]:
    """The image that is meant where none is named, on each kind of machine that the fleet has."""
    if not fleet.image:
        yield ok("image", "the stack has none: `submit run --image` names it")
        return
    kinds = {queue.arch: name for name, queue in sorted(fleet.queues.items(), reverse=True)}
    for arch, queue_name in sorted(kinds.items()):
        yield _look(f"image on {arch}", partial(_image, fleet.image, session, fleet, queue_name))


def _image(image: str, session: Session, fleet: Fleet, queue_name: str) -> Finding:
    what = f"image on {fleet.queues[queue_name].arch}"
    notes: list[str] = []
    try:
        digest = check_image(image, fleet, queue_name, session.environ, notes.append)
    except Refused as err:
        return problem(what, err.message, err.hint)
    if digest:
        return ok(what, f"{image} is {digest}")
    here = f"{image} was not looked up: AWS is one on this machine, which pulls none"
    return unknown(what, "; ".join(notes) or here)


def _quotas(queues: dict[str, Queue], aws: Inspector) -> Iterator[Finding]:
    try:
        quotas = aws.quotas()
    except SubmitError as err:
        yield unknown(
            "EC2 quotas", err.message, "aws service-quotas list-service-quotas --service-code ec2"
        )
        return
    by_quota: dict[str, dict[str, Queue]] = {}
    known = {quota.code: quota for quota in quotas}
    for name, queue in queues.items():
        quota = quota_of(queue, quotas)
        if quota:
            by_quota.setdefault(quota.code, {})[name] = queue
    for code, theirs in by_quota.items():
        yield judge_quota(known[code], theirs)


def _there(what: str, name: str, *, there: bool) -> Finding:
    if there:
        return ok(what, name)
    return problem(what, f"{name} is not there", "pulumi refresh && pulumi up")


def _look(what: str, look: Callable[[], Finding]) -> Finding:
    """What the look finds; one that is not allowed or fails is no proof of a problem."""
    try:
        return look()
    except SubmitError as err:
        return unknown(what, err.message, err.hint)
