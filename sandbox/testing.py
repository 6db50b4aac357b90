"""A sandbox inside a test's own process: `with running() as sandbox:`."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sandbox.client import control, environment
from sandbox.faults import Fault
from sandbox.guard import work_folder
from sandbox.listening import listen
from sandbox.server import Sandbox


class Running:
    """A sandbox that answers at `endpoint`; `dir` is its folder."""

    def __init__(self, app: Sandbox, port: int, folder: Path) -> None:
        self.app = app
        self.port = port
        self.dir = folder
        self.endpoint = f"http://127.0.0.1:{port}"

    def env(self) -> dict[str, str]:
        """What `python -m sandbox env` exports for this sandbox."""
        return environment(self.dir, port=self.port, region=self.app.region, key=self.app.key)

    def client(self, service: str, **options: Any) -> Any:
        """A boto3 client of the sandbox."""
        import boto3  # noqa: PLC0415 # takes half a second

        connect: Any = boto3.client  # its overloads name each service
        return connect(
            service,
            endpoint_url=self.endpoint,
            region_name=self.app.region,
            aws_access_key_id=self.app.key,
            aws_secret_access_key="sandbox",  # noqa: S106 # any will do
            **options,
        )

    def calls(self) -> dict[str, int]:
        """Calls so far, by `service.Operation`."""
        return self.app.faults.calls()

    def fault(self, kind: str, **options: Any) -> None:
        """Asks for a fault (sandbox.faults)."""
        self.app.faults.add(Fault(kind=kind, **options))

    def interrupt(self, job_id: str, notice_s: float = 0.0) -> None:
        """Takes the instance under a running job away, after that notice."""
        body = {"jobId": job_id, "notice": notice_s}
        control(self.port, self.app.key, "POST", "interrupt", body)

    def conditions(self, **changes: Any) -> None:
        """Changes what lasts (sandbox.conditions); without any, all is calm again."""
        verb = "POST" if changes else "DELETE"
        control(self.port, self.app.key, verb, "conditions", changes or None)

    def advance(self, seconds: float) -> None:
        """Moves the sandbox's clock on."""
        control(self.port, self.app.key, "POST", "clock", {"advance": seconds})

    def speed_up(self, factor: float) -> None:
        """From now on the sandbox's clock goes so many times as fast as usual."""
        control(self.port, self.app.key, "POST", "clock", {"speed": factor})

    def struck(self) -> list[dict[str, Any]]:
        """The log of faults: those that struck, in order."""
        return self.app.faults.log()["struck"]


@contextlib.contextmanager
def running(
    *,
    region: str = "us-east-1",
    slots: int = 4,
    image_root: Path | None = None,
    grace_s: float = 1.0,
    engine: str | None = None,
    boot_s: float = 0.0,
    idle_s: float = 5.0,
    memory_limits: bool = False,
    state_dir: Path | None = None,
    clock: Callable[[], float] = time.time,
) -> Iterator[Running]:
    """A sandbox on a free port; its jobs and its folder are gone at the end.

    moto keeps its state in the process and forgets it at the end: one at a time, please.
    """
    with tempfile.TemporaryDirectory(prefix="runfleet-sandbox-") as name:
        folder = Path(name)
        empty = folder / "image"
        empty.mkdir()
        app = Sandbox(
            region=region,
            slots=slots,
            work_dir=work_folder(folder),
            image_root=image_root or empty,
            grace_s=grace_s,
            engine=engine,
            boot_s=boot_s,
            idle_s=idle_s,
            memory_limits=memory_limits,
            state_dir=state_dir,
            clock=clock,
        )
        server = listen(app)
        app.endpoint = f"http://127.0.0.1:{server.port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Running(app, server.port, folder)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            app.close()
            _reset_moto()


def _reset_moto() -> None:
    from moto.core.base_backend import BackendDict  # noqa: PLC0415 # loaded by then

    instances: Any = vars(BackendDict)["_instances"]  # moto's own reset walks them too
    for backends in list(instances):
        backends.reset()
