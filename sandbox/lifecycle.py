"""A sandbox as a process of its own: started, found again, ended. Speaks to the system.

`up` starts a guard, the guard starts the server. Whatever ends the server, kill -9 included,
the guard then ends all that the jobs have started; the server ends when the guard does.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import psutil

STATE_FILE = "sandbox.json"
LOG_FILE = "sandbox.log"
START_SECONDS = 60.0
STOP_SECONDS = 15.0
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


class SandboxError(Exception):
    """What is wrong, and what to type."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a running sandbox writes into its folder."""

    guard_pid: int
    guard_started: float
    port: int
    region: str


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a sandbox is to be started."""

    folder: Path
    port: int
    region: str
    slots: int
    image_root: Path
    grace_s: float


def read_state(folder: Path) -> State | None:
    """The sandbox of that folder, None when none runs there."""
    try:
        state = msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return None
    try:
        guard = psutil.Process(state.guard_pid)
        same = abs(guard.create_time() - state.guard_started) < 1
        return state if same and guard.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def start(options: Options) -> State:
    """Starts a sandbox in the background and returns when it answers.

    Raises SandboxError when it does not.
    """
    clean_up(options.folder)
    options.folder.mkdir(parents=True, exist_ok=True)
    log = options.folder / LOG_FILE
    with log.open("wb") as output:
        guard = subprocess.Popen(
            _guard_command(options),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        state = read_state(options.folder)
        if state and is_answering(state.port):
            return state
        if guard.poll() is not None:
            break
        time.sleep(0.02)
    said = log.read_text(errors="replace").strip().splitlines()[-3:]
    with contextlib.suppress(ProcessLookupError):
        guard.terminate()
    guard.wait()
    clean_up(options.folder)
    raise SandboxError("the sandbox did not start: " + ("\n".join(said) or "it said nothing"))


def guard(options: Options) -> int:
    """Runs the server as a child until either ends; nothing of the jobs is left then."""
    _adopt_orphans()
    server = subprocess.Popen(
        [*_command("_server"), msgspec.json.encode(_builtins(options)).decode()],
        stdin=subprocess.PIPE,  # its end tells the server that the guard is gone
        start_new_session=True,
    )
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    while server.poll() is None and not stopping.wait(0.1):
        pass
    if server.poll() is None:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        server.kill()
    server.wait()
    _kill_descendants()
    return 0 if stopping.is_set() else 1


def serve(options: Options) -> None:
    """The server's own process: answers until SIGTERM, or until its guard is gone."""
    from sandbox.server import Sandbox, listen  # noqa: PLC0415 # the guard does without

    app = Sandbox(
        region=options.region,
        slots=options.slots,
        work_dir=options.folder / "work",
        image_root=options.image_root,
        grace_s=options.grace_s,
    )
    try:
        server = listen(app, options.port)
    except OSError as err:
        raise SandboxError(f"port {options.port} can't be had: {err.strerror}") from err
    write_state(options.folder, server.port, options.region)
    threading.Thread(target=app.warm_up, daemon=True).start()

    def stop(*_: Any) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), stop()), daemon=True).start()  # type: ignore[func-returns-value] # both are done
    server.serve_forever()
    server.server_close()
    app.close()


def write_state(folder: Path, port: int, region: str) -> None:
    """Tells how to reach the sandbox, whole or not at all."""
    parent = psutil.Process(os.getppid())
    state = State(
        guard_pid=parent.pid, guard_started=parent.create_time(), port=port, region=region
    )
    part = folder / (STATE_FILE + ".part")
    part.write_bytes(msgspec.json.encode(state))
    part.replace(folder / STATE_FILE)


def stop(folder: Path) -> bool:
    """Ends the sandbox of that folder with all its jobs; False when none ran there."""
    state = read_state(folder)
    if state:
        guard_process = psutil.Process(state.guard_pid)
        with contextlib.suppress(psutil.NoSuchProcess):
            guard_process.terminate()
            try:
                guard_process.wait(STOP_SECONDS + 5)
            except psutil.TimeoutExpired:
                guard_process.kill()
    clean_up(folder)
    return state is not None


def clean_up(folder: Path) -> None:
    """Ends what an ended sandbox may have left and removes its folder.

    Raises SandboxError for a folder that is not a sandbox's.
    """
    if not folder.exists():
        return
    names = {entry.name for entry in folder.iterdir()}
    if names and not names & {STATE_FILE, LOG_FILE, STATE_FILE + ".part"}:
        raise SandboxError(f"{folder} holds other files: give another folder with --dir")
    _kill_jobs_of(folder)
    shutil.rmtree(folder)


def is_answering(port: int) -> bool:
    """Whether a sandbox answers at that port."""
    try:
        control(port, "GET", "status")
    except SandboxError:
        return False
    return True


def control(port: int, method: str, name: str, body: Any = None) -> Any:
    """Asks the sandbox at that port (its /_sandbox/ addresses).

    Raises SandboxError with its message, or when it does not answer.
    """
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/_sandbox/{name}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as err:
        with err:
            raise SandboxError(json.load(err)["message"]) from err
    except (OSError, ValueError) as err:
        raise SandboxError(f"the sandbox at port {port} does not answer") from err


def client_environment(folder: Path, port: int, region: str) -> dict[str, str]:
    """The variables that point boto3, the AWS CLI, Pulumi and submit at the sandbox."""
    none = str(folder / "no-aws-profile")
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "sandbox",
        "AWS_SECRET_ACCESS_KEY": "sandbox",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": none,
        "AWS_SHARED_CREDENTIALS_FILE": none,
        "PULUMI_BACKEND_URL": f"file://{folder / 'pulumi'}",
        "PULUMI_HOME": str(folder / "pulumi-home"),
        "PULUMI_CONFIG_PASSPHRASE": "sandbox",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "RUNFLEET_HOME": str(folder / "home"),
        "RUNFLEET_SANDBOX_DIR": str(folder),
        "RUNFLEET_SANDBOX_PYTHON": sys.executable,
    }


UNSET = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_ENDPOINT_URL_BATCH",
    "AWS_CA_BUNDLE",
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "PULUMI_ACCESS_TOKEN",
)
"""Variables that would lead a client somewhere else."""


def _builtins(options: Options) -> dict[str, Any]:
    return {
        "folder": str(options.folder),
        "port": options.port,
        "region": options.region,
        "slots": options.slots,
        "image_root": str(options.image_root),
        "grace_s": options.grace_s,
    }


def parse_options(text: str) -> Options:
    """The options that a guard or a server was started with."""
    values = json.loads(text)
    values |= {key: Path(values[key]) for key in ("folder", "image_root")}
    return Options(**values)


def _command(verb: str) -> list[str]:
    return [sys.executable, "-m", "sandbox", verb]


def _guard_command(options: Options) -> list[str]:
    return [*_command("_guard"), json.dumps(_builtins(options))]


def _adopt_orphans() -> None:
    """Processes that lose their parent come to this one, not to init (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_descendants() -> None:
    for _ in range(100):
        left = psutil.Process().children(recursive=True)
        if not left:
            return
        _kill(left)


def _kill_jobs_of(folder: Path) -> None:
    """For a guard and a server that were killed together."""
    jobs = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if (
                environment.get("RUNFLEET_SANDBOX_DIR") == str(folder)
                and "AWS_BATCH_JOB_ID" in environment
            ):
                jobs.append(process)
    _kill(jobs)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
