"""submit.local.environment: what may lie in a file, and what a run gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.local.environment import is_kept, kept_part, merge, run_environment


@pytest.mark.parametrize(
    "name", ["PATH", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH", "LC_ALL", "OMP_NUM_THREADS"]
)
def test_what_decides_how_programs_run_is_kept(name: str) -> None:
    assert is_kept(name, "/opt/x")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WANDB_API_KEY", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("DATABASE_URL", "x"),
        ("MY_THING", "x"),
        ("PYTHON_KEYRING_PASSWORD", "x"),
        ("TF_TOKEN_example", "x"),
        ("CONDA_CHANNEL_URL", "https://me:hunter2@conda.example/x"),
    ],
)
def test_what_could_be_a_secret_is_not(name: str, value: str) -> None:
    assert not is_kept(name, value)


ENVIRONMENTS = st.dictionaries(
    st.sampled_from(["PATH", "LANG", "PYTHONPATH", "MY_KEY", "EDITOR", "CONDA_PREFIX"]),
    st.text(max_size=3),
)


@given(before=ENVIRONMENTS, after=ENVIRONMENTS)
def test_a_shell_is_completed_from_another(before: dict[str, str], after: dict[str, str]) -> None:
    """What is kept is as it was, set or not; the rest is as it is now."""
    merged = merge(kept_part(before), after)
    for name in before.keys() | after.keys():
        source = before if is_kept(name, "") else after
        assert merged.get(name) == source.get(name)


def test_a_run_has_nothing_of_the_run_that_submits_it() -> None:
    base = {"PATH": "/bin", "RUNFLEET_SEED": "9", "AWS_BATCH_JOB_ID": "outer"}
    own = {"RUNFLEET_RUN": "1"}
    assert run_environment(base, own, gpus=None) == {"PATH": "/bin", "RUNFLEET_RUN": "1"}


def test_gpus_are_those_that_were_given() -> None:
    found = run_environment({"CUDA_VISIBLE_DEVICES": "0,1"}, {}, gpus="1")
    assert found["CUDA_VISIBLE_DEVICES"] == "1"
