"""Experiment + queue → Submission: the exact requests, before anything is sent. Pure.

A dry run prints the Submission, a real run sends the same value. Limits are those of the
Batch API reference and the Batch User Guide ("Service quotas", "Array jobs").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import msgspec

from submit.checks import check_experiment
from submit.definitions import ALL_NODES, Definition, Request, define, pairs, retry_strategy
from submit.errors import Refused, WrongUse
from submit.experiment import Experiment, experiment_id, retries_of, run_spans
from submit.fleet import LOCAL, Fleet, Queue
from submit.images.names import pin
from submit.job_names import job_name
from submit.nearest import did_you_mean, near_names
from submit.ranges import count_ranges, encode_spans, split_ranges
from submit.resources import JobResources, resolve_resources
from submit.runside import FOR_PEOPLE, encode_grid, encode_runs

MAX_ARRAY_SIZE = 10_000
MAX_OVERRIDES = 8192
"""Characters of container overrides that ECS takes: a longer job is accepted, then fails."""
FOR_PEOPLE_ROOM = 1024
"""Of these, what is kept free for names, group and tags when an experiment is first cut into jobs: with
others it is the same experiment, and must be cut at the same runs.
"""
MAX_PAYLOAD_BYTES = 30 * 1024
MAX_TAGS = 50
MAX_SHARE = 255
"""Letters of a share identifier."""
MAX_RETRIES = 9
"""retryStrategy.attempts is 1 to 10, and the first try is one of them."""
USER_TAG = "runfleet:user"
"""A job's tag that says who has sent it."""
DIGEST_TAG = "runfleet:image-digest"
"""A job's tag that says which image exactly it runs, whatever the tag of the image means later."""
_IMAGE = re.compile(r"[A-Za-z0-9:/._@#-]{1,255}")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One Batch job: a chunk of the experiment's runs, an array unless it is a single run."""

    name: str
    chunk: int
    runs: str
    """Indexes of its runs (submit.ranges); child N of the array is the N-th of them."""
    size: int
    request: Request
    """SubmitJob's parameters, but for jobDefinition, whose revision is known when it is sent."""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """All that one `submit run` (or retry) sends to one queue."""

    experiment: Experiment
    experiment_id: str
    number: int
    """0 for the first submission of the experiment, then one more each time."""
    stack: str
    account: str
    region: str
    queue_name: str
    queue_arn: str
    resources: JobResources
    definition: Definition
    jobs: tuple[Job, ...]
    digest: str | None = None
    """Of the image, to which the definition is pinned; None where it was not looked up."""


def find_queue(fleet: Fleet, name: str) -> Queue:
    """The queue of that logical name.

    Raises WrongUse with the nearest names and the whole list.
    """
    if name in fleet.queues:
        return fleet.queues[name]
    near = near_names(name, list(fleet.queues), most=1)
    guess = did_you_mean(name, list(fleet.queues), most=3)
    raise WrongUse(
        "unknown-queue",
        f"the stack {fleet.stack} has no queue {name!r}{guess}\n"
        f"its queues: {', '.join(sorted(fleet.queues)) or 'none'}",
        f"submit run --queue {near[0]} …" if near else "submit queues",
    )


def plan_submission(
    experiment: Experiment,
    fleet: Fleet,
    queue_name: str,
    *,
    user: str,
    runs: str | None = None,
    number: int = 0,
    tries: int | None = None,
    digest: str | None = None,
) -> Submission:
    """The requests that put `runs` (all when None) of the experiment on the queue. With `tries`
    the jobs get so many instead of the experiment's, and so the definition stays the same. With
    `digest` they run the image that had it when it was looked up.

    Raises WrongUse and Refused for whatever AWS would refuse, or accept and then fail.
    """
    check_experiment(experiment)
    queue = find_queue(fleet, queue_name)
    _refuse_impossible(experiment, fleet)
    resources = resolve_resources(experiment.resources, fleet, queue_name)
    identity = experiment_id(experiment)
    every_run = encode_spans(run_spans(experiment))
    wanted = every_run if runs is None else runs
    shared = _share_out(experiment, min(len(wanted), len(every_run)), first=number == 0)
    image = pin(experiment.image, digest) if digest else experiment.image
    definition = define(experiment, fleet, resources, shared.definition, image)
    # A job of several nodes can't be an array (User Guide, "Array jobs").
    most = 1 if resources.nodes > 1 else MAX_ARRAY_SIZE
    pieces = list(split_ranges(wanted, most=most, longest=shared.room))
    shared = _fitted(shared, max(map(len, pieces), default=0))
    tags = _job_tags(experiment, fleet, queue_name, user, digest)
    share = _share(experiment, queue, queue_name, user, first=number == 0)
    return Submission(
        experiment=experiment,
        experiment_id=identity,
        number=number,
        stack=fleet.stack,
        account=fleet.account,
        region=fleet.region,
        queue_name=queue_name,
        queue_arn=queue.arn,
        resources=resources,
        definition=definition,
        digest=digest,
        jobs=tuple(
            _job(
                name=job_name(identity, number, chunk, experiment.name),
                chunk=chunk,
                runs=piece,
                queue_arn=queue.arn,
                environment=shared.job | encode_runs(piece),
                tags=tags,
                share=share,
                tries=tries,
                workers=experiment.workers,
                nodes=resources.nodes,
            )
            for chunk, piece in enumerate(pieces)
        ),
    )


class _Shared(msgspec.Struct, frozen=True):
    """Variables of the definition and of each job, those for people apart, and the letters a job has
    left for its runs.
    """

    definition: dict[str, str]
    grid: dict[str, str]
    people: dict[str, str]
    room: int

    @property
    def job(self) -> dict[str, str]:
        return self.people | self.grid


def _share_out(experiment: Experiment, shortest: int, *, first: bool) -> _Shared:
    """The grid travels with the job while it and `shortest` letters of runs have room there, so
    that experiments share a definition.

    Where an experiment is sent for the first time, nothing that is for people has a say in it.
    """
    constant = encode_grid(experiment) | dict(experiment.environment)
    # For people, and no part of the identity: never in the definition.
    own = {name: constant.pop(name) for name in FOR_PEOPLE if name in constant}
    most = MAX_OVERRIDES - FOR_PEOPLE_ROOM if first else MAX_OVERRIDES
    counted = {} if first else own
    room = most - _overrides_length(counted | constant | encode_runs(""))
    if room >= shortest:
        return _Shared({}, constant, own, room)
    return _Shared(constant, {}, own, most - _overrides_length(counted | encode_runs("")))


def _fitted(shared: _Shared, longest: int) -> _Shared:
    """The same, such that runs of `longest` letters have room beside what is for people.

    Raises Refused where they have none.
    """
    if _overrides_length(shared.job | encode_runs("")) + longest <= MAX_OVERRIDES:
        return shared
    over = _overrides_length(shared.people | encode_runs("")) + longest - MAX_OVERRIDES
    if over > 0:
        raise Refused(
            "labels-too-long",
            f"the name, the group, the tags and W&B's project and entity have {over:,} letters more "
            "than a job has room for",
            "fewer --tag, a shorter --group",
        )
    return msgspec.structs.replace(shared, definition=shared.definition | shared.grid, grid={})


def recut_job(job: Job, runs: str) -> Iterator[Job]:
    """The job with `runs` of its runs alone, in as many as have room for them."""
    if runs == job.runs:
        yield job
        return
    # Of several nodes a job has one run: what is cut has none but the one container.
    environment = {
        pair["name"]: pair["value"] for pair in job.request["containerOverrides"]["environment"]
    }
    room = MAX_OVERRIDES - _overrides_length(environment | encode_runs(""))
    for piece in split_ranges(runs, most=MAX_ARRAY_SIZE, longest=room):
        size = count_ranges(piece)
        whole = {name: value for name, value in job.request.items() if name != "arrayProperties"}
        request = whole | _overrides({"environment": pairs(environment | encode_runs(piece))}, 1)
        if size > 1:
            request["arrayProperties"] = {"size": size}
        yield msgspec.structs.replace(job, runs=piece, size=size, request=request)


def pinned_digest(requests: Iterable[Request]) -> str | None:
    """The digest with which an experiment's jobs were sent first: all its runs have one image."""
    for request in requests:
        digest = request.get("tags", {}).get(DIGEST_TAG)
        if digest:
            return str(digest)
    return None


def _refuse_impossible(experiment: Experiment, fleet: Fleet) -> None:
    needs_image = fleet.account != LOCAL or experiment.image
    if needs_image and not _IMAGE.fullmatch(experiment.image):
        raise WrongUse(
            "image-name",
            f"{experiment.image!r} is no image's name",
            "--image REPOSITORY:TAG",
        )
    if not 0 <= retries_of(experiment) <= MAX_RETRIES:
        raise WrongUse(
            "retries",
            f"{experiment.retries} retries: AWS Batch takes 0 to {MAX_RETRIES}",
            f"--retries {MAX_RETRIES}",
        )
    if experiment.workers and fleet.account != LOCAL:
        raise WrongUse(
            "only-local",
            "workers are for the own machine: of a queue of the fleet's maxVcpus says how much it runs",
            "leave --workers out, or --queue local",
        )
    for secret in experiment.secrets:
        if secret not in fleet.secrets:
            raise Refused(
                "unknown-secret",
                f"the stack {fleet.stack} has no secret {secret!r} "
                f"(it has: {', '.join(sorted(fleet.secrets)) or 'none'})",
                "pulumi config set --secret --path "
                f"secrets.{secret} --stack {fleet.stack} (it asks for the value), then pulumi up",
            )


def _job(
    *,
    name: str,
    chunk: int,
    runs: str,
    queue_arn: str,
    environment: dict[str, str],
    tags: dict[str, str],
    share: Request,
    tries: int | None,
    workers: int | None,
    nodes: int,
) -> Job:
    size = count_ranges(runs)
    request: Request = {
        "jobName": name,
        "jobQueue": queue_arn,
        **_overrides({"environment": pairs(environment)}, nodes),
        "propagateTags": True,
        "tags": tags,
        **share,
    }
    if size > 1:  # an array has 2 children or more
        request["arrayProperties"] = {"size": size}
    if tries is not None:
        request["retryStrategy"] = retry_strategy(tries)
    if workers:  # of the own machine: AWS has max_vcpus of the queue
        request["workers"] = workers
    payload = len(msgspec.json.encode(request))
    if payload > MAX_PAYLOAD_BYTES:
        raise Refused(
            "payload-too-long",
            f"the request for the job {name} has {payload:,} bytes; AWS Batch takes "
            f"{MAX_PAYLOAD_BYTES:,}",
            "keep long values in a file of the image and pass their names or numbers",
        )
    return Job(name=name, chunk=chunk, runs=runs, size=size, request=request)


def _overrides(container: Request, nodes: int) -> Request:
    if nodes == 1:
        return {"containerOverrides": container}
    every = {"targetNodes": ALL_NODES, "containerOverrides": container}
    return {"nodeOverrides": {"nodePropertyOverrides": [every]}}


def _job_tags(
    experiment: Experiment, fleet: Fleet, queue_name: str, user: str, digest: str | None
) -> dict[str, str]:
    tags = {
        **fleet.tags,
        "queue": queue_name,  # for the bill, as the machines have it
        "runfleet:stack": fleet.stack,
        "runfleet:experiment": experiment_id(experiment),
        USER_TAG: user,
        "runfleet:name": experiment.name,
        DIGEST_TAG: digest or "",
        "runfleet:tags": " ".join(experiment.tags),
    }
    if len(tags) > MAX_TAGS:
        raise Refused(
            "too-many-tags",
            f"a job would carry {len(tags)} tags, AWS Batch fails jobs with more than {MAX_TAGS}",
            "fewer of them: pulumi config rm --path tags.NAME, then pulumi up",
        )
    return {key: _tag_value(value) for key, value in tags.items() if value}


def _share(
    experiment: Experiment, queue: Queue, queue_name: str, user: str, *, first: bool
) -> Request:
    """Whose share of a fair-share queue the jobs count for, which such a queue must be told and
    no other may (SubmitJob, shareIdentifier); all have one priority within it. What was sent
    before may be sent again to a queue that has no shares.
    """
    if not queue.fair_share:
        if experiment.share and first:
            raise Refused(
                "no-fair-share",
                f"the queue {queue_name} has no fair shares: its jobs run in the order they come",
                "leave --share out",
            )
        return {}
    share = experiment.share or re.sub(r"[^A-Za-z0-9]", "", user)[:MAX_SHARE]
    if not share:
        raise Refused(
            "no-share",
            f"{queue_name} shares its machines fairly, and the user {user!r} has no letter or digit "
            "for a share's name",
            "--share NAME",
        )
    return {"shareIdentifier": share, "schedulingPriorityOverride": 0}


def _tag_value(text: str) -> str:
    """`text` in the letters that a tag's value may have (Tagging AWS resources, "Tag restrictions")."""
    return re.sub(r"[^\w\s.:/=+\-@]", "-", text)[:256]


def _overrides_length(environment: dict[str, str]) -> int:
    """Characters of what Batch makes of the overrides for ECS (RunTask, TaskOverride)."""
    container = {"name": "default", "environment": pairs(environment)}
    return len(json.dumps({"containerOverrides": [container]}, separators=(",", ":")))
