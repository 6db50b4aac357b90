"""An experiment as `docker run` lines for this machine, one a run. Pure.

What CleanRL's submit_exp shows without a provider: runs side by side, each pinned to its own
cores, in turn. Values of secrets are in none of them: Docker takes `-e NAME` from the shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from submit.experiment import Experiment, iter_runs, run_arguments

HEADER = "#!/bin/sh\n# Written by submit run; it writes over this file.\n"
KEY = "WANDB_API_KEY"


def iter_docker_lines(experiment: Experiment, cores: Sequence[int]) -> Iterator[str]:
    """The lines, lazily; `cores` are those that a container may have."""
    options = shlex.join(_options(experiment))
    each = max(1, min(experiment.resources.vcpus or 1, len(cores)))
    for number, run in enumerate(iter_runs(experiment)):
        first = number * each
        pinned = ",".join(str(cores[place % len(cores)]) for place in range(first, first + each))
        words = shlex.join([experiment.image, *run_arguments(experiment, run)])
        yield f'docker run -d --cpuset-cpus="{pinned}" {options} {words}'


def _options(experiment: Experiment) -> Iterator[str]:
    for secret in dict.fromkeys((KEY, *experiment.secrets)):
        yield from ("-e", secret)
    for name, value in (
        ("WANDB_RUN_GROUP", experiment.group),
        ("WANDB_PROJECT", experiment.project),
        ("WANDB_ENTITY", experiment.entity),
        ("WANDB_TAGS", ",".join(experiment.tags)),
        *experiment.environment,
    ):
        if value or (name, value) in experiment.environment:
            yield from ("-e", f"{name}={value}")
    if experiment.resources.gpus:
        yield from ("--gpus", str(experiment.resources.gpus))
    if experiment.resources.shm_mib:
        yield f"--shm-size={experiment.resources.shm_mib}m"
