"""submit.resources: defaults from the queue, refusals of what can't fit."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submit.errors import Refused
from submit.experiment import Resources
from submit.fleet import Fleet, Queue
from submit.resources import JobResources, resolve_resources


def queue(instance_type: str, vcpus: int, memory_mib: int, gpus: int = 0) -> Queue:
    return Queue(
        arn=f"arn:aws:batch:us-east-1:123456789012:job-queue/rl-{instance_type}",
        instance_type=instance_type,
        arch="x86_64",
        vcpus=vcpus,
        memory_mib=memory_mib,
        gpus=gpus,
        max_vcpus=256,
    )


FLEET = Fleet(
    version=1,
    stack="rl",
    account="123456789012",
    region="us-east-1",
    queues={
        "c5a-large": queue("c5a.large", 2, 3_860),
        "g4dn-xlarge": queue("g4dn.xlarge", 4, 15_500, 1),
        "g4dn-12xlarge": queue("g4dn.12xlarge", 48, 186_000, 4),
    },
    job_role_arn="arn:aws:iam::123456789012:role/rl-job",
    execution_role_arn="arn:aws:iam::123456789012:role/rl-execution",
    log_group="/runfleet/rl",
)


@pytest.mark.parametrize(
    ("name", "asked", "got"),
    [
        ("c5a-large", Resources(), (1, 1_930, 0)),
        ("c5a-large", Resources(vcpus=2), (2, 3_860, 0)),
        ("c5a-large", Resources(memory_mib=3_000), (1, 3_000, 0)),
        ("g4dn-xlarge", Resources(), (4, 15_500, 1)),
        ("g4dn-12xlarge", Resources(), (12, 46_500, 1)),
        ("g4dn-12xlarge", Resources(gpus=2), (24, 93_000, 2)),
        ("g4dn-12xlarge", Resources(gpus=0), (1, 3_875, 0)),
        ("g4dn-12xlarge", Resources(gpus=4, vcpus=3), (3, 186_000, 4)),
    ],
)
def test_defaults_are_the_share_of_one_vcpu_or_one_gpu(
    name: str, asked: Resources, got: tuple[int, int, int]
) -> None:
    job = resolve_resources(asked, FLEET, name)
    assert (job.vcpus, job.memory_mib, job.gpus) == got
    assert job.shm_mib == job.memory_mib // 2


@pytest.mark.parametrize(
    ("name", "asked", "slug", "says"),
    [
        ("c5a-large", Resources(memory_mib=4_096), "too-large", "3,860"),
        ("c5a-large", Resources(vcpus=3), "too-large", "has 2"),
        ("c5a-large", Resources(gpus=1), "too-large", "has none"),
        ("g4dn-xlarge", Resources(gpus=2), "too-large", "has 1"),
        ("c5a-large", Resources(timeout_s=59), "timeout-too-short", "59 s"),
        ("c5a-large", Resources(memory_mib=100, shm_mib=200), "shm-too-large", "200 MiB"),
        ("c5a-large", Resources(shm_mib=100_000), "shm-too-large", "1,930 MiB"),
    ],
)
def test_refusals_name_what_is_there(name: str, asked: Resources, slug: str, says: str) -> None:
    with pytest.raises(Refused) as caught:
        resolve_resources(asked, FLEET, name)
    assert caught.value.slug == slug
    assert says in caught.value.message


def test_a_refusal_names_the_queues_that_fit_smallest_first() -> None:
    with pytest.raises(Refused) as caught:
        resolve_resources(Resources(memory_mib=10_000), FLEET, "c5a-large")
    assert caught.value.hint.startswith("submit run --queue g4dn-xlarge …")
    with pytest.raises(Refused, match="vCPUs") as caught:
        resolve_resources(Resources(vcpus=1_000), FLEET, "c5a-large")
    assert "no queue of this fleet" in caught.value.hint


@given(
    name=st.sampled_from(sorted(FLEET.queues)),
    vcpus=st.none() | st.integers(1, 64),
    memory=st.none() | st.integers(4, 200_000),
    gpus=st.none() | st.integers(0, 8),
)
def test_what_is_planned_fits_an_instance(
    name: str, vcpus: int | None, memory: int | None, gpus: int | None
) -> None:
    asked = Resources(vcpus=vcpus, memory_mib=memory, gpus=gpus)
    has = FLEET.queues[name]
    try:
        job = resolve_resources(asked, FLEET, name)
    except Refused:
        assert (vcpus or 0) > has.vcpus or (memory or 0) > has.memory_mib or (gpus or 0) > has.gpus
        return
    assert isinstance(job, JobResources)
    assert 1 <= job.vcpus <= has.vcpus
    assert 4 <= job.memory_mib <= has.memory_mib
    assert 0 <= job.gpus <= has.gpus


SPOT = msgspec.structs.replace(FLEET.queues["c5a-large"], spot=True)
WITH_SPOT = msgspec.structs.replace(FLEET, queues={**FLEET.queues, "c5a-large-spot": SPOT})


def test_each_of_several_nodes_is_a_whole_machine() -> None:
    job = resolve_resources(Resources(nodes=2), FLEET, "g4dn-12xlarge")
    assert (job.nodes, job.vcpus, job.memory_mib, job.gpus) == (2, 48, 186_000, 4)
    job = resolve_resources(Resources(nodes=2), FLEET, "c5a-large")
    assert (job.nodes, job.vcpus, job.memory_mib) == (2, 2, 3_860)
    job = resolve_resources(Resources(nodes=2, gpus=1), FLEET, "g4dn-12xlarge")
    assert (job.vcpus, job.gpus) == (12, 1)


@pytest.mark.parametrize(
    ("name", "nodes", "slug", "hint"),
    [
        ("c5a-large-spot", 2, "nodes-on-spot", "--queue c5a-large"),
        ("c5a-large", 1001, "too-many-nodes", "--nodes 1000"),
        ("c5a-large", 129, "nodes-never-fit", "--nodes 128"),
        ("g4dn-12xlarge", 6, "nodes-never-fit", "--nodes 5"),
    ],
)
def test_nodes_that_batch_would_never_run(name: str, nodes: int, slug: str, hint: str) -> None:
    with pytest.raises(Refused) as err:
        resolve_resources(Resources(nodes=nodes), WITH_SPOT, name)
    assert err.value.slug == slug
    assert err.value.hint.startswith(hint)
