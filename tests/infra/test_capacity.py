"""infra.capacity and its command: who fits into an account, before anything is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra.__main__ import main
from infra.capacity import (
    NOTHING,
    StackFile,
    Standing,
    StandingEnvironment,
    StandingQueue,
    Use,
    crowded,
    leaving,
    share_out,
    unchangeable,
)
from infra.settings import Settings, TypeSettings

from .test_plan import planned

ROOT = Path(__file__).resolve().parents[2]
C6G = (TypeSettings(type="c6g.medium"),)


def file(stack: str, environments: int, place: str = "us-east-1") -> StackFile:
    use = Use(environments=environments, queues=environments)
    return StackFile(stack=stack, place=place, use=use, mistakes=())


def standing(*environments: tuple[str, str], queues: tuple[StandingQueue, ...] = ()) -> Standing:
    return Standing(
        environments=tuple(
            StandingEnvironment(name=f"{stack}-{queue}", stack=stack, queue=queue)
            for stack, queue in environments
        ),
        queues=queues,
    )


def queue(name: str, /, **facts: Any) -> StandingQueue:
    return StandingQueue(
        **{"name": f"rl-{name}-1234567", "stack": "rl", "queue": name, "fair_share": False} | facts
    )


def test_first_come_first_served() -> None:
    """One that does not fit does not keep a smaller one out."""
    shares = share_out([file("c", 10), file("b", 20), file("a", 32)])["us-east-1"]
    assert [(share.file.stack, share.fits) for share in shares] == [
        ("a", True),
        ("b", False),
        ("c", True),
    ]


def test_regions_are_counted_apart() -> None:
    shares = share_out([file("a", 50), file("b", 50, "eu-west-1")])
    assert [share.fits for found in shares.values() for share in found] == [True, True]


@given(st.lists(st.integers(0, 60), max_size=12))
def test_those_that_fit_fit_together(sizes: list[int]) -> None:
    files = [file(f"{n:02}", size) for n, size in enumerate(sizes)]
    shares = [share for found in share_out(files).values() for share in found]
    assert len(shares) == len(sizes)
    assert sum((s.file.use for s in shares if s.fits), NOTHING).fits
    assert all(share.fits for share in shares) == (sum(sizes) <= 50)


def test_room_beside_others() -> None:
    plan = planned(Settings(instance_types=C6G))
    assert crowded(plan, standing(*(("dl", f"q{n}") for n in range(48)))) == []
    (mistake,) = crowded(plan, standing(*(("dl", f"q{n}") for n in range(48)), ("", "mine")))
    assert mistake.problem == (
        "the fleet's 2 compute environments and 2 queues beside 49 compute environments and 0 "
        "queues of stack dl, no stack are too many: AWS gives an account 50 and 50 in us-east-1; "
        "drop instance types, or set spot, onDemand or flex to false for some"
    )


def test_what_stands_of_the_stack_itself_takes_no_room() -> None:
    plan = planned(Settings(instance_types=C6G))
    own = (("rl", "c6g-medium"), ("rl", "c6g-medium-spot"))
    assert crowded(plan, standing(*own, *(("dl", f"q{n}") for n in range(48)))) == []


def test_new_ones_are_made_before_old_ones_go() -> None:
    plan = planned(Settings(instance_types=C6G))
    full = standing(("rl", "old"), *(("dl", f"q{n}") for n in range(48)))
    (mistake,) = crowded(plan, full)
    assert "take those out, type pulumi up, then add the others" in mistake.problem


def test_renewed_ones_need_room_twice() -> None:
    """At the limit an edit that Batch can not make in place would fail half-way."""
    plan = planned(Settings(instance_types=C6G))
    own = (("rl", "c6g-medium"), ("rl", "c6g-medium-spot"))
    full = standing(*own, *(("dl", f"q{n}") for n in range(47)))
    assert crowded(plan, full, renewed=["c6g-medium"]) == []
    (mistake,) = crowded(plan, full, renewed=["c6g-medium", "c6g-medium-spot"])
    assert "2 of the fleet's 2 compute environments and 2 queues beside 47" in mistake.problem
    assert "take instance types out for the edit and type pulumi up" in mistake.problem


def test_fair_share_is_fixed_when_a_queue_is_made() -> None:
    stands = standing(queues=(queue("c6g-medium"), queue("c5a-large")))
    assert unchangeable(planned(Settings(instance_types=C6G)), stands) == []
    (mistake,) = unchangeable(planned(Settings(instance_types=C6G, fair_share=True)), stands)
    assert mistake.path == "runfleet:fairShare"
    assert "c6g-medium stands, with jobs perhaps" in mistake.problem


def test_queues_are_not_renamed() -> None:
    plain = planned(Settings(instance_types=C6G, naming="plain"))
    named = planned(Settings(instance_types=C6G))
    stands = standing(queues=(queue("c6g-medium"),))
    stands_plain = standing(queues=(queue("c6g-medium", name="c6g-medium"),))
    assert unchangeable(named, stands) == unchangeable(plain, stands_plain) == []
    for plan, found in ((plain, stands), (named, stands_plain)):
        (mistake,) = unchangeable(plan, found)
        assert mistake.path == "runfleet:naming"


def test_plain_names_are_for_one_team() -> None:
    plain = planned(Settings(instance_types=C6G, naming="plain"))
    taken = standing(
        queues=(
            queue("c6g-medium", name="c6g-medium", stack="dl"),
            queue("", name="c6g-medium-spot", stack=""),
            queue("c5a-large", name="c5a-large", stack="dl"),
        )
    )
    (mistake,) = unchangeable(plain, taken)
    assert mistake.problem.startswith(
        "the account has c6g-medium, c6g-medium-spot already, of stack dl, no stack; plain names"
    )


def test_leaving() -> None:
    plan = planned(Settings(instance_types=C6G))
    stands = standing(queues=(queue("c6g-medium"), queue("c5a-large"), queue("x", stack="dl")))
    assert [found.queue for found in leaving(plan, stands)] == ["c5a-large"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return tmp_path


def write(project: Path, stack: str, **config: Any) -> None:
    content = {"config": {f"runfleet:{key}": value for key, value in config.items()}}
    (project / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(content))


def test_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Defaults come from Pulumi.yaml, secrets are not looked at."""
    write(project, "rl")
    write(project, "dl", instanceTypes="c6g.medium", spot=False, wandbApiKey={"secure": "v1:x"})
    assert main(["capacity", "--json", str(project)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["stack"], row["environments"]) for row in rows] == [("dl", 1), ("rl", 12)]
    assert all(row["mistakes"] == [] for row in rows)


def test_command_without_room(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(5):
        write(project, f"team{number}")
    assert main(["capacity", str(project)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[2:7]] == ["fits"] * 4 + ["FIT"]


def test_command_tells_mistakes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "rl", instanceTypes="a1.medium", maxVcpus="many", rootVolumeGib={"secure": "x"})
    assert main(["capacity", str(project)]) == 1
    out = capsys.readouterr().out
    assert "runfleet:instanceTypes[0]: a1.medium needs an image" in out
    assert "runfleet:maxVcpus:" in out
    assert "runfleet:rootVolumeGib: is a secret here" in out
    assert "fits, as far as it can be read" in out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("config: [", "is not YAML"),
        ("- a", "is not a map"),
        ("config: rl", "config is not a map"),
        (None, "has no Pulumi.<stack>.yaml"),
    ],
)
def test_command_on_what_it_can_not_read(
    project: Path, capsys: pytest.CaptureFixture[str], content: str | None, told: str
) -> None:
    if content is not None:
        (project / "Pulumi.rl.yaml").write_text(content)
    assert main(["capacity", str(project)]) == 2
    assert told in capsys.readouterr().err


def test_broken_files_do_not_hide_the_others(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All broken ones are told, the rest is counted."""
    write(project, "rl")
    (project / "Pulumi.a.yaml").write_text("config: [")
    (project / "Pulumi.b.yaml").write_bytes(b"\xff\xfe")
    (project / "Pulumi.c.yaml").mkdir()
    assert main(["capacity", "--json", str(project)]) == 2
    told = capsys.readouterr()
    assert [row["stack"] for row in json.loads(told.out)] == ["rl"]
    for stack in "abc":
        assert f"not counted: {project / f'Pulumi.{stack}.yaml'}" in told.err


def test_what_the_project_says_for_all_its_stacks(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "Pulumi.yaml"
    content = yaml.safe_load(file.read_text())
    content["config"] |= {"aws:region": {"value": "eu-west-1"}, "spot": False}
    file.write_text(yaml.safe_dump(content))
    write(project, "rl")
    write(project, "dl", spot=True)
    assert main(["capacity", "--json", str(project)]) == 0
    rows = [tuple(row.values())[:3] for row in json.loads(capsys.readouterr().out)]
    assert rows == [("eu-west-1", "dl", 12), ("eu-west-1", "rl", 6)]


@pytest.mark.parametrize(
    "arguments", [[], ["nope"], ["capacity", "--fast"], ["capacity", "a", "b"]]
)
def test_wrong_use(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert "Usage: python -m infra capacity" in captured.out + captured.err
