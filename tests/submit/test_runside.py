"""submit.runside: the POSIX sh program, in every shell found, against the pure reference."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submit.checks import check_experiment
from submit.errors import WrongUse
from submit.experiment import (
    Axis,
    Experiment,
    Run,
    environment_suffix,
    experiment_id,
    nth_run,
    run_arguments,
    run_count,
)
from submit.ranges import decode_ranges, encode_ranges
from submit.runside import encode_grid, encode_runs, script

SHELLS = [
    shell.split()
    for shell in ("sh", "dash", "bash", "bash --posix", "busybox sh", "mksh", "zsh --emulate sh")
    if shutil.which(shell.split()[0])
]
TELL = (
    "import json, os, sys; print(json.dumps([sys.argv[1:], "
    "{k: v for k, v in os.environ.items() if k.startswith(('RUNFLEET_', 'WANDB_'))}]))"
)


def run_child(
    shell: list[str], experiment: Experiment, child: int | None, runs: str
) -> subprocess.CompletedProcess[str]:
    """What child number `child` of the job that holds `runs` does, as Batch would start it."""
    environment = {"PATH": os.environ["PATH"]} | encode_grid(experiment) | encode_runs(runs)
    if child is not None:
        environment["AWS_BATCH_JOB_ARRAY_INDEX"] = str(child)
    return subprocess.run(
        [*shell, "-c", script(), "runfleet"],
        env=environment,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )


def tell(
    shell: list[str], experiment: Experiment, child: int | None, runs: str
) -> tuple[list[str], dict[str, str]]:
    done = run_child(shell, experiment, child, runs)
    assert (done.returncode, done.stderr) == (0, "")
    arguments, environment = json.loads(done.stdout)
    return arguments, environment


NASTY = [
    "",
    " ",
    "-n",
    "--",
    "a b",
    "it's",
    '"',
    "$HOME",
    "$(id)",
    "`id`",
    "\\",
    "\\n",
    "\\c",
    "%s%d",
    "*",
    "~",
    "a\nb",
    "\n",
    "\n\n",
    "end\n",
    "\ttab",
    "\r",
    "\x01\x7f",
    "é",
    "漢字",
    "🎲",
    "!",
    ";ls",
    "&",
    "x" * 4096,
]
GRID = Experiment(
    command=(sys.executable, "-c", TELL, "{q}/{seed}", "{{seed}}", "$HOME 'x'"),
    axes=(
        Axis(names=("env-id",), rows=tuple((value,) for value in NASTY)),
        Axis(names=("p", "q"), rows=(("1", "one"), ("2", "two"))),
    ),
    seeds=(0, 5, 6, 7, 100),
    image="i",
    name="ppo",
    group="the paper",
    project="atari",
    entity="lab",
)


def run_name(experiment: Experiment, run: Run) -> str | None:
    """What W&B shows of a run: all that makes it one of its kind, as far as 128 bytes go."""
    name = experiment.name
    for parameter, value in (*run.parameters, *([("seed", run.seed)] if experiment.seeds else [])):
        part = f" {parameter}={value}"
        if "\n" not in part and len((name + part).encode()) <= 128:
            name += part
    return name.removeprefix(" ") or None


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("number", range(len(NASTY)))
def test_values_arrive_unchanged(shell: list[str], number: int) -> None:
    index = number * 10 + number % 10
    run = nth_run(GRID, index)
    arguments, environment = tell(shell, GRID, index, f"0-{run_count(GRID) - 1}")
    assert arguments == list(run_arguments(GRID, run)[3:])
    parameters = dict(run.parameters)
    assert environment == {
        "RUNFLEET_EXPERIMENT": experiment_id(GRID),
        "RUNFLEET_RUN": str(index),
        "RUNFLEET_SEED": str(run.seed),
        "RUNFLEET_PARAM_ENV_ID": parameters["env-id"],
        "RUNFLEET_PARAM_P": parameters["p"],
        "RUNFLEET_PARAM_Q": parameters["q"],
        "WANDB_RUN_ID": run.wandb_run_id,
        "WANDB_RESUME": "allow",
        "WANDB_RUN_GROUP": "the paper",
        "WANDB_NAME": run_name(GRID, run),
        "WANDB_PROJECT": "atari",
        "WANDB_ENTITY": "lab",
    }


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    data=st.data(),
    widths=st.lists(st.integers(1, 3), max_size=3),
    seeds=st.lists(st.integers(0, 10**6), max_size=5, unique=True),
    added=st.integers(0, 3),
)
def test_any_grid(data: st.DataObject, widths: list[int], seeds: list[int], added: int) -> None:
    """Any child of any job of any grid gets what the reference says."""
    experiment = Experiment(
        command=(sys.executable, "-c", TELL, data.draw(TEXT)),
        axes=tuple(
            Axis(
                names=tuple(f"p{n}-{k}" for k in range(width)),
                rows=tuple(
                    data.draw(
                        st.lists(st.tuples(*[TEXT] * width), min_size=1, max_size=4, unique=True)
                    )
                ),
            )
            for n, width in enumerate(widths)
        ),
        seeds=tuple(seeds),
        include=tuple(
            tuple(
                (f"p{n}-{k}", data.draw(TEXT))
                for n, width in enumerate(widths or [2])
                for k in range(width)
            )
            for _ in range(added)
        ),
        image="i",
    )
    indexes = st.integers(0, run_count(experiment) - 1)
    runs = encode_ranges(sorted(data.draw(st.sets(indexes, min_size=1))))
    children = list(decode_ranges(runs))
    child = data.draw(st.integers(0, len(children) - 1))
    run = nth_run(experiment, children[child])
    shell = data.draw(st.sampled_from(SHELLS))
    arguments, environment = tell(shell, experiment, child, runs)
    assert arguments == list(run_arguments(experiment, run)[3:])
    assert environment["WANDB_RUN_ID"] == run.wandb_run_id
    assert environment.get("WANDB_NAME") == run_name(experiment, run)
    assert environment.get("RUNFLEET_SEED") == (None if run.seed is None else str(run.seed))


ANY = st.text(max_size=40) | st.sampled_from([*NASTY, "\0", "\ud800", "é" * 2048])
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,20}", fullmatch=True) | ANY


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(name=NAMES, value=ANY, other=ANY, shell=st.sampled_from(SHELLS), placed=st.booleans())
def test_any_name_and_value_arrives_exactly_or_is_refused(
    name: str, value: str, other: str, shell: list[str], *, placed: bool
) -> None:
    experiment = Experiment(
        command=(sys.executable, "-c", TELL, *([f"<{{{name}}}>"] if placed else [])),
        axes=(Axis(names=(name,), rows=((value,),)),),
        include=(((name, other),),),
        image="i",
    )
    try:
        check_experiment(experiment)
    except WrongUse as err:
        assert err.message
        return
    for index, wanted in enumerate((value, other)):
        arguments, environment = tell(shell, experiment, index, "0-1")
        assert arguments == ([f"<{wanted}>"] if placed else [f"--{name}", wanted])
        assert environment[f"RUNFLEET_PARAM_{environment_suffix(name)}"] == wanted


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("child", [0, 1, 127, 128, 499, 4_999])
def test_scattered_runs_find_their_number(shell: list[str], child: int) -> None:
    numbers = [n for n in range(20_000) if (n * 7919) % 20_011 % 4 == 0]
    plain = Experiment(
        command=("sh", "-c", "echo $RUNFLEET_RUN"), seeds=tuple(range(20_000)), image="i"
    )
    done = run_child(shell, plain, min(child, len(numbers) - 1), encode_ranges(numbers))
    assert done.stdout == f"{numbers[min(child, len(numbers) - 1)]}\n"


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_exit_status_is_the_commands(shell: list[str]) -> None:
    plain = Experiment(command=("sh", "-c", "exit 37"), image="i")
    assert run_child(shell, plain, None, "0").returncode == 37


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_missing_program_is_127_and_named(shell: list[str]) -> None:
    done = run_child(shell, Experiment(command=("no-such-program",), image="i"), None, "0")
    assert done.returncode == 127
    assert "no-such-program" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_child_outside_of_its_job_starts_nothing(shell: list[str]) -> None:
    plain = Experiment(command=("echo", "started"), image="i")
    done = run_child(shell, plain, 2, "0-1")
    assert (done.returncode, done.stdout) == (125, "")
    assert "no number 2 in 0-1" in done.stderr


@pytest.mark.slow
def test_the_users_environment_is_left_alone() -> None:
    """Only runfleet's and W&B's variables are added, and none of the plan's remains."""
    bare = msgspec.structs.replace(GRID, command=("env",), axes=(), seeds=())
    done = run_child(["sh"], bare, None, "0")
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"} == {
        "PATH",
        "RUNFLEET_EXPERIMENT",
        "RUNFLEET_RUN",
        "WANDB_ENTITY",
        "WANDB_NAME",
        "WANDB_PROJECT",
        "WANDB_RUN_GROUP",
        "WANDB_RUN_ID",
        "WANDB_RESUME",
    }


def test_the_program_has_no_way_to_run_text_as_code() -> None:
    words = {word.strip("'\"();") for word in script().split() if not word.startswith("#")}
    code = [line for line in script().splitlines() if not line.lstrip().startswith("#")]
    assert not words & {".", "source"}
    assert not any("eval" in line for line in code)
