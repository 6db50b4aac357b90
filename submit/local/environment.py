"""Which part of a shell's environment may lie in a file, and what a run gets. Pure.

Kept in the store is only what decides which program runs and how: PATH, the virtual
environment, the language, the settings of numeric libraries. All else, where a secret could be,
is handed to the supervisor and stays in its memory; after a restart it comes from the shell
whose command has started it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from submit.fleet import LOCAL
from submit.local.records import Attempt, Task

_KEPT = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|DISPLAY|RUNFLEET_ENGINE|"
    r"(LC|LD|XDG|PYTHON|VIRTUAL_ENV|CONDA|CUDA|CUDNN|NVIDIA|NCCL|OMP|MKL|OPENBLAS|NUMEXPR|"
    r"PYTORCH|TORCH|TF|XLA|JAX|MUJOCO)(_\w+|PATH|HOME|HASHSEED|UNBUFFERED|DONTWRITEBYTECODE)?)"
)
_SECRET = re.compile(r"KEY|SECRET|TOKEN|PASS|CRED|AUTH")
_CREDENTIALS = re.compile(r"://[^/\s]*@")
"""A URL with a user or a password."""


def is_kept(name: str, value: str) -> bool:
    """Whether the variable may lie in a file."""
    return (
        bool(_KEPT.fullmatch(name)) and not _SECRET.search(name) and not _CREDENTIALS.search(value)
    )


def kept_part(environment: Mapping[str, str]) -> dict[str, str]:
    """What of a shell's environment may lie in a file."""
    return {name: value for name, value in environment.items() if is_kept(name, value)}


def merge(kept: Mapping[str, str], fresh: Mapping[str, str]) -> dict[str, str]:
    """The environment of a shell of which only the kept part is left, completed from another."""
    return {name: value for name, value in fresh.items() if not is_kept(name, value)} | dict(kept)


def job_variables(task: Task, attempt: Attempt) -> dict[str, str]:
    """What AWS Batch would set for the attempt: the request's variables, and its own."""
    variables = {
        pair["name"]: pair["value"]
        for pairs in (
            task.container.get("environment", ()),
            task.request["containerOverrides"]["environment"],
        )
        for pair in pairs
    }
    variables |= {
        "AWS_BATCH_JOB_ID": task.name,
        "AWS_BATCH_JOB_ATTEMPT": str(attempt.number),
        "AWS_BATCH_JQ_NAME": LOCAL,
    }
    if task.size > 1:
        variables["AWS_BATCH_JOB_ARRAY_INDEX"] = str(attempt.child)
    return variables


def run_environment(
    base: Mapping[str, str], own: Mapping[str, str], *, gpus: str | None
) -> dict[str, str]:
    """What a run that is a process gets: `base`, the job's own variables, and the GPUs that it
    may see (None: the machine has none).
    """
    environment = {
        name: value
        for name, value in base.items()
        if not name.startswith(("AWS_BATCH_", "RUNFLEET_"))
    }
    environment |= own
    if gpus is not None:
        # By the numbers of nvidia-smi, and not the fastest first (CUDA, "Environment Variables").
        environment |= {"CUDA_VISIBLE_DEVICES": gpus, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return environment
