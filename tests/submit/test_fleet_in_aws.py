"""What needs AWS alone and no Pulumi: a fleet from SSM, a queue that was replaced, the doctor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest

from sandbox.testing import running
from submit import api
from submit.errors import ServiceFailed, WrongUse
from submit.experiment import Experiment
from submit.findings import Verdict
from submit.fleet import Fleet, fleet_to_parameters
from submit.fleet_cache import MAX_AGE_S
from submit.sources import Parameters
from submit.stacks import load_fleet
from tests.sandbox.conftest import World, trust

from .fake import FLEET, Clock

pytestmark = pytest.mark.slow


class Lab:
    """A published fleet of one queue, and the environment of somebody who has AWS alone."""

    def __init__(self, sandbox: Any) -> None:
        self.sandbox = sandbox
        self.made = World(sandbox)
        self.ssm = boto3.client("ssm", region_name="us-east-1")
        self.clock = Clock()
        arn = self.queue("q1")
        self.roles = {
            role: self.made.iam.create_role(
                RoleName=role, AssumeRolePolicyDocument=trust("ecs-tasks.amazonaws.com")
            )["Role"]["Arn"]
            for role in ("job", "execution")
        }
        self.made.logs.create_log_group(logGroupName=FLEET.log_group)
        self.fleet = msgspec.structs.replace(
            FLEET,
            region="us-east-1",
            # More than the ten that one page of parameters has.
            queues={f"q-{n}": self.described(arn) for n in range(12)},
            job_role_arn=self.roles["job"],
            execution_role_arn=self.roles["execution"],
        )

    def queue(self, name: str) -> str:
        queue = self.made.queue(name, self.made.environment(f"ce-{name}"))
        return str(self.made.queue_detail(queue)["jobQueueArn"])

    def described(self, arn: str) -> Any:
        return msgspec.structs.replace(FLEET.queues["c6g-medium"], arn=arn)

    def publish(self, stack: str, **changes: Any) -> Fleet:
        fleet = msgspec.structs.replace(self.fleet, stack=stack, **changes)
        for name, value in fleet_to_parameters(fleet).items():
            path = f"/runfleet/{stack}/{name}"
            self.ssm.put_parameter(Name=path, Value=value, Type="String", Overwrite=True)
        return fleet

    def session(self, home: Path, **given: Any) -> api.Session:
        environ = {
            "RUNFLEET_HOME": str(home),
            "RUNFLEET_SHARED": str(home / "shared"),
            "USER": "ada",
            "AWS_ENDPOINT_URL": self.sandbox.env()["AWS_ENDPOINT_URL"],
        }
        return api.Session(environ=environ, cwd=home, clock=self.clock, **given)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with running(slots=2, grace_s=0.2) as sandbox, pytest.MonkeyPatch.context() as patch:
        for name, value in sandbox.env().items():
            patch.setenv(name, value)
        yield Lab(sandbox)


def test_a_published_fleet_is_found_by_its_stack(lab: Lab, tmp_path: Path) -> None:
    fleet = lab.publish("vision")
    assert load_fleet(lab.session(tmp_path, stack="vision")) == fleet


def test_a_stack_in_use_is_found_everywhere(lab: Lab, tmp_path: Path) -> None:
    fleet = lab.publish("used")
    session = lab.session(tmp_path)
    assert api.use(session, "used") == fleet
    assert api.in_use(session) == Parameters(stack="used", region="us-east-1")
    assert api.queues(lab.session(tmp_path)) == fleet
    assert api.complete_queues(lab.session(tmp_path)) == sorted(fleet.queues)
    with pytest.raises(ServiceFailed, match="there is no fleet of usedd in SSM"):
        api.use(session, "usedd")
    assert api.in_use(session) == Parameters(stack="used", region="us-east-1")


def test_it_is_asked_for_again_after_a_while(lab: Lab, tmp_path: Path) -> None:
    lab.publish("aging")
    session = lab.session(tmp_path, stack="aging")
    load_fleet(session)
    newer = lab.publish("aging", image="other:2")
    assert load_fleet(session).image == FLEET.image
    lab.clock.sleep(MAX_AGE_S)
    assert load_fleet(session) == newer


def test_no_region(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WrongUse, match="no AWS region is chosen"):
        load_fleet(lab.session(tmp_path, stack="vision"))


def test_a_new_queue_is_known_at_once(lab: Lab, tmp_path: Path) -> None:
    lab.publish("growing")
    session = lab.session(tmp_path, stack="growing")
    load_fleet(session)
    arn = lab.queue("grown")
    lab.publish("growing", queues={**lab.fleet.queues, "new": lab.described(arn)})
    plan = api.plan(session, Experiment(command=("true",)), "new")
    assert plan.submission.queue_arn == arn


def test_a_replaced_queue_is_found_when_its_job_is_refused(lab: Lab, tmp_path: Path) -> None:
    gone = "arn:aws:batch:us-east-1:123456789012:job-queue/gone"
    lab.publish("moving", queues={"q": lab.described(gone)})
    session = lab.session(tmp_path, stack="moving")
    plan = api.plan(session, Experiment(command=("true", "moved")), "q")
    notes: list[str] = []
    with pytest.raises(ServiceFailed, match="gone"):
        api.send(session, plan)
    arn = lab.queue("moved")
    lab.publish("moving", queues={"q": lab.described(arn)})
    delivery = api.send(session, plan, note=notes.append)
    assert delivery.sent == 1
    assert notes == ["the queue q is another one now; sending to that"]
    (row,) = api.known(session, [delivery.kept])[0].rows
    assert row.queue_arn == arn


def test_a_queue_that_is_gone_is_told_with_those_there_are(lab: Lab, tmp_path: Path) -> None:
    gone = "arn:aws:batch:us-east-1:123456789012:job-queue/gone"
    lab.publish("shrinking", queues={"q": lab.described(gone), "r": lab.described(gone)})
    session = lab.session(tmp_path, stack="shrinking")
    plan = api.plan(session, Experiment(command=("true", "shrunk")), "q")
    lab.ssm.delete_parameter(Name="/runfleet/shrinking/queues/q")
    with pytest.raises(
        ServiceFailed, match=r"nothing was sent\nthe stack .* has no queue q any"
    ) as err:
        api.send(session, plan)
    assert err.value.hint == "submit queues"


def test_runs_are_sent_again_to_the_queue_that_has_replaced_theirs(
    lab: Lab, tmp_path: Path
) -> None:
    first, second = lab.queue("before"), lab.queue("after")
    lab.publish(FLEET.stack, queues={"q": lab.described(first)})
    session = lab.session(tmp_path, stack=FLEET.stack)
    kept = api.send(session, api.plan(session, Experiment(command=("false",)), "q")).kept
    api.wait(session, kept)
    gone = "arn:aws:batch:us-east-1:123456789012:job-queue/gone"
    stale = lab.publish(FLEET.stack, queues={"q": lab.described(gone)})
    assert load_fleet(session, fresh=True) == stale
    lab.publish(FLEET.stack, queues={"q": lab.described(second)})
    notes: list[str] = []
    assert api.retry(session, kept, note=notes.append).runs == 1
    assert notes == [f"the queues of {FLEET.stack} are others now; sending to these"]
    assert api.known(session, [kept])[0].rows[-1].queue_arn == second


def _break_nothing(_lab: Lab) -> dict[str, Any]:
    return {}


def _lose_role(lab: Lab) -> dict[str, Any]:
    return {"job_role_arn": lab.roles["job"] + "x"}


def _lose_secret(lab: Lab) -> dict[str, Any]:
    del lab
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:gone-abcdef"
    return {"secrets": {"WANDB_API_KEY": arn}}


def _lose_group(_lab: Lab) -> dict[str, Any]:
    return {"log_group": FLEET.log_group + "-gone"}


def _disable(lab: Lab) -> dict[str, Any]:
    arn = lab.queue("tired")
    lab.made.batch.update_job_queue(jobQueue="tired", state="DISABLED")
    return {"queues": {"tired": lab.described(arn)}}


@pytest.mark.parametrize(
    ("damage", "problems"),
    [
        (_break_nothing, set[str]()),
        (_lose_role, {"job role"}),
        (_lose_secret, {"secret WANDB_API_KEY"}),
        (_lose_group, {"log group"}),
        (_disable, {"queue tired"}),
    ],
)
def test_the_doctor_finds_what_is_broken(
    lab: Lab, tmp_path: Path, damage: Callable[[Lab], dict[str, Any]], problems: set[str]
) -> None:
    fleet = msgspec.structs.replace(lab.fleet, **damage(lab))
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(fleet))
    session = lab.session(tmp_path, fleet=str(tmp_path / "fleet.json"))
    lab.clock.now = time.time()
    found = list(api.examine(session))
    assert {one.what for one in found if one.verdict is Verdict.PROBLEM} == problems
    assert all(one.next for one in found if one.verdict is Verdict.PROBLEM)
    # A sandbox pulls no images and has no service for quotas: what can't be asked is no problem.
    unknown = {one.what.partition(" on ")[0] for one in found if one.verdict is Verdict.UNKNOWN}
    assert unknown == {"image", "EC2 quotas"}


def test_the_doctor_goes_as_far_as_it_can(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stack,) = [one for one in api.examine(lab.session(tmp_path)) if one.what == "stack"]
    assert stack.verdict is Verdict.PROBLEM
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(lab.fleet))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it has found credentials before
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    *_, last = api.examine(lab.session(tmp_path, fleet=str(tmp_path / "fleet.json")))
    assert (last.what, last.verdict) == ("credentials", Verdict.PROBLEM)
