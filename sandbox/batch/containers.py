"""Attempts as containers of docker or podman. Speaks to the engine's command line.

The container is made, started, followed and asked for its end in separate steps, so that what the
engine says is never taken for what the job prints. It outlives whoever started it: the reaper, the
guard, and the next `up` or `down` remove what is left, by its label.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.batch import arguments
from sandbox.batch.executor import Attempt, Grace, Log, Outcome, logged, stopped_by_end_of
from sandbox.batch.reaper import Reaper
from sandbox.errors import SandboxError

ENGINES = ("docker", "podman")
_CALL_SECONDS = 120.0
_LAST_LINES_SECONDS = 10.0
"""How long the last lines of a container that has ended may take."""
_OOM_FILE = "oom"
"""Of conmon, Podman's monitor of a container."""
_NEVER_RAN = frozenset({"created", "configured", "initialized"})


class ContainerExecutor:
    """Runs attempts as containers, one call each; the calling thread waits for the end."""

    def __init__(self, engine: str, label: str, grace_s: float) -> None:
        self._engine = engine
        self._label = label
        self._grace = Grace(grace_s)
        self._reaper = Reaper((engine, f"{arguments.LABEL}={label}"))
        self._here: set[str] = set()
        """Images that are there."""

    def hurry(self) -> None:
        """From now on, attempts that are stopped have a second to end."""
        self._grace.hurry()

    def close(self) -> None:
        """No attempt runs any more."""
        self._reaper.close()

    def run(
        self,
        attempt: Attempt,
        *,
        started: Callable[[int], None],
        stop: threading.Event,
        log: Log,
    ) -> Outcome:
        """Runs it to its end. `stop` ends it early; `log` takes its lines as they come."""
        self._reaper.start()
        with _folder(attempt.folder):
            return self._run(attempt, started, stop, log)

    def _run(
        self,
        attempt: Attempt,
        started: Callable[[int], None],
        stop: threading.Event,
        log: Log,
    ) -> Outcome:
        name = f"runfleet-{attempt.folder.name}"
        fault = self._pull(attempt.container["image"], stop) or self._create(name, attempt)
        if fault:
            return Outcome(None, fault)
        try:
            said = _run([self._engine, "start", name], folder=attempt.folder)
            if said.returncode:
                return Outcome(None, f"CannotStartContainerError: {_last_line(said)}")
            self._follow(name, attempt, started, stop, log)
            return self._outcome(name, attempt.folder)
        finally:
            self._call("rm", "--force", "--volumes", name)
            volumes = arguments.volume_names(name, attempt.container)
            if volumes:  # another container of the task may still have them: the last removes them
                self._call("volume", "rm", *volumes)

    def _pull(self, image: str, stop: threading.Event) -> str | None:
        """Makes sure that the image is there; why it can't be had, None when it is."""
        if image in self._here:
            return None
        if self._call("image", "inspect", image).returncode:
            said = _interruptible([self._engine, "pull", "--quiet", image], stop)
            if said.returncode:
                return f"CannotPullContainerError: {_last_line(said)}"
        self._here.add(image)
        return None

    def _create(self, name: str, attempt: Attempt) -> str | None:
        """Makes the container; why it can't be made, None when it is."""
        container = attempt.container
        secrets = frozenset(secret["name"] for secret in container.get("secrets", []))
        variables = arguments.variables(attempt.environment, secrets)
        if isinstance(variables, str):
            return f"CannotCreateContainerError: {variables}"
        with _env_file(attempt.folder, variables.filed) as env_file:
            command = arguments.create(
                self._engine,
                name=name,
                label=self._label,
                container=container,
                variables=variables,
                env_file=env_file,
            )
            try:
                said = _run(command, os.environ | variables.inherited)
            except ValueError as err:  # a NUL in the command, which no program takes
                return f"CannotCreateContainerError: {err}"
        return f"CannotCreateContainerError: {_last_line(said)}" if said.returncode else None

    def _follow(
        self,
        name: str,
        attempt: Attempt,
        started: Callable[[int], None],
        stop: threading.Event,
        log: Log,
    ) -> None:
        """Until the container has ended, by itself or once it is to `stop`."""
        reader = _begin([self._engine, "logs", "--follow", name])
        waiter = _begin([self._engine, "wait", name])
        with self._reaper.watching(reader.pid), self._reaper.watching(waiter.pid):
            started(waiter.pid)
            with logged(reader, log):
                with stopped_by_end_of(waiter, stop):
                    stop.wait()
                    if waiter.poll() is None:
                        grace_s = self._grace.of(attempt)
                        _run(
                            [self._engine, "stop", "-t", str(round(grace_s)), name],
                            timeout_s=_CALL_SECONDS + grace_s,
                        )
                    waiter.communicate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    reader.wait(_LAST_LINES_SECONDS)
                reader.kill()
                reader.wait()

    def _outcome(self, name: str, folder: Path) -> Outcome:
        said = self._call("inspect", "--format", "{{json .State}}", name)
        if said.returncode:
            return Outcome(None, f"CannotInspectContainerError: {_last_line(said)}")
        state = json.loads(said.stdout)
        if state.get("Status") in _NEVER_RAN:
            return Outcome(None, f"CannotStartContainerError: {state.get('Error')}")
        # Podman does not always know what its monitor has written to where that was started.
        out_of_memory = bool(state.get("OOMKilled")) or (folder / _OOM_FILE).exists()
        return Outcome(state["ExitCode"], None, out_of_memory=out_of_memory)

    def _call(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return _run([self._engine, *words])


def label_of(work_dir: Path) -> str:
    """Tells a sandbox's containers from another's."""
    return str(work_dir.resolve())


def check(engine: str) -> None:
    """Raises SandboxError where the engine can't be used."""
    said = _run([engine, "ps", "--quiet"])
    if said.returncode:
        raise SandboxError(
            f"{engine} can't be used ({_last_line(said)}): start it, or leave --executor out, "
            "and jobs are processes"
        )


def remove_all(engine: str, label: str) -> None:
    """Removes the sandbox's containers that are left, running or not.

    Raises SandboxError when the engine does not do it.
    """
    found = _run([engine, "ps", "--all", "--quiet", "--filter", f"label={arguments.LABEL}={label}"])
    ids = found.stdout.decode().split()
    removed = _run([engine, "rm", "--force", "--volumes", *ids]) if ids else found
    if removed.returncode:
        raise SandboxError(f"{engine} does not remove this sandbox's jobs: {_last_line(removed)}")


def _run(
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    timeout_s: float = _CALL_SECONDS,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """The command, done; one that can't be run has failed."""
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=timeout_s,
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        why = err.strerror if isinstance(err, OSError) else "no answer"
        return subprocess.CompletedProcess(command, 127, b"", str(why).encode())


def _interruptible(
    command: Sequence[str], stop: threading.Event
) -> subprocess.CompletedProcess[bytes]:
    """The command, done, or killed once it is to `stop`."""
    process = _begin(command)
    over = threading.Event()

    def kill() -> None:
        while not over.is_set():
            if stop.wait(0.2):
                process.kill()
                return

    watcher = threading.Thread(target=kill, daemon=True)
    watcher.start()
    out, _ = process.communicate()
    over.set()
    watcher.join()
    return subprocess.CompletedProcess(command, process.returncode, b"", out)


def _begin(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


@contextlib.contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """The attempt's folder, for this user alone, gone when the block is left."""
    folder.mkdir(parents=True, mode=0o700)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _env_file(folder: Path, variables: Mapping[str, str]) -> Iterator[str | None]:
    """A file of these variables for this user alone, gone when the block is left."""
    if not variables:
        yield None
        return
    path = folder / "env"
    try:
        path.touch(mode=0o600)
        path.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


def _last_line(said: subprocess.CompletedProcess[Any]) -> str:
    lines = said.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"status {said.returncode}"
