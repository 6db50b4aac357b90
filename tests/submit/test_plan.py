"""submit.plan: the exact requests, within the limits that AWS documents."""

from __future__ import annotations

import json

import botocore.session
import msgspec
import pytest
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from submit.errors import Refused, SubmitError, WrongUse
from submit.experiment import Axis, Experiment, Resources, run_count
from submit.fleet import Fleet, Queue
from submit.plan import Submission, plan_submission
from submit.ranges import decode_ranges

QUEUE = Queue(
    arn="arn:aws:batch:us-east-1:123456789012:job-queue/rl-c6g-medium-spot-1",
    instance_type="c6g.medium",
    arch="arm64",
    vcpus=1,
    memory_mib=1_913,
    spot=True,
    max_vcpus=256,
)
FLEET = Fleet(
    version=1,
    stack="rl",
    account="123456789012",
    region="us-east-1",
    queues={"c6g-medium-spot": QUEUE},
    job_role_arn="arn:aws:iam::123456789012:role/rl-job",
    execution_role_arn="arn:aws:iam::123456789012:role/rl-execution",
    log_group="/runfleet/rl",
    secrets={"wandb": "arn:aws:secretsmanager:us-east-1:123456789012:secret:rl-wandb"},
    tags={"team": "rl"},
)
BASE = Experiment(command=("python", "train.py"), seeds=(1, 2, 3), image="cleanrl:1")


def plan(experiment: Experiment, runs: str | None = None, number: int = 0) -> Submission:
    return plan_submission(
        experiment, FLEET, "c6g-medium-spot", user="ada", runs=runs, number=number
    )


def overrides(submission: Submission) -> list[dict[str, str]]:
    return [
        {pair["name"]: pair["value"] for pair in job.request["containerOverrides"]["environment"]}
        for job in submission.jobs
    ]


def changed(**change: object) -> Experiment:
    return msgspec.structs.replace(BASE, **change)


def test_an_experiment_is_one_array_job() -> None:
    submission = plan(BASE)
    (job,) = submission.jobs
    assert job.request["arrayProperties"] == {"size": 3}
    assert job.request["jobQueue"] == QUEUE.arn
    assert job.request["jobName"] == f"{submission.experiment_id}-0-0"
    assert job.runs == "0-2"


def test_a_single_run_is_a_plain_job() -> None:
    """AWS Batch refuses an array of 1 (Array jobs: between 2 and 10,000)."""
    (job,) = plan(changed(seeds=(5,))).jobs
    assert "arrayProperties" not in job.request
    assert (job.runs, job.size) == ("0", 1)


@pytest.mark.parametrize(
    ("seeds", "sizes"),
    [
        (10_000, [10_000]),
        (10_001, [10_000, 1]),
        (20_000, [10_000, 10_000]),
        (100_000, [10_000] * 10),
    ],
)
def test_large_experiments_are_cut_into_chunks(seeds: int, sizes: list[int]) -> None:
    submission = plan(changed(seeds=tuple(range(seeds))))
    assert [job.size for job in submission.jobs] == sizes
    assert len({job.name for job in submission.jobs}) == len(sizes)


def test_the_definition_holds_what_overrides_cannot_and_spot_losses_are_retried() -> None:
    request = plan(changed(secrets=("wandb",), retries=4)).definition.request
    container = request["containerProperties"]
    assert container["image"] == "cleanrl:1"
    assert container["secrets"] == [{"name": "wandb", "valueFrom": FLEET.secrets["wandb"]}]
    assert container["logConfiguration"]["options"] == {"awslogs-group": "/runfleet/rl"}
    assert request["retryStrategy"] == {
        "attempts": 5,
        "evaluateOnExit": [
            {"onStatusReason": "Host EC2*", "action": "RETRY"},
            {"onReason": "*", "action": "EXIT"},
        ],
    }
    assert "timeout" not in request


def test_equal_content_has_one_definition_whatever_the_grid() -> None:
    """The grid travels with the job, so experiments share a definition."""
    one = plan(BASE).definition
    other = plan(
        changed(seeds=(7,), command=("python", "b.py"), axes=(Axis(names=("a",), rows=(("1",),)),))
    ).definition
    assert one == other
    assert plan(changed(image="cleanrl:2")).definition.name != one.name
    assert plan(changed(resources=Resources(timeout_s=60))).definition.name != one.name


def test_a_long_grid_moves_into_the_definition() -> None:
    """ECS takes 8,192 characters of overrides, RegisterJobDefinition 24 KiB."""
    values = tuple((f"environment-number-{n}",) for n in range(500))
    submission = plan(changed(axes=(Axis(names=("env-id",), rows=values),)))
    assert set(overrides(submission)[0]) == {"RUNFLEET_PLAN_RUNS", "WANDB_NAME", "WANDB_RUN_GROUP"}
    grouped = plan(msgspec.structs.replace(submission.experiment, group="the paper"))
    assert grouped.definition == submission.definition
    environment = submission.definition.request["containerProperties"]["environment"]
    assert "RUNFLEET_PLAN_AXES" in {pair["name"] for pair in environment}


def test_a_grid_too_long_for_both_is_refused() -> None:
    values = tuple((f"environment-number-{n}",) for n in range(5_000))
    with pytest.raises(Refused) as caught:
        plan(changed(axes=(Axis(names=("env-id",), rows=values),)))
    assert caught.value.slug == "grid-too-long"


def test_scattered_runs_are_one_job() -> None:
    """137 failures out of 10,000, anywhere, are one SubmitJob."""
    runs = sorted({(n * 7919) % 10_000 for n in range(137)})
    (job,) = plan(changed(seeds=tuple(range(10_000))), runs=",".join(map(str, runs)), number=3).jobs
    assert list(decode_ranges(job.runs)) == runs
    assert job.name.endswith("-3-0")


def test_a_name_ends_the_jobs_name_in_legal_letters() -> None:
    (job,) = plan(changed(name="my paper: final (2)!" + "x" * 200)).jobs
    assert job.name.startswith(f"{plan(BASE).experiment_id}-0-0-my-paper-final-2-xxx")
    assert len(job.name) == 128


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        ({"image": ""}, "image-name"),
        ({"image": "a b"}, "image-name"),
        ({"retries": 10}, "retries"),
        ({"retries": -1}, "retries"),
        ({"secrets": ("nope",)}, "unknown-secret"),
        ({"resources": Resources(memory_mib=2_048)}, "too-large"),
        ({"command": ()}, "no-command"),
    ],
    ids=str,
)
def test_refused_before_sending(change: dict[str, object], slug: str) -> None:
    with pytest.raises(SubmitError) as caught:
        plan(changed(**change))
    assert caught.value.slug == slug
    assert caught.value.exit_code in {2, 3}


@pytest.mark.parametrize(
    ("typed", "near"),
    [("c6g-medium-sport", "c6g-medium-spot"), ("c6g.medium-spot", "c6g-medium-spot")],
)
def test_an_unknown_queue_is_answered_with_the_nearest_and_the_list(typed: str, near: str) -> None:
    with pytest.raises(WrongUse) as caught:
        plan_submission(BASE, FLEET, typed, user="ada")
    assert f"did you mean {near}?" in caught.value.message
    assert "its queues: c6g-medium-spot" in caught.value.message
    assert caught.value.hint == f"submit run --queue {near} …"


TEXT = st.text(st.characters(codec="utf-8"), max_size=80)
EXPERIMENTS = st.builds(
    Experiment,
    command=st.lists(TEXT, max_size=4).map(tuple),
    axes=st.lists(
        st.builds(
            Axis,
            names=st.tuples(st.from_regex(r"[a-z][a-z.-]{0,8}", fullmatch=True) | TEXT),
            rows=st.lists(st.tuples(TEXT), max_size=60, unique=True).map(tuple),
        ),
        max_size=4,
    ).map(tuple),
    seeds=st.lists(st.integers(-1, 10**9), max_size=50, unique=True).map(tuple),
    image=st.just("cleanrl:1") | TEXT,
    environment=st.lists(st.tuples(st.just("A") | TEXT, TEXT), max_size=3).map(tuple),
    retries=st.integers(-1, 10),
    name=TEXT,
    group=TEXT,
)


@settings(deadline=None)
@given(EXPERIMENTS)
def test_every_plan_is_within_awss_limits(experiment: Experiment) -> None:
    """Whatever is asked: refused with a message, or requests that AWS's own model takes, whose
    runs are each of the experiment's exactly once.
    """
    try:
        submission = plan(experiment)
    except SubmitError as err:
        assert err.message
        assert err.exit_code in {2, 3}
        return
    held = [n for job in submission.jobs for n in decode_ranges(job.runs)]
    assert held == list(range(run_count(experiment)))
    model = botocore.session.get_session().get_service_model("batch")
    validator = ParamValidator()
    for operation, request in [
        ("RegisterJobDefinition", submission.definition.request),
        *(("SubmitJob", {**job.request, "jobDefinition": "d:1"}) for job in submission.jobs),
    ]:
        shape = model.operation_model(operation).input_shape
        assert not validator.validate(request, shape).generate_report()
    for job in submission.jobs:
        # ECS counts the whole structure that Batch makes of it, non-ASCII letters escaped.
        container = {"name": "default", **job.request["containerOverrides"]}
        overrides = {"containerOverrides": [container]}
        assert len(json.dumps(overrides, separators=(",", ":"))) <= 8192
        assert len(job.name) <= 128
        assert 2 <= job.size <= 10_000 or "arrayProperties" not in job.request


def test_overrides_filled_to_the_brim_are_not_over_it() -> None:
    """As many scattered runs as a job's overrides hold, and not one character more."""
    grid = changed(seeds=tuple(range(100_000)))
    runs = ",".join(str(n) for n in range(0, 100_000, 7))
    for job in plan(grid, runs=runs, number=1).jobs[:-1]:
        container = {"name": "default", **job.request["containerOverrides"]}
        length = len(json.dumps({"containerOverrides": [container]}, separators=(",", ":")))
        assert 8192 - 400 < length <= 8192


@pytest.mark.parametrize(("values", "seeds"), [(100, 380), (1900, 20)])
def test_what_is_for_people_moves_no_run_to_another_job(values: int, seeds: int) -> None:
    """With other tags it is the same experiment: the job of a number holds the same runs."""
    axis = Axis(names=("a",), rows=tuple((f"v{n}",) for n in range(values)))
    ragged = changed(
        axes=(axis,),
        seeds=tuple(range(seeds)),
        exclude=tuple((("seed", str(seed)),) for seed in range(1, seeds, 2)),
    )
    tags = tuple(f"{n:02}{'t' * 60}" for n in range(20))
    labelled = msgspec.structs.replace(ragged, name="n" * 90, group="g" * 128, tags=tags)
    one, other = plan(ragged), plan(labelled)
    assert [job.runs for job in one.jobs] == [job.runs for job in other.jobs]
    assert len(one.jobs) > 1
    for job in other.jobs:
        container = {"name": "default", **job.request["containerOverrides"]}
        assert len(json.dumps({"containerOverrides": [container]}, separators=(",", ":"))) <= 8192


def test_workers_are_for_the_own_machine() -> None:
    """SubmitJob has no such field."""
    with pytest.raises(WrongUse, match="workers are for the own machine"):
        plan(changed(workers=2))


def test_labels_that_no_job_has_room_for_are_refused() -> None:
    tags = tuple(f"{n:03}{'t' * 60}" for n in range(140))
    with pytest.raises(Refused, match="letters more than a job has room for"):
        plan(changed(tags=tags))


def test_a_definition_does_not_depend_on_tags_and_jobs_carry_them() -> None:
    """Who looks for what a colleague has sent looks under the same definition's name."""
    other = msgspec.structs.replace(FLEET, tags={"team": "vision"})
    submission = plan_submission(BASE, other, "c6g-medium-spot", user="ada")
    assert submission.definition.name == plan(BASE).definition.name
    tags = submission.jobs[0].request["tags"]
    assert (tags["team"], tags["queue"]) == ("vision", submission.queue_name)
