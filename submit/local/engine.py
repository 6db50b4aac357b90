"""Docker or Podman for runs that have an image: the command lines, and what is looked up first.

A value that is secret stands in no command line: such a variable is passed on by its name, from
the environment of the engine's own client.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence

import msgspec

from submit.errors import Refused, ServiceFailed
from submit.local.records import Attempt, Seat, Task

ENGINE = "RUNFLEET_ENGINE"
"""The variable that says which of them is meant."""
_ENGINES = ("docker", "podman")
_BUNDLE = "runfleet"


class Engine(msgspec.Struct, frozen=True):
    """One of the two, by the path of its client."""

    path: str

    @property
    def name(self) -> str:
        """`docker` or `podman`."""
        return self.path.rpartition("/")[2]


def find_engine(environ: Mapping[str, str]) -> Engine:
    """The engine that RUNFLEET_ENGINE names, or the first that there is.

    Raises Refused when there is none.
    """
    return _engines(environ)[0]


def choose_engine(environ: Mapping[str, str]) -> Engine:
    """The engine for new runs: of two the first that answers. Raises Refused when there is none."""
    found = _engines(environ)
    return next((one for one in found[:-1] if _is_up(one, environ)), found[-1])


def _engines(environ: Mapping[str, str]) -> list[Engine]:
    named = environ.get(ENGINE)
    if named and named not in _ENGINES:
        raise Refused(
            "engine", f"{ENGINE} is {named}, which is no engine", f"export {ENGINE}=podman"
        )
    names = (named,) if named else _ENGINES
    paths = [shutil.which(name, path=environ.get("PATH")) for name in names]
    found = [Engine(path) for path in paths if path]
    if found:
        return found
    raise Refused(
        "no-engine",
        f"an image was named, and this machine has {'no ' + named if named else 'neither docker nor podman'}",
        "leave --image out to run in this folder, or install one of them",
    )


def bring_image(engine: Engine, image: str, environ: Mapping[str, str]) -> str:
    """The image's id; pulled when it is not here yet.

    Raises Refused when there is no such image, ServiceFailed when the engine does not answer.
    """
    inspect = ("image", "inspect", "--format", "{{.Id}}", image)
    found = _ask(engine, inspect, environ)
    if found.returncode and not _is_up(engine, environ):
        raise ServiceFailed(
            "engine-down",
            f"{engine.name} does not answer: {_last(found.stderr)}",
            f"{engine.name} info",
        )
    if found.returncode:
        pulled = _ask(engine, ("pull", image), environ)
        found = _ask(engine, inspect, environ)
        if found.returncode:
            raise Refused(
                "no-image",
                f"there is no image {image} here, and it can't be pulled: {_last(pulled.stderr)}",
                f"{engine.name} images; {engine.name} pull {image}",
            )
    return found.stdout.strip()


def run_command(
    engine: Engine, task: Task, attempt: Attempt, seat: Seat, variables: Mapping[str, str]
) -> list[str]:
    """What runs an attempt in a container, and ends as its command does. `variables` are the
    job's own, none of them secret; secrets go by name. Pure.
    """
    parameters = task.container.get("linuxParameters", {})
    flags = [
        *("--name", container_name(task, attempt), "--label", _BUNDLE, "--rm", "--init"),
        *("--pull", "never", "--cpuset-cpus", _numbers(seat.cores)),
        *(
            "--memory",
            f"{seat.memory_mib}m",
            "--shm-size",
            f"{parameters.get('sharedMemorySize', 64)}m",
        ),
        *_gpu_flags(engine, seat.gpus),
    ]
    for name, value in sorted(variables.items()):
        flags += ["--env", f"{name}={value}"]
    for name in task.secrets:
        flags += ["--env", name]
    return [engine.path, "run", *flags, task.image, *task.container["command"]]


def container_name(task: Task, attempt: Attempt) -> str:
    """The name of an attempt's container, which no other has."""
    return f"{_BUNDLE}-{task.name}-{attempt.child}-{attempt.number}"


def remove_command(engine: Engine, name: str) -> list[str]:
    """What ends a container of which nobody waits for the end any more, at once."""
    # Podman else asks it to end, and gives it 10 s; Docker never does.
    at_once = ("--time", "0") if engine.name == "podman" else ()
    return [engine.path, "rm", "--force", *at_once, name]


def _gpu_flags(engine: Engine, gpus: Sequence[int]) -> tuple[str, ...]:
    if not gpus:
        return ()
    if engine.name == "podman":  # through the Container Device Interface
        return tuple(word for gpu in gpus for word in ("--device", f"nvidia.com/gpu={gpu}"))
    return "--gpus", f'"device={_numbers(gpus)}"'  # the quotes hold the commas together


def _numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _is_up(engine: Engine, environ: Mapping[str, str]) -> bool:
    return not _ask(engine, ("info",), environ).returncode


def _ask(
    engine: Engine, words: Sequence[str], environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [engine.path, *words],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )


def _last(text: str) -> str:
    return next(
        (line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason given"
    )
