"""One loopback port for all of AWS that runfleet uses: moto's services and our own Batch.

Speaks WSGI. Control lies under /_sandbox/. Jobs run with this user's rights, so only this
user's clients are answered: they know the key (the access key id), which is made anew for each
sandbox; and only under a loopback host name, so that no web page can reach it under its own.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from sandbox import metadata
from sandbox.answers import Answer, error, expired, throttled
from sandbox.batch.account import MOTO, Account
from sandbox.batch.errors import ClientError
from sandbox.batch.service import Batch
from sandbox.client import CONTROL, KEY_HEADER
from sandbox.clock import Clock
from sandbox.conditions import Conditions
from sandbox.control import Control
from sandbox.faults import Fault, Faults
from sandbox.keeping import Diary, Keeper, load_moto, save_moto
from sandbox.listening import App, Environ, StartResponse, hang_up
from sandbox.rates import Buckets
from sandbox.transport import count_loopback_as_tls
from sandbox.visitors import StatusPage, is_a_visit, is_from_here

SERVICES = frozenset({"ec2", "ecr", "iam", "logs", "s3", "secretsmanager", "ssm", "sts"})
"""What moto answers for; Batch is our own."""
BATCH_PATHS = "/v1/"
"""Where Batch's operations lie: an unsigned request for one is refused as Batch refuses."""
MAX_BODY = 64 * 1024 * 1024
_SCOPE = re.compile(r"Credential=([^/]+)/[0-9]{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")


class Scope(NamedTuple):
    """What a request was signed for."""

    key: str
    region: str
    service: str


class Sandbox:
    """The whole sandbox as a WSGI application. `close` ends all jobs."""

    def __init__(
        self,
        *,
        region: str,
        slots: int,
        work_dir: Path,
        image_root: Path,
        grace_s: float,
        engine: str | None = None,
        boot_s: float = 0.0,
        idle_s: float = 5.0,
        memory_limits: bool = False,
        speed: float = 1.0,
        state_dir: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
        self.region = region
        self.key = "SANDBOX" + secrets.token_hex(12).upper()
        self.faults = Faults()
        self.conditions = Conditions(self.faults.note)
        self.clock = Clock(clock, speed)
        self.endpoint: str | None = None
        """Where it is reached, once it is: jobs find their metadata there."""
        self._buckets = Buckets(time.monotonic)
        self._options: dict[str, Any] = {
            "slots": slots,
            "work_dir": work_dir,
            "image_root": image_root,
            "grace_s": grace_s,
            "engine": engine,
            "boot_s": boot_s,
            "idle_s": idle_s,
            "memory_limits": memory_limits,
            "clock": self.clock,
        }
        self._control = Control(
            self.faults,
            conditions=self.conditions,
            clock=self.clock,
            status=self._status,
            interrupt=self._interrupt,
        )
        self._page = StatusPage(
            self.key,
            self.faults,
            self.conditions,
            status=self._status,
            batches=self._all_batches,
        )
        self._batches: dict[str, Batch] = {}
        self._lock = threading.Lock()
        self._moto: App | None = None
        self._started = time.monotonic()
        self._changes = 0
        self._keeper = Keeper(state_dir) if state_dir else None
        self._diary: Diary | None = None
        if self._keeper:
            self._remember(self._keeper)
            self._diary = Diary(self._keep, self._news)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        body = _read_body(environ)
        if is_a_visit(environ):
            return _send(start_response, self._page.answer(environ))
        refused = self._refused(environ, body)
        if refused:
            return _send(start_response, refused)
        path = environ["PATH_INFO"]
        if path.startswith(CONTROL):
            answer = self._control.answer(environ["REQUEST_METHOD"], path, body or b"")
            self._wake()
            return _send(start_response, answer)
        if path.startswith(metadata.PREFIX):
            return _send(start_response, self._metadata(environ))
        return self._serve(environ, start_response, body or b"")

    def batch(self, region: str | None = None) -> Batch:
        """The Batch of a region, started when it is first used."""
        region = region or self.region
        with self._lock:
            if region not in self._batches:
                self._batches[region] = Batch(
                    Account(region, endpoint=lambda: self.endpoint),
                    self.conditions,
                    **self._options,
                )
                kept = self._keeper.load(f"batch={region}") if self._keeper else None
                if kept:
                    self._batches[region].store.restore(kept)
                self._batches[region].scheduler.start()
            return self._batches[region]

    def close(self) -> None:
        """Ends all jobs; returns when their processes are gone.

        What is kept is the state before: in the next life they have lost their machines.
        """
        if self._diary:
            self._diary.close()
        for batch in self._batches.values():
            batch.close()

    def _remember(self, keeper: Keeper) -> None:
        """Whatever the life before knew; its clock does not go back."""
        load_moto(keeper)
        now = keeper.load("clock")
        if now and now > self.clock():
            self.clock.change(advance_s=now - self.clock())
        for name in keeper.names():
            kind, _, region = name.partition("=")
            if kind == "batch":
                self.batch(region)

    def _keep(self) -> None:
        assert self._keeper is not None
        self._keeper.save("clock", self.clock())
        for batch in self._all_batches():
            with batch.store.lock:
                self._keeper.save(f"batch={batch.store.account.region}", batch.store.kept())
        save_moto(self._keeper)

    def _news(self) -> int:
        """Another number once something has changed."""
        return self._changes + sum(batch.scheduler.ended for batch in self._all_batches())

    def warm_up(self) -> None:
        """Loads moto's slow parts, so that the first call does not wait for them."""
        from moto.ec2.models import ec2_backends  # noqa: PLC0415 # takes a second
        from moto.iam.models import iam_backends  # noqa: PLC0415 # takes a second

        account = Account(self.region).account_id
        with MOTO:
            _ = ec2_backends[account][self.region], iam_backends[account]["aws"]
        self._moto_app()

    def _refused(self, environ: Environ, body: bytes | None) -> Answer | None:
        """Why a request is not answered at all, None if it is."""
        content_type, scope = environ.get("CONTENT_TYPE", ""), _scope(environ)
        unsigned = "batch" if environ["PATH_INFO"].startswith(BATCH_PATHS) else ""
        service = scope.service if scope else unsigned

        def no(status: int, code: str, message: str) -> Answer:
            return error(status, code, message, service=service, content_type=content_type)

        if not is_from_here(environ):
            return no(403, "AccessDenied", "loopback clients only")
        if environ["PATH_INFO"].startswith(metadata.PREFIX):
            return None  # whoever knows the address is a job of that machine
        key = environ.get("HTTP_" + KEY_HEADER.upper().replace("-", "_"))
        if not environ["PATH_INFO"].startswith(CONTROL):
            key = scope.key if scope else None
        if key is None:
            return no(403, "MissingAuthenticationToken", "Missing Authentication Token")
        if not hmac.compare_digest(key.encode(), self.key.encode()):
            message = 'The access key is not this sandbox\'s: eval "$(python -m sandbox env)"'
            return no(403, "UnrecognizedClientException", message)
        if scope and service != "batch" and service not in SERVICES:
            return no(501, "NotImplemented", f"this sandbox does not have the service {service}")
        if body is None:
            return no(413, "RequestTooLarge", f"the request is larger than {MAX_BODY} bytes")
        return None

    def _serve(
        self, environ: Environ, start_response: StartResponse, body: bytes
    ) -> Iterable[bytes]:
        scope = _scope(environ)
        assert scope is not None
        operation = self._operation(environ, scope, body)
        if self.conditions.now.rates and not self._buckets.take(
            scope.region, scope.service, operation
        ):
            self.faults.note("rate", service=scope.service, operation=operation)
            return _send(start_response, throttled(scope.service, environ.get("CONTENT_TYPE", "")))
        self._changes += not operation.startswith(("Describe", "List", "Get"))
        fault = self.faults.meet(scope.service, operation)
        if fault and fault.kind == "latency":
            time.sleep(fault.seconds)
            fault = None
        if fault and fault.kind == "reset":
            hang_up(environ)
            return _send(start_response, Answer(200, b"", {}))
        if fault and (failure := _failure(fault, scope.service, environ)):
            return _send(start_response, failure)
        if fault:  # done, and the answer lost
            self._perform(environ, lambda *_: None, scope, body)
            hang_up(environ)
            return _send(start_response, Answer(200, b"", {}))
        return self._perform(environ, start_response, scope, body)

    def _perform(
        self, environ: Environ, start_response: StartResponse, scope: Scope, body: bytes
    ) -> Iterable[bytes]:
        if scope.service == "batch":
            answer = self.batch(scope.region).handle(
                environ["REQUEST_METHOD"],
                _raw_path(environ),
                parse_qs(environ.get("QUERY_STRING", "")),
                body,
            )
            return _send(start_response, answer)
        app = self._moto_app()
        with MOTO:
            return list(app(environ, start_response))

    def _operation(self, environ: Environ, scope: Scope, body: bytes) -> str:
        if scope.service == "batch":
            try:
                batch = self.batch(scope.region)
                return batch.operation_name(environ["REQUEST_METHOD"], _raw_path(environ))
            except ClientError:
                return "Unknown"
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if target:
            return str(target).rpartition(".")[2]
        action = parse_qs(body.decode("latin-1")).get("Action") if scope.service != "s3" else None
        return action[0] if action else str(environ["REQUEST_METHOD"])

    def _moto_app(self) -> App:
        with self._lock:
            if self._moto is None:
                from moto.moto_server.werkzeug_app import (  # noqa: PLC0415 # takes half a second
                    DomainDispatcherApplication,
                    create_backend_app,
                )

                count_loopback_as_tls()
                self._moto = DomainDispatcherApplication(create_backend_app)
            return self._moto

    def _metadata(self, environ: Environ) -> Answer:
        secret, path = metadata.split(environ["PATH_INFO"])
        for batch in self._all_batches():
            machine = batch.scheduler.find_machine(secret)
            if machine is None:
                continue
            if path.startswith("credentials/"):
                job_id = path.removeprefix("credentials/")
                role = batch.scheduler.role_on(machine, job_id)
                if role is None:
                    break
                return metadata.credentials(role, self.key, int(time.time() * 1000))
            return metadata.answer(
                machine,
                environ["REQUEST_METHOD"],
                path,
                environ,
                region=batch.store.account.region,
                now_ms=batch.scheduler.now_ms(),
            )
        return Answer(404, b"Not Found", {"Content-Type": "text/plain"})

    def _wake(self) -> None:
        for batch in self._all_batches():
            batch.scheduler.wake()

    def _interrupt(self, job_id: str, notice_s: float) -> str | None:
        found = (batch.scheduler.interrupt(job_id, notice_s) for batch in self._all_batches())
        return next((instance for instance in found if instance), None)

    def _status(self) -> dict[str, Any]:
        batches = self._all_batches()
        return {
            "region": self.region,
            "uptime": round(time.monotonic() - self._started, 1),
            "slots": self._options["slots"],
            "running": [job for batch in batches for job in batch.scheduler.running_jobs()],
            "jobs": sum(len(batch.store.jobs) for batch in batches),
            "instances": sum(len(batch.scheduler.machines.everyone()) for batch in batches),
            "now": self.clock(),
            "speed": self.clock.speed,
        }

    def _all_batches(self) -> list[Batch]:
        with self._lock:
            return list(self._batches.values())


def _failure(fault: Fault, service: str, environ: Environ) -> Answer | None:
    """The answer of a call that is refused on demand; None for other faults."""
    content_type = environ.get("CONTENT_TYPE", "")
    if fault.kind == "throttle":
        return throttled(service, content_type)
    if fault.kind == "expired":
        return expired(service, content_type)
    if fault.kind == "error":
        message = "a fault was asked for"
        return error(500, "InternalFailure", message, service=service, content_type=content_type)
    return None


def _scope(environ: Environ) -> Scope | None:
    """What the request was signed for, None when it was not signed."""
    signed = environ.get("HTTP_AUTHORIZATION", "")
    if not signed:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        signed = "Credential=" + query.get("X-Amz-Credential", [""])[0]
    match = _SCOPE.search(signed)
    return Scope(*match.groups()) if match else None


def _read_body(environ: Environ) -> bytes | None:
    """The body, left readable for another application; None when it is too large."""
    stream = environ["wsgi.input"]
    length = environ.get("CONTENT_LENGTH")
    if length and (not length.isdigit() or int(length) > MAX_BODY):
        return None
    chunked = not length and environ.get("wsgi.input_terminated")
    body = bytes(stream.read(MAX_BODY + 1 if chunked else int(length or 0)))
    if len(body) > MAX_BODY:
        return None
    environ["wsgi.input"] = BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    return body


def _raw_path(environ: Environ) -> str:
    """The path as it was sent: ARNs in it hold escaped slashes."""
    return str(environ.get("RAW_URI", environ["PATH_INFO"])).partition("?")[0]


def _send(start_response: StartResponse, answer: Answer) -> Iterable[bytes]:
    headers = [*answer.headers.items(), ("Content-Length", str(len(answer.body)))]
    start_response(f"{answer.status} -", headers)
    return [answer.body]
