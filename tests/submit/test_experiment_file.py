"""submit.experiment_file: what YAML asks for, and what it is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from submit.asked import Asked, make_experiment, merge
from submit.errors import SubmitError, WrongUse
from submit.experiment import Axis
from submit.experiment_file import FIELDS, parse_description
from submit.grid import axis

FULL = b"""\
# the paper's main table
queue: g4dn-xlarge-spot
command: python -u ppo.py --track {lr} 'a b'
env-ids: [Pong-v5, Breakout-v5]
seeds: 1..3
grid:
  lr: [3e-4, 1e-3]
  steps: 1000,2000
  on: yes
zip: [lr, steps]
include:
  - {env-id: Qbert-v5, lr: 1e-5, steps: 0x10, on: "no"}
exclude:
  - env-id: Pong-v5
    seed: 2
image: ghcr.io/lab/ppo:1.2
nodes: 4
vcpus: 2
memory: 3GiB
gpus: 1
shm: 512
hours: 90m
env: {OMP_NUM_THREADS: 1, EMPTY: ''}
secret: WANDB_API_KEY
retries: 5
fallback: g4dn-xlarge
after: 2
name: main table
group: paper
tag: [a, b]
share: paper
workers: 2
wandb-project: atari
wandb-entity: lab
"""


def parse(text: bytes | str) -> Asked:
    return parse_description(text.encode() if isinstance(text, str) else text, "x.yaml")


def test_every_field() -> None:
    """Values are the characters that stand there: no float, no boolean, no sexagesimal."""
    asked = parse(FULL)
    assert asked == Asked(
        queue="g4dn-xlarge-spot",
        command=("python", "-u", "ppo.py", "--track", "{lr}", "a b"),
        seeds=(1, 2, 3),
        axes=(
            axis("env-id", ("Pong-v5", "Breakout-v5")),
            axis("lr", ("3e-4", "1e-3")),
            axis("steps", ("1000", "2000")),
            axis("on", ("yes",)),
        ),
        zips=(("lr", "steps"),),
        include=((("env-id", "Qbert-v5"), ("lr", "1e-5"), ("steps", "0x10"), ("on", "no")),),
        exclude=((("env-id", "Pong-v5"), ("seed", "2")),),
        image="ghcr.io/lab/ppo:1.2",
        nodes=4,
        vcpus=2,
        memory_mib=3072,
        gpus=1,
        shm_mib=512,
        timeout_s=5400,
        environment=(("OMP_NUM_THREADS", "1"), ("EMPTY", "")),
        secrets=("WANDB_API_KEY",),
        retries=5,
        fallback="g4dn-xlarge",
        after=2,
        name="main table",
        group="paper",
        project="atari",
        entity="lab",
        tags=("a", "b"),
        share="paper",
        workers=2,
    )
    assert {
        line.split(":")[0] for line in FULL.decode().splitlines() if line[0] not in " #"
    } == set(FIELDS)
    joined = make_experiment(asked).axes
    assert joined[1] == Axis(names=("lr", "steps"), rows=(("3e-4", "1000"), ("1e-3", "2000")))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("seeds: 3", {"seeds": (1, 2, 3)}),
        ("seeds: [7, 1]", {"seeds": (7, 1)}),
        ("command: [python, 'a b', '']", {"command": ("python", "a b", "")}),
        ("command: >\n  python x.py\n  --lr 1", {"command": ("python", "x.py", "--lr", "1")}),
        ("env: [A=1, B=]", {"environment": (("A", "1"), ("B", ""))}),
        ("zip: 'a,b'", {"zips": (("a", "b"),)}),
        ("zip: [[a, b], 'c,d']", {"zips": (("a", "b"), ("c", "d"))}),
        ("exclude: lr=1,seed=2", {"exclude": ((("lr", "1"), ("seed", "2")),)}),
        ("\ufeffqueue: x", {"queue": "x"}),
        ("grid: {e: [☃]}", {"axes": (axis("e", ("☃",)),)}),
    ],
)
def test_short_forms(text: str, asked: dict[str, Any]) -> None:
    assert parse(text) == Asked(**asked)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.yaml is empty"),
        ("# nothing", "x.yaml is empty"),
        ("just text", "x.yaml:1: names and values were expected, this is a single value"),
        ("[a]", "x.yaml:1: names and values were expected, this is a list"),
        ("queue: a\nqeue: b", "x.yaml:2: qeue: there is no field 'qeue'; did you mean queue?"),
        ("env_ids: A", "did you mean env-ids?"),
        ("tags: A", "did you mean tag?"),
        ("queue: a\nqueue: b", "x.yaml:2: queue: 'queue' is given twice"),
        ("grid: {a: [1], a: [2]}", "x.yaml:1: grid: 'a' is given twice"),
        ("queue: [a]", "x.yaml:1: queue: one value was expected, this is a list"),
        ("queue:", "x.yaml:1: queue: has no value"),
        ("grid:\n  lr: [1, ]\n  x: []", "x.yaml:3: grid.x: the list is empty"),
        ("grid:\n  lr: [1, {a: 1}]", "x.yaml:2: grid.lr: one value was expected, this is a mapp"),
        ("grid: [lr]", "x.yaml:1: grid: names and values were expected, this is a list"),
        ("grid:\n  lr: [1]\n  é: [1]", "x.yaml:3: grid.é: 'é' can't be a parameter's name"),
        ("grid: {lr: [1, 2, 1]}", "x.yaml:1: grid.lr: the parameter lr has the value '1' twice"),
        ("\nenv-ids: A,B,A", "x.yaml:2: env-ids: the parameter env-id has the value 'A' twice"),
        ("env:\n  A: 1\n  A=B: 2", "x.yaml:3: env.A=B: 'A=B' is no name of an environment"),
        ("env: {MY_API_KEY: x}", "x.yaml:1: env.MY_API_KEY: MY_API_KEY looks like a secret"),
        ("env: [A=1, 1A=2]", "x.yaml:1: env: '1A' is no name of an environment variable"),
        ("seeds: [1, 1]", "x.yaml:1: seeds: a seed is given twice"),
        ("tag: [a, a]", "x.yaml:1: tag: a tag is given twice"),
        ("share: a b", "x.yaml:1: share: 'a b' is no share's name"),
        ('name: "a\\n"', "x.yaml:1: name: the name 'a\\n' holds letters that can't be printed"),
        ("seeds: [1, x]", "x.yaml:1: seeds: 'x' is no whole number from 0 on"),
        ("seeds: abc", "x.yaml:1: seeds: 'abc' are no seeds"),
        ("\nvcpus: 0", "x.yaml:2: vcpus: '0' is no whole number from 1 on"),
        ("env-ids: [A, '']", "x.yaml:1: env-ids: names an empty environment"),
        ("retries: 10", "x.yaml:1: retries: 10 is more than 9"),
        ("after: 11", "x.yaml:1: after: 11 is more than 10"),
        ("hours: " + "9" * 400, "x.yaml:1: hours: '99999999999999999999' is more than any durat"),
        ("memory: " + "9" * 400, "x.yaml:1: memory: '99999999999999999999' is more than any"),
        ("memory: a lot", "x.yaml:1: memory: 'a lot' is no amount of memory"),
        ("hours: 12:30", "x.yaml:1: hours: '12:30' is no duration"),
        ("command: python 'x", "x.yaml:1: command: \"python 'x\" is no command: no closing quot"),
        ("command: ''", "x.yaml:1: command: the command is empty"),
        ("zip: [a]", "x.yaml:1: zip: 'a' alone goes with nothing"),
        ("include: [lr]", "x.yaml:1: include: 'lr' is no NAME=VALUE"),
        ("a: &x [1]\nb: *x", "x.yaml:2: *x: aliases are not read"),
        ("grid: {a: &x [1], b: *x}", "x.yaml:1: *x: aliases are not read"),
        ("grid: [[[[[[[[[[[[1]]]]]]]]]]]]", "x.yaml:1: nested too deep"),
        ("queue: a\n---\nqueue: b", "x.yaml:2: but found another document"),
        ("queue: 'a", "x.yaml:1: found unexpected end of stream"),
        ("a: b: c", "x.yaml:1: mapping values are not allowed here"),
        ("\tqueue: a", "x.yaml:1: found character '\\t' that cannot start any token"),
        (b"queue: a\n\xff", "x.yaml:2: is not UTF-8"),
        ("queue: \x01", "x.yaml:1: no YAML: special characters are not allowed"),
        ('queue: "\\UFFFFFFFF"', "x.yaml:1: no YAML: "),
        ("? [a]\n: b", "x.yaml:1: one value was expected, this is a list"),
        ("<<: {queue: a}", "there is no field '<<'"),
        (b"a" * 300_000, "x.yaml has more than 262,144 bytes"),
    ],
)  # fmt: skip
def test_complaints_have_file_line_and_field(text: str | bytes, said: str) -> None:
    with pytest.raises(WrongUse) as caught:
        parse(text)
    assert said in caught.value.message
    assert caught.value.message.startswith("x.yaml")


PLAIN = """queue grid lr : - [ ] { } , ' " &a *a !!python/object:os.system > ... ? ~ # seeds env 1 <<
\\ \\x \\U %YAML | ---"""
PIECES = [*PLAIN.split(), "\ufeff", "\x85", "|\n", "---\n", "%YAML 1.1\n", "\n", "\t"]
YAML = st.text(max_size=200) | st.lists(
    st.sampled_from(PIECES).flatmap(lambda piece: st.sampled_from([piece, piece + " "])),
    max_size=30,
).map("".join)


@settings(deadline=None, max_examples=300)
@given(YAML | st.binary(max_size=100))
@example("%YAML 1." + "9" * 5000 + "\n---\nqueue: a")
@example('"\\UFFFFFFFF": 1')
@example("[" * 2000)
@example("{a: " * 500)
@example("- " * 2000)
def test_any_yaml_is_read_or_answered(text: str | bytes) -> None:
    """Never a traceback, whatever stands in the file."""
    try:
        parse(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    except SubmitError as err:
        assert err.exit_code == 2
        assert err.message.startswith("x.yaml")


def test_options_win_over_the_file() -> None:
    """Parameters and variables one by one, everything else as a whole."""
    file = parse(
        "queue: a\nseeds: 3\ngrid: {lr: [1], b: [2]}\nenv: {X: 1, Y: 2}\ntag: [t]\ngroup: g"
    )
    line = Asked(
        seeds=(9,),
        axes=(axis("lr", ("7", "8")), axis("c", ("0",))),
        environment=(("Y", "5"),),
        group="",
        tags=("u",),
    )
    both = merge(file, line)
    assert both.queue == "a"
    assert both.seeds == (9,)
    assert both.axes == (axis("lr", ("7", "8")), axis("b", ("2",)), axis("c", ("0",)))
    assert both.environment == (("X", "1"), ("Y", "5"))
    assert (both.group, both.tags) == ("", ("u",))


def test_a_variable_that_a_file_gives_twice_is_no_variable_of_the_lines() -> None:
    """It stays twice, and is refused: which of the two was meant nobody knows."""
    both = merge(parse("env: [A=1, A=2, B=3]"), Asked(environment=(("B", "4"),)))
    assert [name for name, _ in both.environment].count("A") == 2
    assert merge(parse("env: [A=1, A=2]"), Asked()).environment == (("A", "1"), ("A", "2"))
