"""--state: a sandbox that goes on where the last one ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.errors import SandboxError
from sandbox.keeping import Keeper
from sandbox.testing import running
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow


def test_what_the_account_holds_survives(tmp_path: Path) -> None:
    """Resources, jobs and their logs stay; what ran has lost its machine, as its words say."""
    state = tmp_path / "state"
    with running(state_dir=state, grace_s=0.2) as sandbox:
        world = World(sandbox)
        world.environment("ce")
        world.queue("q", "ce")
        world.definition("d")
        done = world.over(world.submit("echo", "kept"))
        array = world.over(world.submit("false", arrayProperties={"size": 3}))
        lost = world.submit("sleep", "60")
        script = "[ $AWS_BATCH_JOB_ATTEMPT = 2 ] || sleep 60"
        again = world.submit("sh", "-c", script, retryStrategy={"attempts": 2})
        for job_id in (lost, again):
            until(lambda j=job_id: world.job(j)["status"] == "RUNNING")
        waiting = world.submit("true", dependsOn=[{"jobId": again}])
        sandbox.client("ssm").put_parameter(Name="/kept", Value="v", Type="String")
        sandbox.advance(86_400)
        at = sandbox.app.clock()
    with running(state_dir=state) as sandbox:
        world = World.__new__(World)
        world.sandbox, world.batch = sandbox, sandbox.client("batch")
        world.logs = sandbox.client("logs")
        assert sandbox.app.clock() >= at
        assert world.job(done["jobId"]) == done
        assert world.lines(done) == ["kept"]
        assert world.job(array["jobId"])["arrayProperties"]["statusSummary"]["FAILED"] == 3
        assert world.job(lost)["statusReason"].startswith("Host EC2 (instance i-")
        assert world.over(again)["status"] == "SUCCEEDED"
        assert len(world.job(again)["attempts"]) == 2
        assert world.over(waiting)["status"] == "SUCCEEDED"
        assert world.over(world.submit("true"))["status"] == "SUCCEEDED"
        parameter = sandbox.client("ssm").get_parameter(Name="/kept")["Parameter"]
        assert parameter["Value"] == "v"
        assert sandbox.client("iam").get_role(RoleName="instance")["Role"]["RoleName"] == "instance"


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    """Reading it would run what is in it."""
    tmp_path.chmod(0o777)
    with pytest.raises(SandboxError, match="chmod 700"):
        Keeper(tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "state")
    assert keeper.load("x") is None
    keeper.save("x", {"a": 1})
    assert keeper.load("x") == {"a": 1}
    (tmp_path / "state" / "x.state").write_bytes(b"broken")
    with pytest.raises(SandboxError, match=r"x\.state can't be read"):
        keeper.load("x")
