"""What `submit run` does as CleanRL's submit_exp: lines for Docker here, or jobs on AWS."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

from submit import api
from submit.asked import Asked, make_experiment
from submit.checks import check_experiment
from submit.commands.asking import CLEANRL_IMAGE
from submit.commands.text import plural, say
from submit.docker_lines import HEADER, KEY, iter_docker_lines
from submit.errors import ServiceFailed, SubmitError, WrongUse
from submit.experiment import Experiment, run_count
from submit.fleet import LOCAL, Fleet
from submit.tracking.wanted import wandb_secret


def find_queue(session: api.Session, asked: Asked, given: dict[str, Any]) -> str | None:
    """The queue that the line names: by --queue, with --provider by --job-queue, or by the type
    of its instances. None when it names none.
    """
    queue = asked.queue or (given["job_queue"] if given["provider"] else None)
    kind = given["instance_type"]
    if not kind:
        return queue
    fleet = api.queues(session)
    if queue is None:
        return _queue_of_type(fleet, kind)
    if queue in fleet.queues and fleet.queues[queue].instance_type != kind:
        raise WrongUse(
            "instance-type",
            f"the queue {queue} has {fleet.queues[queue].instance_type}, not {kind}",
            f"--instance-type {kind} alone finds its queue",
        )
    return queue


def environment(asked: Asked, given: dict[str, Any]) -> Mapping[str, str]:
    """The shell's; on the own machine with the line's key of W&B, as if it had been exported."""
    key = given["wandb_key"]
    if not key or LOCAL not in {asked.queue, given["job_queue"]}:
        return os.environ
    from submit.tracking.keys import checked_key  # noqa: PLC0415 # rarely

    return {**os.environ, KEY: checked_key(key, "--wandb-key")}


def with_key(
    session: api.Session, experiment: Experiment, queue: str, given: dict[str, Any]
) -> Experiment:
    """The experiment with the key of W&B among its secrets, where submit_exp would give it one: on
    AWS it is the stack's, and never the one on the line.

    Raises WrongUse when the line's key stands in the experiment too, Refused when the stack has none.
    """
    key = given["wandb_key"]
    _refuse_key_within(experiment, key)
    if not (key or given["provider"]):
        return experiment
    if queue == LOCAL:
        return _with_secret(experiment) if key else experiment
    fleet = api.queues(session)
    if key:
        wandb_secret(fleet)  # refuses a stack without
        say(f"the key of W&B is the stack's secret {KEY}; the one on the line was not used")
    return _with_secret(experiment) if KEY in fleet.secrets else experiment


def _with_secret(experiment: Experiment) -> Experiment:
    if KEY in experiment.secrets:
        return experiment
    return msgspec.structs.replace(experiment, secrets=(*experiment.secrets, KEY))


def show_docker(asked: Asked, given: dict[str, Any], image: str) -> int:
    """Prints a `docker run` line for each run, and writes them to a script; nothing is sent."""
    experiment = make_experiment(msgspec.structs.replace(asked, image=asked.image or image))
    check_experiment(experiment)
    _refuse_key_within(experiment, given["wandb_key"])
    path = Path(f"{given['exp_script'] or 'debug.sh'}.docker.sh")
    cores = sorted(os.sched_getaffinity(0))
    _write(path, iter_docker_lines(experiment, cores))
    for line in iter_docker_lines(experiment, cores):
        click.echo(line)
    why = "--job-queue alone sends nothing" if given["job_queue"] else "no queue was named"
    say(
        f"nothing was sent: {why}; {plural(run_count(experiment), 'line')} for this "
        f"machine, also in {path}\n"
        f"  next: export {KEY}=… && sh {path}\n"
        f"  or: submit run --queue {given['job_queue'] or 'QUEUE'} …   (submit queues lists them)"
    )
    return 0


def build(session: api.Session, asked: Asked, given: dict[str, Any]) -> Asked:
    """Builds the image, pushes it if that is asked for, and asks for what was built."""
    build_image = import_module("submit.images.build").build_image  # speaks to Docker
    name = asked.image or _repository(session)
    built: str = build_image(name, archs=given["archs"], push=bool(given["push"]))
    say(f"built {built}{', and pushed it' if given['push'] else ''}")
    return msgspec.structs.replace(asked, image=built)


def _repository(session: api.Session) -> str:
    """The team's, or where there is no team yet the one that submit_exp builds for."""
    try:
        fleet = api.queues(session)
    except SubmitError:
        return CLEANRL_IMAGE
    return fleet.image_repository or CLEANRL_IMAGE


def _refuse_key_within(experiment: Experiment, key: str | None) -> None:
    if key and key in msgspec.json.encode(experiment).decode():
        raise WrongUse(
            "wandb-key",
            "the key of --wandb-key stands in the command or the environment too, where whoever may "
            "describe a job could read it",
            "leave it out there: runs get it by the name of its variable",
        )


def _queue_of_type(fleet: Fleet, kind: str) -> str:
    """On demand if there is one: what --instance-type says nothing of is not risked."""
    found = sorted(
        (queue.spot, name) for name, queue in fleet.queues.items() if queue.instance_type == kind
    )
    if not found:
        known = ", ".join(sorted({queue.instance_type for queue in fleet.queues.values()}))
        raise WrongUse(
            "instance-type",
            f"the stack {fleet.stack} has no queue of {kind} (it has: {known})",
            "submit queues",
        )
    return found[0][1]


def _write(path: Path, lines: Iterable[str]) -> None:
    """Puts the script in its place at once, for its owner alone; another's file is left alone."""
    import tempfile  # noqa: PLC0415 # takes a while to load

    try:
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace") as there:
                if there.read(len(HEADER)) != HEADER:
                    raise WrongUse(
                        "exp-script",
                        f"{path} was not written by submit run, and is not written over",
                        "--exp-script ANOTHER-NAME",
                    )
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=".submit-", delete=False
        ) as file:
            try:
                file.write(HEADER)
                file.writelines(f"{line}\n" for line in lines)
                os.fchmod(file.fileno(), 0o700)
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as err:
        raise ServiceFailed(
            "exp-script", f"{path} can't be written: {err.strerror}", "--exp-script PATH"
        ) from err
