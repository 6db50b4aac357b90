"""The two processes of a sandbox: a guard, and the server that it starts. Speaks to the system.

Whatever ends the server, kill -9 included, the guard then ends all that the jobs have started;
the server ends when its guard does. Should both be killed together, the reaper (batch/reaper.py)
ends the jobs, and the next `up` or `down` whatever has hidden from it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil

from sandbox.batch.containers import label_of, remove_all
from sandbox.errors import SandboxError
from sandbox.state import Options, State, read_state, write_state

STOP_SECONDS = 15.0
ROUND_SECONDS = 2.0
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


def command(verb: str, options: Options) -> list[str]:
    """The command line of a guard or a server."""
    return [sys.executable, "-m", "sandbox", verb, msgspec.json.encode(options).decode()]


def guard(options: Options, *, ready: Callable[[State], None] | None = None) -> int:
    """Runs the server as a child until either ends; nothing of the jobs is left then.

    `ready` is called once, when the server answers. Returns the exit status: 0 when it was told
    to stop.
    """
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    _adopt_orphans()
    server = subprocess.Popen(
        command("_server", options),
        stdin=subprocess.PIPE,  # its end tells the server that the guard is gone
        start_new_session=True,
    )
    next_round = time.monotonic()
    while server.poll() is None and not stopping.wait(0.1):
        if ready and (state := read_state(Path(options.folder))):
            ready(state)
            ready = None
        if time.monotonic() >= next_round:
            _tend_orphans(server.pid, work_folder(Path(options.folder)))
            next_round = time.monotonic() + ROUND_SECONDS
    if server.poll() is None:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        server.kill()
    server.wait()
    _kill_descendants()
    if options.engine:
        remove_all(options.engine, label_of(work_folder(Path(options.folder))))
    return 0 if stopping.is_set() else 1


def serve(options: Options) -> None:
    """The server's own process: answers until SIGTERM, or until its guard is gone."""
    from sandbox.listening import listen  # noqa: PLC0415 # the guard does without
    from sandbox.server import Sandbox  # noqa: PLC0415 # the guard does without

    app = Sandbox(
        region=options.region,
        slots=options.slots,
        work_dir=work_folder(Path(options.folder)),
        image_root=Path(options.image_root),
        grace_s=options.grace_s,
        engine=options.engine,
        boot_s=options.boot_s,
        idle_s=options.idle_s,
        memory_limits=options.memory_limits,
        speed=options.speed,
        state_dir=Path(options.state_dir) if options.state_dir else None,
    )
    try:
        server = listen(app, options.port)
    except OSError as err:
        raise SandboxError(
            f"port {options.port} can't be had ({err.strerror}): give another, or none, with --port"
        ) from err
    app.endpoint = f"http://127.0.0.1:{server.port}"
    write_state(
        Path(options.folder),
        port=server.port,
        region=options.region,
        key=app.key,
        engine=options.engine,
    )

    def stop(*_: Any) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()

    def stop_with_the_guard() -> None:
        os.read(sys.stdin.fileno(), 1)  # unbuffered: a buffer's lock would outlive the program
        stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for work in (app.warm_up, stop_with_the_guard):
        threading.Thread(target=work, daemon=True).start()
    server.serve_forever()
    server.server_close()
    app.close()
    kill_jobs_of(Path(options.folder), options.engine)
    os._exit(0)  # all is done, and taking moto's memory apart would take seconds


def work_folder(folder: Path) -> Path:
    """Where the jobs of the sandbox of that folder have their own."""
    return folder / "work"


def kill_jobs_of(folder: Path, engine: str | None) -> None:
    """For a guard and a server that were killed together: ends what their jobs left.

    Processes are known by the variables that each of a job's inherits, containers by their label.
    Raises SandboxError when the engine does not remove its containers.
    """
    if engine:
        remove_all(engine, label_of(work_folder(folder)))
    homes = str(work_folder(folder)) + "/"
    jobs = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if "AWS_BATCH_JOB_ID" in environment and environment.get("HOME", "").startswith(homes):
                jobs.append(process)
    _kill(jobs)


def _adopt_orphans() -> None:
    """Processes that lose their parent come to this one, not to init (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _tend_orphans(server_pid: int, work: Path) -> None:
    """Ends what has hidden from the end of its job in a session of its own.

    A job's folder goes with the job; containers leave no process behind either.
    """
    for child in psutil.Process().children():
        if child.pid == server_pid:
            continue
        with contextlib.suppress(psutil.Error, ChildProcessError):
            if child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)
                continue
            home = Path(child.environ().get("HOME", "/"))
            if home.parent == work and not home.exists():
                child.kill()


def _kill_descendants() -> None:
    for _ in range(100):
        left = psutil.Process().children(recursive=True)
        if not left:
            return
        _kill(left)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
