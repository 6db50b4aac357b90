"""The quotas of a Region, which fill a sandbox: one of its own."""

from __future__ import annotations

import pytest

from tests.sandbox.batch.ruling import proves, refused
from tests.sandbox.conftest import World

pytestmark = pytest.mark.slow


@proves("compute environments per Region", "job queues per Region")
def test_fifty_queues_and_fifty_environments(world: World) -> None:
    """Service quotas: 50 and 50 per Region; they can't be raised."""
    store = world.sandbox.app.batch().store
    for number in range(50 - len(store.environments)):
        world.batch.create_compute_environment(
            computeEnvironmentName=f"many-{number}",
            type="MANAGED",
            computeResources=world.resources(),
        )
    for number in range(50 - len(store.queues)):
        world.batch.create_job_queue(
            jobQueueName=f"many-{number}",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "ce"}],
        )
    assert "50" in refused(
        "compute environments per Region",
        lambda: world.batch.create_compute_environment(
            computeEnvironmentName="one-more",
            type="MANAGED",
            computeResources=world.resources(),
        ),
    )
    assert "50" in refused(
        "job queues per Region",
        lambda: world.batch.create_job_queue(
            jobQueueName="one-more",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "ce"}],
        ),
    )
