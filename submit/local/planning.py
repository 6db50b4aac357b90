"""An experiment made ready for the own machine: the machine as a fleet, the folder, the checks.

Looks at the machine, the environment and PATH, and changes nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from submit.errors import Refused, WrongUse
from submit.experiment import LOCAL_RETRIES, Experiment, Literal, argument_parts
from submit.fleet import Fleet
from submit.local.machine import local_fleet, this_machine
from submit.tracking.wanted import KEY


def with_key(environ: Mapping[str, str], secrets: Collection[str]) -> Mapping[str, str]:
    """The environment, with the key of Weights & Biases in it if it is among the secrets: wherever
    wandb itself would find it.
    """
    if KEY not in secrets or environ.get(KEY):
        return environ
    from submit.tracking.keys import find_key  # noqa: PLC0415 # reads files

    key = find_key(None, environ)
    return {**environ, KEY: key} if key else environ


def fleet_here(experiment: Experiment | None, environ: Mapping[str, str]) -> Fleet:
    """The machine as a fleet of one queue. Secrets of the experiment are variables of this shell:
    of them the names alone go on.

    Raises Refused for a secret that is not set.
    """
    names = experiment.secrets if experiment else ()
    for name in names:
        if not environ.get(name):
            raise Refused(
                "secret-not-set",
                f"the secret {name} is a variable of this shell on the own machine, and is not set",
                f"export {name}=…, then the same line again",
            )
    return local_fleet(this_machine(environ), {name: f"environment:{name}" for name in names})


def at_home(experiment: Experiment, environ: Mapping[str, str], cwd: Path) -> Experiment:
    """The experiment as it runs on the own machine: in an image, or in the folder `cwd`.

    Raises WrongUse and Refused for what could not run there.
    """
    if experiment.workers is not None and experiment.workers < 1:
        raise WrongUse("workers", f"{experiment.workers} workers can't do anything", "--workers 1")
    if experiment.retries is None:
        experiment = msgspec.structs.replace(experiment, retries=LOCAL_RETRIES)
    if experiment.image:
        return experiment
    folder = Path(experiment.folder or cwd)
    if not folder.is_dir():
        raise Refused("no-folder", f"the folder {folder} is not there any more", f"mkdir {folder}")
    _refuse_missing(experiment, folder, environ)
    return msgspec.structs.replace(experiment, folder=str(folder))


def _refuse_missing(experiment: Experiment, folder: Path, environ: Mapping[str, str]) -> None:
    """A program that is not there would end every run with 127."""
    first = argument_parts(experiment)[0] if experiment.command else ()
    if not all(isinstance(part, Literal) for part in first):
        return  # it is another one in each run
    program = "".join(part.text for part in first if isinstance(part, Literal))
    path = dict(experiment.environment).get("PATH", environ.get("PATH"))
    found = (
        shutil.which(str(folder / program)) if "/" in program else shutil.which(program, path=path)
    )
    if program and not found:
        raise Refused(
            "no-program",
            f"there is no program {program!r} that can be run "
            + (f"in {folder}" if "/" in program else "on PATH"),
            f"which {program}" if "/" not in program else f"ls -l {folder / program}",
        )
