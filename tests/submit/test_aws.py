"""submit.backends.aws through boto3, against a Batch that runs the jobs and breaks on demand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox.testing import running
from submit import api
from submit.backends.aws import AwsBackend
from submit.errors import ServiceFailed
from submit.experiment import Axis, Experiment, Resources
from submit.runs import Selection
from submit.sending import Delivery
from submit.states import RunState
from tests.sandbox.conftest import World as SandboxWorld
from tests.sandbox.conftest import trust

from .fake import FLEET

pytestmark = pytest.mark.slow


class World:
    """A fleet of one queue in a sandbox, and the environment that leads there."""

    def __init__(self, sandbox: Any, **machines: Any) -> None:
        self.sandbox = sandbox
        made = SandboxWorld(sandbox)
        self.batch = made.batch
        queue = made.queue("q", made.environment("ce", **machines))
        arn = made.queue_detail(queue)["jobQueueArn"]
        for role in ("job", "execution"):
            made.iam.create_role(
                RoleName=role, AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com")
            )
        made.logs.create_log_group(logGroupName=FLEET.log_group)
        self.fleet = msgspec.structs.replace(
            FLEET,
            region="us-east-1",
            queues={"q": msgspec.structs.replace(FLEET.queues["c6g-medium"], arn=arn)},
        )
        self._before: dict[str, int] = {}

    def session(self, home: Path) -> api.Session:
        document = home / "fleet.json"
        document.write_bytes(msgspec.json.encode(self.fleet))
        environ = {
            "RUNFLEET_HOME": str(home),
            "RUNFLEET_SHARED": str(home / "shared"),
            "USER": "ada",
        }
        return api.Session(environ=environ, cwd=home, fleet=str(document))

    def calls(self) -> dict[str, int]:
        """Calls to Batch and Logs since this was last asked."""
        now = {name: n for name, n in self.sandbox.calls().items() if name[0] in "bl"}
        fresh = {name: n - self._before.get(name, 0) for name, n in now.items()}
        self._before = now
        return {name: n for name, n in fresh.items() if n}

    def standing(self, delivery: Delivery) -> int:
        """How many jobs stand in the queue for the experiment."""
        found = self.batch.list_jobs(
            jobQueue="q", filters=[{"name": "JOB_NAME", "values": [delivery.kept.id + "*"]}]
        )
        return len(found["jobSummaryList"])


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running(slots=2, grace_s=0.2) as sandbox, pytest.MonkeyPatch.context() as patch:
        for name, value in sandbox.env().items():
            patch.setenv(name, value)
        yield World(sandbox)


@pytest.fixture
def session(world: World, tmp_path: Path) -> Iterator[api.Session]:
    with world.session(tmp_path) as made:
        world.calls()
        yield made


def shell(script: str, **more: Any) -> Experiment:
    return Experiment(command=("sh", "-c", script, "sh"), image="busybox", **more)


def send(session: api.Session, experiment: Experiment) -> Delivery:
    return api.send(session, api.plan(session, experiment, "q"))


def test_an_experiment_from_its_plan_to_its_results(world: World, session: api.Session) -> None:
    value = 'it\'s $HOME\n{"a"} ü'
    experiment = shell(
        """printf '%s\\n' "$@"; echo "runfleet-metrics {\\"seed\\": $RUNFLEET_SEED}" """,
        axes=(Axis(names=("env-id",), rows=(("A",), (value,))),),
        seeds=(5, 6, 7),
    )
    delivery = send(session, experiment)
    assert world.calls() == {
        "batch.DescribeJobDefinitions": 1,
        "batch.RegisterJobDefinition": 1,
        "batch.SubmitJob": 1,
    }
    seen: list[int] = []
    end = api.wait(session, delivery.kept, see=lambda now: seen.append(now.runs))
    assert end.counts == {RunState.DONE: 6}
    assert world.calls() == {"batch.DescribeJobs": len(seen) + 1}

    views = api.runs(session, end)
    assert [(view.run.index, view.state, view.exit_code, view.attempts) for view in views] == [
        (index, RunState.DONE, 0, 1) for index in range(6)
    ]
    assert world.calls() == {}
    printed = "\n".join(line.text for line in api.log(session, end, views[4]))
    assert printed.startswith(f"--env-id\n{value}\n--seed\n6")
    tail = [line.text for line in api.log(session, end, views[4], 1)]
    assert tail == ['runfleet-metrics {"seed": 6}']
    world.calls()
    outcomes = api.results(session, end)
    assert [one.metrics for one in outcomes] == [{"seed": seed} for seed in (5, 6, 7)] * 2
    assert world.calls() == {"logs.FilterLogEvents": 1}


def test_failed_lost_and_cancelled_runs_are_told_apart(world: World, session: api.Session) -> None:
    experiment = shell('[ "$RUNFLEET_SEED" = 1 ] || exec sleep 60; exit 3', seeds=(1, 2), retries=0)
    kept = send(session, experiment).kept
    until_running = Selection(seeds=(2,))
    while True:
        progress = api.poll(session, [kept])[0]
        (view,) = api.runs(session, progress, until_running)
        if view.state is RunState.RUNNING:
            break
    world.sandbox.interrupt(f"{progress.rows[0].job_id}:1")
    end = api.wait(session, kept)
    assert end.counts == {RunState.FAILED: 1, RunState.LOST: 1}
    failed, lost = api.runs(session, end)
    assert (failed.state, failed.exit_code) == (RunState.FAILED, 3)
    assert lost.state is RunState.LOST
    assert (lost.reason or "").startswith("Host EC2")
    assert [view.run.index for view in api.failed_runs(session, end, 10)] == [0, 1]

    waiting = send(session, shell("exec sleep 60", seeds=tuple(range(10)))).kept
    world.calls()
    assert api.cancel(session, waiting).runs == 10
    assert world.calls() == {"batch.DescribeJobs": 1, "batch.TerminateJobs": 1}
    assert api.wait(session, waiting).counts == {RunState.CANCELLED: 10}


def test_a_single_run(session: api.Session) -> None:
    kept = send(session, shell("echo one; exit 7", retries=0)).kept
    end = api.wait(session, kept)
    (view,) = api.failed_runs(session, end, 5)
    assert (view.run.index, view.exit_code) == (0, 7)
    assert [line.text for line in api.log(session, end, view)] == ["one"]


def test_what_another_machine_has_sent_is_adopted(
    world: World, session: api.Session, tmp_path: Path
) -> None:
    experiment = shell("echo shared", seeds=(1, 2))
    first = send(session, experiment)
    (tmp_path / "other").mkdir()
    with world.session(tmp_path / "other") as other:
        world.calls()
        second = send(other, experiment)
        assert world.calls() == {
            "batch.DescribeJobDefinitions": 1,
            "batch.DescribeJobs": 1,
            "batch.ListJobs": 2,
        }
    assert (second.sent, second.adopted) == (0, 1)
    assert world.standing(first) == 1


@pytest.mark.parametrize("kind", ["throttle", "error", "reset", "lost"])
def test_a_fault_on_the_way_of_a_job(world: World, session: api.Session, kind: str) -> None:
    slept: list[float] = []

    class Hasty:
        """Time as it is, but with sleeps that are over at once."""

        now = 1_800_000_000.0

        def time(self) -> float:
            return self.now

        def sleep(self, seconds: float, /) -> None:
            slept.append(seconds)
            self.now += seconds

    session.clock = Hasty()
    world.sandbox.fault(kind, service="batch", operation="SubmitJob")
    delivery = send(session, shell(f"echo {kind}", seeds=(1, 2)))
    assert delivery.sent == 1
    assert world.standing(delivery) == 1
    assert world.calls()["batch.SubmitJob"] == (1 if kind == "lost" else 2)


def test_ten_thousand_runs_take_three_calls(world: World, session: api.Session) -> None:
    kept = send(session, shell("exec sleep 60", seeds=tuple(range(10_000)))).kept
    assert sum(world.calls().values()) == 3
    progress = api.poll(session, [kept])[0]
    assert progress.runs == 10_000
    assert world.calls() == {"batch.DescribeJobs": 1}
    api.cancel(session, kept)
    assert api.wait(session, kept).counts == {RunState.CANCELLED: 10_000}


def test_a_stream_that_does_not_exist_is_empty_and_spoils_nothing(session: api.Session) -> None:
    end = api.wait(session, send(session, shell("echo runfleet-metrics {}", seeds=(1, 2))).kept)
    streams = [stream for view in api.runs(session, end) for stream in view.streams]
    backend = AwsBackend("us-east-1")
    asked = [streams[0], "nothing/there/1", "nothing/there/2", streams[1]]
    found = list(backend.search(FLEET.log_group, asked, "runfleet-metrics"))
    assert sorted(stream for stream, _ in found) == sorted(streams)
    assert backend.tail(FLEET.log_group, "nothing/there/1", 5) == []
    assert backend.follow(FLEET.log_group, "nothing/there/1", None) == ([], None)


def test_a_queue_that_is_gone_has_no_jobs(world: World) -> None:
    arn = world.fleet.queues["q"].arn + "-gone"
    assert AwsBackend("us-east-1").find(arn, "x") == []


def test_a_refusal_is_told_in_aws_s_words(world: World, session: api.Session) -> None:
    too_large = msgspec.structs.replace(
        world.fleet,
        queues={"q": msgspec.structs.replace(world.fleet.queues["q"], arn="arn:aws:nothing")},
    )
    plan = api.plan(session, shell("x", resources=Resources(vcpus=1)), "q")
    request = msgspec.structs.replace(
        plan.submission.jobs[0],
        request=plan.submission.jobs[0].request | {"jobQueue": "arn:aws:nothing"},
    )
    bad = msgspec.structs.replace(plan.submission, jobs=(request,))
    with pytest.raises(ServiceFailed, match="AWS refused SubmitJob: ClientException"):
        api.send(session, api.Plan(submission=bad, fleet=too_large))
    assert api.experiments(session) == []


@pytest.mark.parametrize(
    ("variable", "value", "slug", "said", "hint"),
    [
        (
            "AWS_ENDPOINT_URL",
            "http://127.0.0.1:9",
            "sandbox-down",
            "nothing answers at http://127.0.0.1:9: the sandbox is not running\nnothing was sent",
            "python -m sandbox up",
        ),
        ("AWS_ACCESS_KEY_ID", "other", "bad-credentials", "does not know these", "aws sts"),
        ("AWS_ACCESS_KEY_ID", None, "no-credentials", "no AWS credentials", "aws sso login"),
        ("AWS_PROFILE", "nobody", "no-profile", "nobody", "list-profiles"),
    ],
)
def test_no_way_to_aws(
    session: api.Session,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str | None,
    slug: str,
    said: str,
    hint: str,
) -> None:
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, value)
    with pytest.raises(ServiceFailed) as err:
        send(session, shell("echo never"))
    assert err.value.slug == slug
    assert said in err.value.message
    assert hint in err.value.hint
    assert api.experiments(session) == []
