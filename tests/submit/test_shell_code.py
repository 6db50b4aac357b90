"""submit.shell_code: no value is ever read as code."""

from __future__ import annotations

import msgspec
import pytest

from submit.checks import check_experiment
from submit.errors import WrongUse
from submit.experiment import Axis, Experiment

TRAIN = Experiment(command=("python", "train.py"), image="cleanrl:1")


@pytest.mark.parametrize(
    "words",
    [
        "sh -c {a}",
        "/bin/bash -lc {a}",
        "bash -l -c {a}",
        "bash -euo pipefail -c {a}",
        "bash -o pipefail -ec {a}",
        "bash --rcfile x -c {a}",
        "bash +x -c -e -- {a} y",
        "sh -c - {a}",
        "timeout 5 busybox sh -c {a}",
        "fish -c {a}",
        "su - user -c {a}",
        "su user --command={a}",
        "runuser -u user -c x{a}",
        "script -qec {a} /dev/null",
        "script /dev/null -c {a}",
        "flock -n /tmp/lock -c {a}",
        "env -S {a}",
        "env A=1 --split-string={a}",
        "env -Spython={a}",
        "ssh host python train.py {a}",
        "ssh host python train.py",
        "nohup ssh -o x=y host {a}",
    ],
)
def test_no_value_becomes_a_shells_code(words: str) -> None:
    axes = (Axis(names=("a",), rows=(("$(id)",),)),)
    with pytest.raises(WrongUse, match="would be read as code"):
        check_experiment(msgspec.structs.replace(TRAIN, command=tuple(words.split()), axes=axes))


@pytest.mark.parametrize(
    "words",
    [
        "sh -c x {a}",
        "bash x.sh -c {a}",
        "python -c {a}",
        "sh -- {a}",
        "env python -S {a}",
        "env A=1 python train.py -S {a}",
        "flock /tmp/lock python train.py -c {a}",
        "python train.py eval {a}",
    ],
)
def test_what_a_shell_takes_as_an_argument_may_be_anything(words: str) -> None:
    axes = (Axis(names=("a",), rows=(("$(id)",),)),)
    check_experiment(msgspec.structs.replace(TRAIN, command=tuple(words.split()), axes=axes))
