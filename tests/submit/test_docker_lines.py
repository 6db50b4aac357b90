"""submit.docker_lines, aws_cli, sending_line: what is printed for shells and people."""

from __future__ import annotations

import json
import shlex

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from submit.asked import parse_command
from submit.aws_cli import iter_aws_cli
from submit.docker_lines import iter_docker_lines
from submit.experiment import Axis, Experiment, Resources, iter_runs, run_arguments
from submit.grid import axis
from submit.sending_line import sending_line

from .fake import submission

BASE = Experiment(command=("python", "x.py"), seeds=(1, 2, 3), image="lab/ppo:1")


def changed(**change: object) -> Experiment:
    return msgspec.structs.replace(BASE, **change)


def test_a_line_a_run_on_the_cores_in_turn() -> None:
    assert list(iter_docker_lines(BASE, [0, 2])) == [
        f'docker run -d --cpuset-cpus="{core}" -e WANDB_API_KEY lab/ppo:1 python x.py --seed {seed}'
        for core, seed in ((0, 1), (2, 2), (0, 3))
    ]


def test_a_run_of_several_vcpus_has_as_many_cores() -> None:
    lines = list(iter_docker_lines(changed(resources=Resources(vcpus=2, gpus=1)), [0, 1, 2]))
    assert [shlex.split(line)[3] for line in lines] == [
        "--cpuset-cpus=0,1",
        "--cpuset-cpus=2,0",
        "--cpuset-cpus=1,2",
    ]
    assert shlex.split(lines[0])[6:8] == ["--gpus", "1"]
    (line,) = iter_docker_lines(changed(seeds=(), resources=Resources(vcpus=9)), [4])
    assert '--cpuset-cpus="4" ' in line


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4, unique=True), TEXT, TEXT)
def test_a_shell_reads_from_the_lines_what_was_meant(
    values: list[str], word: str, variable: str
) -> None:
    experiment = changed(
        command=("python", word),
        axes=(Axis(names=("p",), rows=tuple((value,) for value in values)),),
        environment=(("V", variable),),
    )
    for line, run in zip(iter_docker_lines(experiment, [0]), iter_runs(experiment), strict=True):
        words = shlex.split(line)
        assert words[:4] == ["docker", "run", "-d", "--cpuset-cpus=0"]
        assert words[4:9] == ["-e", "WANDB_API_KEY", "-e", f"V={variable}", "lab/ppo:1"]
        assert tuple(words[9:]) == run_arguments(experiment, run)


def test_aws_cli_lines_say_the_requests_to_the_letter() -> None:
    planned = submission(changed(axes=(axis("p", ("it's", "$x\ny")),)))
    register, submit = iter_aws_cli(planned)
    assert register.startswith("definition=$(aws batch --region eu-west-1 register-job-definition ")
    words = shlex.split(register.removeprefix("definition=$(").removesuffix(")"))
    assert json.loads(words[words.index("--cli-input-json") + 1]) == planned.definition.request
    words = shlex.split(submit)
    assert json.loads(words[words.index("--cli-input-json") + 1]) == planned.jobs[0].request
    assert submit.endswith(' --job-definition "$definition"')
    assert "\n" not in register + submit


def test_the_sending_line_is_never_wider_than_the_terminal() -> None:
    assert sending_line(5, 10, 6.0, 80) == "sending [##########----------] 5 of 10 jobs, 6 s left"
    assert sending_line(0, 10, 9.0, 80) == "sending [--------------------] 0 of 10 jobs"
    for columns in range(80):
        assert len(sending_line(5, 10, 6.0, columns)) < max(1, columns)


def test_a_command_in_one_text() -> None:
    """Plain words are started without a shell; what only a shell can do, by bash."""
    for text, words in (
        ("python x.py --lr 1", ("python", "x.py", "--lr", "1")),
        ("python 'a b' \"c d\" '$x' 'a|b' \"a;b\"", ("python", "a b", "c d", "$x", "a|b", "a;b")),
        ("python {lr} x={seed}", ("python", "{lr}", "x={seed}")),
    ):
        assert parse_command(text) == words
    for text in (
        "A=1 python x.py", "a && b", "a | b", "a > b", "echo $HOME", 'echo "$HOME"', "echo `id`",
        "echo $(id)", "ls *", "cd ~", "a; b", "a\nb", "echo {a,b}", "echo {1..3}", "a # b",
    ):  # fmt: skip
        assert parse_command(f" {text} ") == ("/bin/bash", "-c", f'{text} "$@"', "bash")
