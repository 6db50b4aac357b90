"""submit.commands: what a user types, and what comes back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from submit import session as session_module
from submit.commands import VERBS, run_command
from submit.commands.asking import HEADINGS
from submit.commands.text import run_text
from submit.experiment import Run
from submit.waiting import MachinesFacts, QueueFacts

from .fake import FLEET, Clock, FakeBatch

RUN = ("run", "--queue", "c6g-medium-spot")


class Terminal:
    """Types commands where a fleet is known, and reads what they say."""

    def __init__(self, backend: FakeBatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.backend = backend
        self.out = self.err = ""
        self._capsys = capsys

    def __call__(self, *words: str) -> int:
        code = run_command(list(words))
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *words: str) -> Any:
        assert self(words[0], "--json", *words[1:]) in {0, 1}, self.err
        return msgspec.json.decode(self.out)


@pytest.fixture
def submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    clock = Clock()
    backend = FakeBatch(clock)
    (tmp_path / "fleet.json").write_bytes(msgspec.json.encode(FLEET))
    for name in list(os.environ):
        if name.startswith(("RUNFLEET_", "PULUMI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RUNFLEET_FLEET", str(tmp_path / "fleet.json"))
    monkeypatch.setenv("RUNFLEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RUNFLEET_SHARED", str(tmp_path / "shared"))
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # where nobody pulls images
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(session_module, "_aws", lambda _region: backend)
    monkeypatch.setattr("time.sleep", clock.sleep)
    return Terminal(backend, capsys)


def test_a_first_line_takes_three_calls(submit: Terminal) -> None:
    assert submit(*RUN, "--seeds", "3", "--", "x") == 0
    calls = submit.backend.calls
    assert calls == ["DescribeJobDefinitions", "RegisterJobDefinition", "SubmitJob"]


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_a_help_page(submit: Terminal, verb: str) -> None:
    assert submit(verb, "--help") == 0
    assert submit.out.startswith(f"Usage: submit {verb}")
    assert submit(verb, "-h") == 0


def test_each_option_of_run_is_told_under_its_heading(submit: Terminal) -> None:
    assert submit("run", "-h") == 0
    assert [
        line[:-1] for line in submit.out.splitlines() if line[-1:] == ":" and line[0] != " "
    ] == list(HEADINGS)


def test_help_lists_the_verbs(submit: Terminal) -> None:
    assert submit("--help") == 0
    assert all(verb in submit.out for verb in VERBS)
    assert submit() == 2
    assert "Verbs:" in submit.err


@pytest.mark.parametrize(
    ("words", "code", "said", "hint"),
    [
        (("rum",), 2, "there is no verb 'rum'; did you mean rm or run?", "submit --help"),
        (("results", "x", "--csv"), 2, "'--csv' requires an argument", "submit results --help"),
        (("status", "x", "--wat"), 2, "No such option '--wat'", "submit status --help"),
        ((*RUN,), 2, "no command to run was given", "-- python train.py"),
        ((*RUN, "--"), 2, "no command to run was given", "-- python train.py"),
        (
            (*RUN, "python", "x y.py", "--lr", "3"),
            2,
            "python 'x y.py' --lr 3, must stand behind --",
            "submit run --queue c6g-medium-spot -- python 'x y.py' --lr 3",
        ),
        (
            (*RUN, "sh", "-c", "--", "x"),
            2,
            "must stand behind --",
            "submit run --queue c6g-medium-spot -- sh -c -- x",
        ),
        (("run", "--", "x"), 2, "no queue was named", "submit queues"),
        (
            ("run", "--queue", "c6g-medium-sport", "--", "x"),
            2,
            "did you mean c6g-medium-spot or c6g-medium?\nits queues: c6g-medium, c6g-medium-spot",
            "submit run --queue c6g-medium-spot",
        ),
        ((*RUN, "--seeds", "0", "--", "x"), 2, "--seeds: '0' asks for no seed", "--seeds 3"),
        ((*RUN, "--seeds", "abc", "--", "x"), 2, "--seeds: 'abc' are no seeds", "--seeds 3"),
        ((*RUN, "--grid", "lr", "--", "x"), 2, "'lr' is no NAME=VALUE", "--grid lr="),
        ((*RUN, "--grid", "a=1,1", "--", "x"), 2, "has the value '1' twice", ""),
        ((*RUN, "--env-ids", "", "--", "x"), 2, "names an empty environment", "--env-ids A,B"),
        ((*RUN, "--zip", "a", "--", "x"), 2, "are not the names of parameters", "a,b"),
        (
            (*RUN, "--grid", "a=1", "--zip", "a,b", "--", "x"),
            2,
            "no parameter 'b' (there is: a)",
            "",
        ),
        (
            (*RUN, "--grid", "a=1", "--grid", "b=1,2", "--zip", "a,b", "--", "x"),
            2,
            "the same number of values (there are: a 1, b 2)",
            "",
        ),
        ((*RUN, "--include", "a", "--", "x"), 2, "'a' is no NAME=VALUE", ""),
        ((*RUN, "--exclude", "b=1", "--", "x"), 2, "the grid has no parameter 'b'", ""),
        ((*RUN, "-f", "none.yaml"), 2, "none.yaml can't be read: No such file", "-f FILE"),
        ((*RUN, "-f", "/dev/zero"), 2, "/dev/zero has more than 262,144 bytes", ""),
        ((*RUN, "--hours", "9" * 400, "--", "x"), 2, "is more than any duration", ""),
        ((*RUN, "-f", ""), 2, "can't be read: Is a directory", "-f FILE"),
        ((*RUN, "-f", "-", "--fleet", "-"), 2, "can't be both -f and --fleet", ""),
        ((*RUN, "--command", "a", "--", "b"), 2, "there are two commands", ""),
        ((*RUN, "--command", "'a"), 2, "is no command: no closing quotation", ""),
        (
            (*RUN, "--num-nodes", "2", "--", "x"),
            3,
            "runs no job of several nodes",
            "--queue c6g-medium",
        ),
        ((*RUN, "--share", "a b", "--", "x"), 2, "is no share's name", "--share"),
        ((*RUN, "--share", "ab", "--", "x"), 3, "has no fair shares", "leave --share out"),
        ((*RUN, "--tag", "", "--", "x"), 2, "'' is no tag", ""),
        ((*RUN, "--aws-cli", "--", "x"), 2, "how a dry run is shown", "--dry-run --aws-cli"),
        ((*RUN, "--push", "--", "x"), 2, "--push says how to build", "--build --push"),
        ((*RUN, "--instance-type", "c5.large", "--", "x"), 2, "has c6g.medium, not c5.large", ""),
        (("run", "--instance-type", "c5.large", "--", "x"), 2, "no queue of c5.large", "queues"),
        (("run", "--provider", "aws", "--command", "x"), 2, "no queue was named", "queues"),
        (
            (*RUN, "--wandb-key", "hunter2", "python", "x"),
            2,
            "must stand behind --",
            "--wandb-key KEY -- python x",
        ),
        (
            (*RUN, "--wandb-key", "hunter2", "--", "x", "--key=hunter2"),
            2,
            "the key of --wandb-key stands in the command",
            "",
        ),
        ((*RUN, "--wandb-key=hunter2", "--", "x"), 3, "keeps no secret WANDB_API_KEY", "pulumi"),
        (
            (*RUN, "--grid", "a=1,$(id)", "--", "sh", "-c", "echo {a}"),
            2,
            "its value '$(id)' would be read as code",
            'write "$RUNFLEET_PARAM_A" in its place',
        ),
        ((*RUN, "--env", "K", "--", "x"), 2, "'K' is no NAME=VALUE", "--env"),
        ((*RUN, "--env", "API_KEY=1", "--", "x"), 2, "looks like a secret", "--secret"),
        ((*RUN, "--memory", "x", "--", "x"), 2, "'x' is no amount of memory", "--memory"),
        ((*RUN, "--memory", "9G", "--", "x"), 3, "c6g.medium) has 1,760 for jobs", "submit queues"),
        ((*RUN, "--gpus", "1", "--", "x"), 3, "c6g.medium) has none", "submit queues"),
        ((*RUN, "--vcpus", "0", "--", "x"), 2, "'--vcpus': 0 is not in the range", "--help"),
        ((*RUN, "--retries", "10", "--", "x"), 2, "10 is not in the range", "--help"),
        ((*RUN, "--hours", "1s", "--", "x"), 3, "AWS Batch takes 60 s or more", "--hours 1m"),
        ((*RUN, "--secret", "no", "--", "x"), 3, "has no secret 'no'", ""),
        ((*RUN, "--image", "a b", "--", "x"), 2, "'a b' is no image's name", "--image"),
        ((*RUN, "--qeue", "x", "--", "x"), 2, "No such option '--qeue'", "submit run --help"),
        (("status", "x"), 2, "nothing was submitted from here yet", "submit run --help"),
        (("logs",), 2, "Missing argument 'EXPERIMENT'", "submit logs --help"),
        (("logs", "x", "--where", "a"), 2, "'a' is no NAME=VALUE", "--"),
        (("status", "--seed", "1"), 2, "runs of which experiment?", "submit status latest"),
        (("cancel",), 2, "which experiment?", "submit cancel EXPERIMENT, or --mine"),
        (("wait",), 2, "which experiment?", "submit wait latest"),
        (("rm",), 2, "name experiments, or --older", "submit rm --older 30d"),
        (("rm", "x", "--older", "3d"), 2, "name experiments, or --older", "submit rm"),
        (("retry", "x", "--after", "2"), 2, "--after says when to go", "--fallback QUEUE"),
        ((*RUN, "--fallback", RUN[2], "--", "x"), 2, "is the queue itself", "--fallback c6g-"),
        ((*RUN, "--fallback", "c6", "--", "x"), 2, "has no queue 'c6'", "submit queues"),
        (("queues", "--fleet", "none.json"), 2, "none.json can't be read", "pulumi stack output"),
    ],
)
def test_a_mistake_is_answered_and_nothing_is_sent(
    submit: Terminal, words: tuple[str, ...], code: int, said: str, hint: str
) -> None:
    assert submit(*words) == code
    assert submit.out == ""
    assert said in submit.err
    assert hint in submit.err
    assert "hunter2" not in submit.err
    assert "Traceback" not in submit.err
    assert submit.backend.calls == []


def test_queues(submit: Terminal) -> None:
    assert submit("queues") == 0
    lines = [line.split() for line in submit.out.splitlines()]
    assert ["c6g-medium-spot", "c6g.medium", "arm64", "1", "1.7", "spot", "16"] in lines
    found = submit.json("queues")
    assert found["queues"]["c6g-medium"]["vcpus"] == 1


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(submit: Terminal) -> None:
    words = (*RUN, "--grid", "lr=1,2", "--env-ids", r"A,B\,b", "--grid", "x=a b", "--seeds", "2")
    assert submit(*words, "--dry-run", "--", "python", "train.py", "it's") == 0
    assert "8 = 2 lr × 2 env-id × 1 x × 2 seeds" in submit.out
    assert """python train.py 'it'"'"'s' --lr 1 --env-id A --x 'a b' --seed 1""" in submit.out
    assert "… 2 more" in submit.out
    assert submit.backend.calls == []
    assert not Path(os.environ["RUNFLEET_HOME"]).exists()


def test_a_dry_run_and_a_run_are_the_same_request(submit: Terminal) -> None:
    words = (*RUN, "--seeds", "3", "--name", "ppo")
    dry = submit.json(*words, "--dry-run", "--", "python", "a.py")
    assert [one["operation"] for one in dry["requests"]] == ["RegisterJobDefinition", "SubmitJob"]
    sent: list[Any] = []
    send = submit.backend.send

    def keep(job: Any, arn: str) -> str:
        sent.append({"jobDefinition": arn, **job.request})
        return send(job, arn)

    submit.backend.send = keep  # type: ignore[method-assign] # keeps what is sent
    assert submit(*words, "--", "python", "a.py") == 0
    wanted = dry["requests"][1]["parameters"]
    assert sent[0].pop("jobDefinition").endswith(f"/{wanted.pop('jobDefinition')}:1")
    assert sent == [wanted]
    (definition,) = submit.backend.registered.values()
    assert definition.request == dry["requests"][0]["parameters"]


def test_the_order_of_the_grid_is_that_of_the_line(submit: Terminal) -> None:
    dry = ("--dry-run", "--", "x")
    assert submit(*RUN, "--env-ids", "A", "--grid", "b=1", "--grid", "c=1", *dry) == 0
    assert "1 = 1 env-id × 1 b × 1 c" in submit.out
    assert submit(*RUN, "--grid", "b=1", "--env-ids", "A", "--grid", "c=1", *dry) == 0
    assert "1 = 1 b × 1 env-id × 1 c" in submit.out


GUIDE = (
    "--docker-tag", "vwxyzjn/cleanrl:latest", "--num-seed", "2",
    "--command", "uv run python cleanrl/ppo.py --env-id CartPole-v1 --total-timesteps 100000",
)  # fmt: skip


def test_cleanrls_line_without_a_provider_is_a_script_for_docker(
    submit: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    key = ("--wandb-key", "hunter2" * 6, "--job-queue", "c6g-medium-spot")
    assert submit("run", *GUIDE, *key, "--exp-script", "ppo.sh") == 0
    assert submit.out.splitlines() == [
        f'docker run -d --cpuset-cpus="{seed - 1}" -e WANDB_API_KEY vwxyzjn/cleanrl:latest uv run '
        f"python cleanrl/ppo.py --env-id CartPole-v1 --total-timesteps 100000 --seed {seed}"
        for seed in (1, 2)
    ]
    script = tmp_path / "ppo.sh.docker.sh"
    text = script.read_text()
    assert text.splitlines()[2:] == submit.out.splitlines()
    assert script.stat().st_mode & 0o777 == 0o700
    assert "hunter2" not in text + submit.out + submit.err
    assert "nothing was sent: --job-queue alone sends nothing" in submit.err
    assert "submit run --queue c6g-medium-spot" in submit.err
    assert submit.backend.calls == []
    assert submit("run", *GUIDE, "--exp-script", "ppo.sh") == 0  # its own file is written over
    script.write_text("#!/bin/sh\nrm precious\n")
    assert submit("run", *GUIDE, "--exp-script", "ppo.sh") == 2
    assert "was not written by submit run" in submit.err
    assert "precious" in script.read_text()
    assert submit("run", *GUIDE, "--exp-script", "none/x") == 4
    assert "none/x.docker.sh can't be written: No such file" in submit.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet.json", "ppo.sh.docker.sh"]


def test_cleanrls_line_with_a_provider_is_sent(submit: Terminal) -> None:
    aws = ("--provider", "aws", "--job-queue", "c6g-medium-spot", "--num-vcpu", "1")
    rest = ("--num-memory", "1700", "--num-hours", "48.0", "--aws-num-retries", "2")
    assert submit("run", *GUIDE, *aws, *rest, "--num-gpu", "0") == 0
    (definition,) = submit.backend.registered.values()
    container = definition.request["containerProperties"]
    assert container["image"] == "vwxyzjn/cleanrl:latest"
    assert definition.request["retryStrategy"]["attempts"] == 2
    assert definition.request["timeout"] == {"attemptDurationSeconds": 172_800}
    assert container["resourceRequirements"][1] == {"type": "MEMORY", "value": "1700"}


def test_cleanrls_key_is_the_stacks(submit: Terminal) -> None:
    fleet = msgspec.structs.replace(FLEET, secrets={"WANDB_API_KEY": "arn:secret"})
    Path(os.environ["RUNFLEET_FLEET"]).write_bytes(msgspec.json.encode(fleet))
    words = (*RUN, "--wandb-key", "hunter2", "--dry-run")
    assert submit(*words, "--", "x") == 0
    assert "secret      WANDB_API_KEY" in submit.out
    assert "the one on the line was not used" in submit.err
    assert submit(*words, "--json", "--", "x") == 0
    assert "hunter2" not in submit.out + submit.err


def test_cleanrls_defaults(
    submit: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert submit("run", "--wandb-key", "x" * 40) == 0
    assert submit.out.endswith("vwxyzjn/cleanrl:latest uv run python cleanrl/ppo.py --seed 1\n")
    ids = ("--env-ids", "A", "B", "--command", "a", "--env-ids", "C")
    assert submit("run", "--image", "i", *ids) == 2
    assert "'env-id' is given twice" in submit.err
    assert submit("run", "--image", "i", *ids[:-2]) == 0
    assert [line.split()[-1] for line in submit.out.splitlines()] == ["A", "B"]


def test_an_image_is_built_before_it_is_used(
    submit: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Build:
        @staticmethod
        def build_image(image: str, **options: Any) -> str:
            asked.append((image, options))
            return f"{image}:abc"

    monkeypatch.setattr("submit.commands.cleanrl.import_module", lambda _: Build)
    line = (*RUN, "--image", "lab/ppo", "-b", "--push", "--archs", "linux/arm64", "--dry-run")
    assert submit(*line, "--", "x") == 0
    assert "image       lab/ppo:abc" in submit.out
    assert submit("run", "-b", "true", "--archs", "linux/arm64,linux/amd64") == 0
    assert asked == [
        ("lab/ppo", {"archs": "linux/arm64", "push": True}),
        ("vwxyzjn/cleanrl:latest", {"archs": "linux/arm64,linux/amd64", "push": False}),
    ]
    assert submit(*RUN, "--build", "false", "--dry-run", "--", "x") == 0
    assert len(asked) == 2


def test_a_queue_by_the_type_of_its_instances(submit: Terminal) -> None:
    dry = ("--dry-run", "--json", "--", "x")
    assert submit("run", "--instance-type", "c6g.medium", *dry) == 0
    assert msgspec.json.decode(submit.out)["queue"] == "c6g-medium"


def test_an_experiment_from_a_file(submit: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "ppo.yaml"
    file.write_text("queue: c6g-medium\ncommand: python ppo.py\nseeds: 2\ngrid: {lr: [1e-3]}\n")
    assert submit("run", "-f", str(file), "--dry-run") == 0
    assert "python ppo.py --lr 1e-3 --seed 2" in submit.out
    line = ("run", "-f", str(file), "--queue", "c6g-medium-spot", "--grid", "lr=5", "--dry-run")
    assert submit(*line, "--", "x") == 0
    assert "c6g-medium-spot of rl" in submit.out
    assert "x --lr 5 --seed 2" in submit.out
    file.write_text("queue: c6g-medium\nsed: 3\n")
    assert submit("run", "-f", str(file)) == 2
    assert f"{file}:2: sed: there is no field 'sed'; did you mean seeds?" in submit.err


def test_cells_out_of_the_grid_and_into_it(submit: Terminal) -> None:
    words = (*RUN, "--grid", "a=1,2", "--grid", "b=x,y", "--grid", "c=5,6", "--zip", "b,c")
    cells = ("--exclude", "a=2,b=y", "--include", "c=9,a=0,b=z")
    assert submit(*words, *cells, "--seeds", "2", "--dry-run", "--", "p") == 0
    assert "8 = 2 a × 2 b+c × 2 seeds - 2 excluded + 2 included" in submit.out
    assert "an array of 8, runs 0-5,8-9" in submit.out
    found = submit.json(*words, *cells, "--dry-run", "--", "p", "{a}{b}{c}")
    assert found["runs"] == 4


def test_tags_go_to_the_jobs_and_to_wandb(submit: Terminal) -> None:
    dry = submit.json(*RUN, "--tag", "a,b", "--tag", "c d", "--dry-run", "--", "x")
    job = dry["requests"][1]["parameters"]
    assert job["tags"]["runfleet:tags"] == "a b c d"
    assert {"name": "WANDB_TAGS", "value": "a,b,c d"} in job["containerOverrides"]["environment"]
    other = submit.json(*RUN, "--dry-run", "--", "x")
    assert (dry["experiment"], dry["requests"][0]) == (other["experiment"], other["requests"][0])


def test_a_fair_share_queue_is_told_whose_share_it_is(submit: Terminal) -> None:
    queues = {
        name: msgspec.structs.replace(queue, fair_share=True)
        for name, queue in FLEET.queues.items()
    }
    fleet = msgspec.structs.replace(FLEET, queues=queues)
    Path(os.environ["RUNFLEET_FLEET"]).write_bytes(msgspec.json.encode(fleet))
    for share, wanted in (((), "ada"), (("--share", "paper2"), "paper2")):
        dry = submit.json(*RUN, *share, "--dry-run", "--", "x")
        assert dry["requests"][1]["parameters"]["shareIdentifier"] == wanted


def test_quiet_prints_the_id_alone(submit: Terminal) -> None:
    assert submit(*RUN, "-q", "--", "x") == 0
    assert (len(submit.out.strip()), submit.err) == (12, "")
    identity = submit.out
    assert submit(*RUN, "-q", "--dry-run", "--", "x") == 0
    assert (submit.out, submit.err) == (identity, "")


def test_options_behind_the_dashes_are_the_command_s(submit: Terminal) -> None:
    assert submit(*RUN, "--dry-run", "--", "x", "--seeds", "3", "--", "--help") == 0
    assert "x --seeds 3 -- --help" in submit.out


def test_from_run_to_results(submit: Terminal) -> None:
    line = (*RUN, "--seeds", "2", "--env-ids", "A,B", "--", "python", "-u", "dir/ppo.py")
    assert submit(*line) == 0
    assert "1 job sent" in submit.out
    identity = submit.out.split()[1]
    assert f"submit status {identity} --watch" in submit.err

    assert submit("status") == 0
    assert f"{identity}  ppo " in submit.out
    assert "4 runs: 4 waiting" in submit.out

    submit.backend.end("job-0", ("SUCCEEDED", None))
    submit.backend.logs = {
        f"job-0/{run}/0": ["hello", f'runfleet-metrics {{"return": {run * 10}}}']
        for run in range(4)
    }
    assert submit("status", identity[:4]) == 0
    assert "4 runs: 4 done" in submit.out
    assert f"submit results {identity}" in submit.err

    assert submit("logs", "ppo", "--run", "3") == 0
    assert submit.out == 'hello\nrunfleet-metrics {"return": 30}\n'
    assert submit("logs", "latest", "--where", "env-id=B", "--tail", "2") == 0
    assert submit.out.startswith("[2 env-id=B seed=1] hello\n")
    assert submit("logs", "latest", "--where", "env-id=C") == 2

    assert submit("results", "latest") == 0
    rows = [line.split() for line in submit.out.splitlines()]
    assert any(row[:6] == ["B", "return", "2", "25", "±", "7.071"] for row in rows)
    found = submit.json("results", "latest")
    assert [one["metrics"] for one in found["runs"]][3] == {"return": 30}

    submit.backend.calls.clear()
    assert submit(*line) == 0
    assert "4 runs: 4 done; nothing to send" in submit.out
    assert "--again" in submit.err
    assert submit.backend.calls == []
    assert submit(*line[:3], "--again", *line[3:]) == 0
    assert "1 job sent" in submit.out
    assert len(submit.json("status")) == 2


def test_a_failure_is_told_with_its_last_line_and_the_exit_code(submit: Terminal) -> None:
    assert submit(*RUN, "--seeds", "2", "--", "sh", "bad.sh") == 0
    submit.backend.end("job-0", ("SUCCEEDED", None), ("FAILED", "Essential container exited"))
    submit.backend.logs = {"job-0/1/0": ["starting", "boom!", "", ""]}
    assert submit("status", "latest") == 1
    assert (
        "first that failed: run 1 seed=2: exit status 1, Essential container exited" in submit.err
    )
    assert "its last line: boom!" in submit.err
    detail = submit.json("status", "bad")
    assert detail["states"] == {"done": 1, "failed": 1}
    assert [run["exit_code"] for run in detail["details"]] == [0, 1]


def test_watch_shows_each_change_and_ends(submit: Terminal) -> None:
    sleep = submit.backend.clock.sleep
    ends = [("RUNNING", None), ("SUCCEEDED", None)]

    def goes_on(seconds: float, /) -> None:
        sleep(seconds)
        submit.backend.end("job-0", ends.pop(0))

    submit.backend.clock.sleep = goes_on  # type: ignore[method-assign] # the world goes on
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("submit.watching.pause_s", lambda _: goes_on(1) or 0)
        assert submit(*RUN, "--seeds", "2", "--watch", "--", "x") == 0
    told = [line.split("  ")[1] for line in submit.err.splitlines() if ":" in line[:3]]
    assert told == ["2 waiting", "2 running", "2 done"]
    assert "2 runs: 2 done" in submit.out


@pytest.mark.parametrize("words", [("run",), ("status",), ("quiet",)])
def test_what_programs_read_is_not_followed_by_words(
    submit: Terminal, words: tuple[str, ...]
) -> None:
    assert submit(*RUN, "--seeds", "2", "-q", "--", "x") == 0
    identity = submit.out.strip()
    submit.backend.end("job-0", ("SUCCEEDED", None))
    line = {
        "run": (*RUN, "--seeds", "2", "--watch", "--json", "--", "x"),
        "quiet": (*RUN, "--seeds", "2", "--watch", "-q", "--", "x"),
        "status": ("status", "latest", "--watch", "--json"),
    }[words[0]]
    assert submit(*line) == 0
    assert "2 runs: 2 done" in submit.err
    if words == ("quiet",):
        assert submit.out == f"{identity}\n"
    else:
        assert json.loads(submit.out)["experiment"] == identity


def test_a_watch_ends_with_the_runs_that_were_asked_for(submit: Terminal) -> None:
    assert submit(*RUN, "--seeds", "3", "--", "x") == 0
    assert submit("status", "latest", "--watch", "--seed", "4") == 2
    assert "no run has the seed 4" in submit.err, "before anything is waited for"
    submit.backend.end("job-0", ("SUCCEEDED", None), ("FAILED", "a bug"), ("SUCCEEDED", None))
    shown = {
        (): [],
        ("--seed", "1"): ["done"],
        ("--state", "failed"): ["failed"],
        ("--all",): ["done", "failed", "done"],
    }
    for words, states in shown.items():
        assert submit("status", "latest", "--watch", *words) == 1
        rows = [line.split() for line in submit.out.splitlines() if re.match(r" +\d", line)]
        assert [row[2] for row in rows] == states, submit.out
        assert submit.err.count("first that failed") == 1
    assert submit("status", "latest", "--watch", "--json", "--seed", "1") == 1
    assert [run["seed"] for run in json.loads(submit.out)["details"]] == [1]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_long_reason_is_cut_before_columns_are_left_out(
    submit: Terminal, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "CannotPullContainerError: pull image manifest has been retried 1 time(s): " + "x" * 99
    assert submit(*RUN, "--seeds", "2", "--", "x") == 0
    submit.backend.end("job-0", ("FAILED", reason))
    monkeypatch.setenv("COLUMNS", str(columns))
    assert submit("status", "latest") == 1
    rows = [line for line in submit.out.splitlines() if re.match(r" +[01] ", line)]
    assert [row.split()[:3] for row in rows] == [["0", "1", "failed"], ["1", "2", "failed"]]
    assert all("CannotPull" in row and row.endswith("…") and len(row) <= columns for row in rows)
    monkeypatch.delenv("COLUMNS")
    assert submit("status", "latest") == 1
    assert submit.out.count(reason) == 2, "where there is no terminal nothing is cut"


def test_cancel(submit: Terminal) -> None:
    assert submit(*RUN, "--seeds", "3", "--", "x") == 0
    assert submit("cancel", "latest", "--yes") == 0
    assert submit.out.endswith(": 3 runs told to stop\n")
    assert submit("status", "latest") == 1
    assert "3 cancelled" in submit.out
    assert submit.err.endswith(" --cancelled\n"), "there are no results"
    assert submit("cancel", "latest", "--yes") == 0
    assert "nothing to stop" in submit.out


def test_retry_wait_and_rm(submit: Terminal) -> None:
    assert submit(*RUN, "--seeds", "3", "--fallback", "c6g-medium", "--after", "2", "--", "x") == 0
    ends = ("SUCCEEDED", None), ("FAILED", "Essential container"), ("FAILED", "Host EC2 (i-1) x")
    submit.backend.end("job-0", *ends)
    assert submit("status", "latest") == 1
    assert "went on to c6g-medium" in submit.err
    assert "3 runs: 1 waiting, 1 done, 1 failed" in submit.out
    assert submit("status", "latest", "--state", "failed") == 1
    assert [line.split()[0] for line in submit.out.splitlines()[-1:]] == ["1"]
    assert "runs that lose 2 machines go on to c6g-medium" in submit.out
    assert submit("retry", "latest", "--failed") == 0
    assert submit.out.endswith("sent to c6g-medium-spot again\n")
    assert submit("retry", "latest") == 0
    assert "none to send again (failed or lost)" in submit.out
    assert submit("rm", "latest") == 3
    assert "2 runs of" in submit.err
    assert "submit cancel" in submit.err
    for job in ("job-1", "job-2"):
        submit.backend.end(job, ("SUCCEEDED", None))
    assert submit("wait", "latest") == 0
    assert submit.json("status", "latest")["tries"] == 5
    assert submit("rm", "--older", "30d", "--yes") == 0
    assert submit.out == "0 experiments forgotten\n"
    assert submit("rm", "latest") == 0
    assert submit("status") == 0
    assert "nothing was submitted" in submit.err


def test_wait_ends_when_the_time_is_over(submit: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", submit.backend.clock.time)
    assert submit(*RUN, "--seeds", "3", "--", "x") == 0
    began = submit.backend.clock.now
    assert submit("wait", "latest", "--timeout", "10m") == 124
    assert submit.backend.clock.now - began == pytest.approx(600)
    assert "3 waiting" in submit.out
    assert "not over yet" in submit.err


def test_cancel_asks_for_more_than_was_named(submit: Terminal) -> None:
    """There is no terminal here: it refuses."""
    for number in range(2):
        assert submit(*RUN, "--name", "ppo", "--env", f"N={number}", "--", "x") == 0
    for words in (("ppo",), ("--mine",)):
        assert submit("cancel", *words) == 3
        assert "more than was named" in submit.err
        assert "--yes" in submit.err
    assert "TerminateJobs" not in submit.backend.calls
    submit.backend.jobs["job-0"].owner = "eve"
    assert submit("cancel", "--mine", "--yes") == 0
    assert "TerminateJobs" in submit.backend.calls
    assert submit.backend.jobs["job-0"].children == [("RUNNABLE", None)]
    assert submit.backend.jobs["job-1"].over


def test_cancel_chooses_from_all_that_goes_on(submit: Terminal) -> None:
    """Experiments that have no such runs are left alone."""
    for env_ids in ("Pong,Breakout", "Breakout", "Pong"):
        assert submit(*RUN, "--env-ids", env_ids, "--", "x") == 0
    assert submit(*RUN, "--seeds", "2", "--", "x") == 0
    assert submit("cancel", "--where", "env-id=Pung", "--yes") == 2
    assert "no run has env-id=Pung" in submit.err
    assert submit("cancel", "--where", "env-id=Pong") == 3, "more than was named"
    assert submit("cancel", "--where", "env-id=Pong", "--yes") == 0
    assert submit.out.count("1 run told to stop") == 2
    over = [[status for status, _ in job.children] for job in submit.backend.jobs.values()]
    assert over == [["FAILED", "RUNNABLE"], ["RUNNABLE"], ["FAILED"], ["RUNNABLE"] * 2]
    assert submit("cancel", "--mine", "--seed", "2", "--yes") == 0
    assert submit.out.count("told to stop") == 1


@pytest.mark.parametrize("words", [(), ("latest",)])
def test_watch_is_a_verb_too(submit: Terminal, words: tuple[str, ...]) -> None:
    assert submit("watch", *words) == 2
    assert "nothing was submitted" in submit.err
    assert submit(*RUN, "--seeds", "2", "--", "x") == 0
    submit.backend.end("job-0", ("SUCCEEDED", None), ("FAILED", "a bug"))
    assert submit("watch", *words) == 1
    assert "2 runs: 1 done, 1 failed" in submit.out
    assert "first that failed" in submit.err


def test_a_value_with_a_newline_breaks_no_line(submit: Terminal) -> None:
    assert submit(*RUN, "--env-ids", "a\nb\x1b[2J,c", "--", "x") == 0
    submit.backend.end("job-0", ("SUCCEEDED", None))
    submit.backend.logs = {"job-0/0/0": ["one", "two"], "job-0/1/0": ["three"]}
    assert submit("logs", "latest") == 0
    assert submit.out.splitlines() == [
        "[0 env-id=a\\nb\\x1b[2J] one",
        "[0 env-id=a\\nb\\x1b[2J] two",
        "[1 env-id=c] three",
    ]
    assert submit("status", "latest") == 0
    assert "\x1b[2J" not in submit.out


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_each_line_as_an_object(submit: Terminal, follow: tuple[str, ...]) -> None:
    assert submit(*RUN, "--env-ids", "a\nb,c", "--", "x") == 0
    submit.backend.end("job-0", ("SUCCEEDED", None))
    submit.backend.logs = {"job-0/0/0": ['o"ne', ""], "job-0/1/0": ["ü"]}
    assert submit("logs", "latest", "--json", *follow) == 0
    lines = [msgspec.json.decode(line) for line in submit.out.splitlines()]
    assert all(line.pop("at") >= 0 for line in lines)
    first = {"run": 0, "parameters": {"env-id": "a\nb"}, "seed": None}
    assert lines == [
        {**first, "text": 'o"ne'},
        {**first, "text": ""},
        {"run": 1, "parameters": {"env-id": "c"}, "seed": None, "text": "ü"},
    ]


def test_status_says_why_runs_wait_and_takes_two_calls_for_it(submit: Terminal) -> None:
    assert submit(*RUN, "--seeds", "3", "--", "x") == 0
    arn = FLEET.queues["c6g-medium-spot"].arn
    submit.backend.queues[arn] = QueueFacts(name="q", state="DISABLED")
    submit.backend.calls.clear()
    assert submit("status", "latest") == 0
    assert "waiting: the queue q is disabled" in submit.out
    asked = ["DescribeJobQueues", "DescribeComputeEnvironments"]
    assert [call for call in submit.backend.calls if call in asked] == asked
    submit.backend.calls.clear()
    assert submit("status") == 0
    assert submit.backend.calls == ["DescribeJobs"]


@pytest.mark.parametrize(
    ("options", "busy"), [((), 13), (("--nodes", "3"), 5), (("--vcpus", "2"), 15)]
)
def test_waiting_counts_what_a_run_has_from_its_queue(
    submit: Terminal, options: tuple[str, ...], busy: int
) -> None:
    """A run has a GPU's share of the machine, on each of its nodes, when it asks for nothing."""
    arn = "arn:aws:batch:eu-west-1:123456789012:job-queue/rl-gpu"
    gpu = msgspec.structs.replace(
        FLEET.queues["c6g-medium"], arn=arn, instance_type="g4dn.xlarge", arch="x86_64",
        vcpus=4, memory_mib=15000, gpus=1, max_vcpus=16,
    )  # fmt: skip
    fleet = msgspec.structs.replace(FLEET, queues={"gpu": gpu})
    Path(os.environ["RUNFLEET_FLEET"]).write_bytes(msgspec.json.encode(fleet))
    run = ("run", "--queue", "gpu", "--seeds", "2", *options, "--", "x")
    assert submit(*run) == 0, submit.err
    for desired, said in ((busy, "all 16 vCPUs"), (busy - 1, f"asked for {busy - 1} vCPUs")):
        machines = MachinesFacts(name="ce", max_vcpus=16, desired_vcpus=desired)
        submit.backend.queues[arn] = QueueFacts(name="q", machines=(machines,))
        assert submit("status", "latest") == 0, submit.err
        assert said in submit.out


def test_when_aws_is_down_the_last_word_is_shown(submit: Terminal) -> None:
    from submit.errors import ServiceFailed  # noqa: PLC0415 # here alone

    assert submit(*RUN, "--seeds", "3", "--", "x") == 0
    assert submit("status", "latest") == 0

    def down(_: Any) -> Any:
        raise ServiceFailed("sandbox-down", "nothing answers", "python -m sandbox up")

    submit.backend.poll = down  # type: ignore[method-assign] # down
    for words in (("status",), ("status", "latest")):
        assert submit(*words) == 4
        assert "3 waiting" in submit.out
        assert "nothing answers; shown is what was known before" in submit.err


def test_a_mistake_of_ours_is_no_traceback(
    submit: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("oh")

    monkeypatch.setattr("submit.api.fleets.load_fleet", broken)
    assert submit("queues") == 4
    assert "a mistake of runfleet's own: RuntimeError: oh" in submit.err
    assert "RUNFLEET_DEBUG=1" in submit.err
    monkeypatch.setenv("RUNFLEET_DEBUG", "1")
    with pytest.raises(RuntimeError):
        submit("queues")


def submit_process(*words: str, code: str = "", **options: Any) -> Any:
    program = (
        "import sys, click, msgspec; before = set(sys.modules)\n"
        f"from submit.commands import run_command\n{code}"
    )
    return subprocess.run(  # our own program
        [sys.executable, "-c", program, *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--help",), ("run", "--help"), (*RUN, "--seeds", "3", "--dry-run", "--", "x")]
)
def test_what_must_be_quick_loads_nothing_heavy(submit: Terminal, words: tuple[str, ...]) -> None:
    """Nor what would be paid for at every start without need, beyond what click itself takes."""
    heavy = ["asyncio", "boto3", "botocore", "dataclasses", "importlib.metadata", "platformdirs"]
    heavy += ["difflib", "pulumi", "rich", "sqlite3", "subprocess", "wandb", "yaml"]
    done = submit_process(
        *words,
        code="assert run_command(sys.argv[1:]) == 0\n"
        f"print(set({heavy}) & set(sys.modules) - before)",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "set()"
    assert submit.backend.calls == []


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(submit: Terminal) -> None:
    """`submit run --dry-run | head -1`."""
    assert submit("queues") == 0
    read, write = os.pipe()
    os.close(read)
    words = (*RUN, "--dry-run", "--json", "--", "x")
    program = "import sys; from submit.commands import main; main()"
    done = subprocess.run(  # our own program
        [sys.executable, "-c", program, *words],
        cwd=Path(__file__).parents[2],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        (">&-", 0, ""),
        (">/dev/full", 4, "not all could be printed: No space left on device"),
    ],
)
def test_an_output_that_takes_nothing(
    submit: Terminal, redirection: str, code: int, said: str
) -> None:
    assert submit("queues") == 0
    program = "import sys; from submit.commands import main; main()"
    words = [*RUN, "--dry-run", "--json", "--", "x"]
    done = subprocess.run(  # our own program
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", program, *words],
        cwd=Path(__file__).parents[2],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert "mistake" not in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_a_narrow_terminal_has_fewer_columns_and_whole_words(
    submit: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    submit(*RUN, "--seeds", "3", "--env-ids", "Pong-v5,Breakout-v5", "--", "x")
    submit.backend.end("job-0", ("FAILED", "boom"))
    monkeypatch.setenv("COLUMNS", str(columns))
    assert submit("status") == 0
    assert len(submit.out.splitlines()) == 3
    assert "6 runs: 6 failed" in submit.out
    assert submit("status", "latest") == 1
    rows = submit.out.partition("───")[2].splitlines()[1:]
    assert len(rows) == 6
    assert all(len(row) <= columns and "failed" in row for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("queues",),
        ("queues", "--json"),
        ("status",),
        ("--help",),
        ("run", "--help"),
        (*RUN, "--grid", "a=é,漢", "--dry-run", "--", "x"),
        (*RUN, "--grid", "a=é,漢", "--dry-run", "--json", "--", "x"),
        (*RUN, "--grid", "a=é,漢", "--dry-run", "--aws-cli", "--", "x"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "terminal",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"COLUMNS": "0"},
        {"COLUMNS": "garbage"},
        {"COLUMNS": "-1"},
        {"COLUMNS": "1"},
        {"COLUMNS": "9" * 30},
        {"NO_COLOR": "1", "TERM": "dumb"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("submit")
def test_any_terminal_will_do(words: tuple[str, ...], terminal: dict[str, str]) -> None:
    program = "from submit.commands import main; main()"
    done = subprocess.run(  # our own program
        [sys.executable, "-c", program, *words],
        cwd=Path(__file__).parents[2],
        env=dict(os.environ) | terminal,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"mistake" in done.stderr) == (0, False), done.stderr
    assert done.stdout or words == ("status",)
    if "--json" in words:
        assert msgspec.json.decode(done.stdout)
    if "--aws-cli" in words:
        assert b"\\xe9" not in done.stdout.replace(b"\\u00e9", b"")


@pytest.mark.slow
def test_a_reader_of_a_table_that_goes_away_is_no_error(submit: Terminal) -> None:
    """`submit queues | head -1`."""
    assert submit("queues") == 0
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(  # our own program
        [sys.executable, "-c", "from submit.commands import main; main()", "queues"],
        cwd=Path(__file__).parents[2],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (Run(index=7, parameters=(), seed=None, wandb_run_id="x-7"), "7"),
        (Run(index=7, parameters=(), seed=2, wandb_run_id="x-7"), "7 seed=2"),
        (
            Run(index=0, parameters=(("env-id", "A\n"),), seed=None, wandb_run_id="x-0"),
            r"0 env-id=A\n",
        ),
    ],
)
def test_a_run_is_named_in_one_line(run: Run, text: str) -> None:
    assert run_text(run) == text
