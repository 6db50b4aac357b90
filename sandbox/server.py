"""One loopback port for all of AWS that runfleet uses: moto's services and our own Batch.

Speaks WSGI. Control lies under /_sandbox/. Only requests that name a loopback host are
answered, so that no web page can reach it through a name of its own.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from sandbox.batch.account import Account
from sandbox.batch.errors import ClientError
from sandbox.batch.service import Answer, Batch
from sandbox.faults import Fault, Faults

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]

SERVICES = frozenset({"ec2", "ecr", "iam", "logs", "s3", "secretsmanager", "ssm", "sts"})
"""What moto answers for; Batch is our own."""
MAX_BODY = 64 * 1024 * 1024
_HOSTS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?")
_SCOPE = re.compile(r"Credential=[^/]+/[0-9]{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")


class Sandbox:
    """The whole sandbox as a WSGI application. `close` ends all jobs."""

    def __init__(
        self, *, region: str, slots: int, work_dir: Path, image_root: Path, grace_s: float
    ) -> None:
        os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
        self.region = region
        self.faults = Faults()
        self._options: dict[str, Any] = {
            "slots": slots,
            "work_dir": work_dir,
            "image_root": image_root,
            "grace_s": grace_s,
        }
        self._batches: dict[str, Batch] = {}
        self._lock = threading.Lock()
        self._moto: App | None = None
        self._started = time.time()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if not _HOSTS.fullmatch(environ.get("HTTP_HOST", "")) or "HTTP_ORIGIN" in environ:
            return _send(start_response, _error(403, "AccessDenied", "loopback clients only"))
        path = environ["PATH_INFO"]
        if path.startswith("/_sandbox/"):
            return _send(start_response, self._control(environ, path))
        scope = _scope(environ)
        if scope is None:
            message = "Request is missing Authentication Token"
            return _send(start_response, _error(403, "MissingAuthenticationToken", message))
        region, service = scope
        if service != "batch" and service not in SERVICES:
            message = f"this sandbox does not have the service {service}"
            return _send(start_response, _error(501, "NotImplemented", message))
        return self._serve(environ, start_response, region, service)

    def batch(self, region: str | None = None) -> Batch:
        """The Batch of a region, started when it is first used."""
        region = region or self.region
        with self._lock:
            if region not in self._batches:
                self._batches[region] = Batch(Account(region), **self._options)
                self._batches[region].scheduler.start()
            return self._batches[region]

    def close(self) -> None:
        """Ends all jobs; returns when their processes are gone."""
        for batch in self._batches.values():
            batch.scheduler.close()

    def warm_up(self) -> None:
        """Loads moto's slow parts, so that the first call does not wait for them."""
        from moto.ec2.models import ec2_backends  # noqa: PLC0415 # takes a second
        from moto.iam.models import iam_backends  # noqa: PLC0415 # takes a second

        account = Account(self.region).account_id
        _ = ec2_backends[account][self.region], iam_backends[account]["aws"]
        self._moto_app()

    def _serve(
        self, environ: Environ, start_response: StartResponse, region: str, service: str
    ) -> Iterable[bytes]:
        body = _read_body(environ)
        if body is None:
            return _send(start_response, _error(413, "RequestTooLarge", "the request is too large"))
        operation = self._operation(environ, service, body)
        fault = self.faults.meet(service, operation)
        if fault and fault.kind == "latency":
            time.sleep(fault.seconds)
            fault = None
        if fault and fault.kind == "reset":
            return _hang_up(environ, start_response)
        if fault and fault.kind == "throttle":
            return _send(start_response, _throttled(service))
        if fault and fault.kind == "error":
            return _send(start_response, _error(500, "InternalFailure", "a fault was asked for"))
        if service == "batch":
            answer = self.batch(region).handle(
                environ["REQUEST_METHOD"],
                _raw_path(environ),
                parse_qs(environ.get("QUERY_STRING", "")),
                body,
            )
            if fault:
                return _hang_up(environ, start_response)
            return _send(start_response, answer)
        answered = self._moto_app()(environ, (lambda *_: None) if fault else start_response)
        return _hang_up(environ, start_response) if fault else answered

    def _operation(self, environ: Environ, service: str, body: bytes) -> str:
        if service == "batch":
            try:
                return self.batch().operation_name(environ["REQUEST_METHOD"], _raw_path(environ))
            except ClientError:
                return "Unknown"
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if target:
            return str(target).rpartition(".")[2]
        action = parse_qs(body.decode("latin-1")).get("Action") if service != "s3" else None
        return action[0] if action else str(environ["REQUEST_METHOD"])

    def _moto_app(self) -> App:
        with self._lock:
            if self._moto is None:
                from moto.moto_server.werkzeug_app import (  # noqa: PLC0415 # takes half a second
                    DomainDispatcherApplication,
                    create_backend_app,
                )

                self._moto = DomainDispatcherApplication(create_backend_app)
            return self._moto

    def _control(self, environ: Environ, path: str) -> Answer:
        method, name = environ["REQUEST_METHOD"], path.removeprefix("/_sandbox/")
        body = _read_body(environ) or b""
        if (method, name) == ("GET", "status"):
            return _json(self._status())
        if (method, name) == ("GET", "calls"):
            return _json(self.faults.calls())
        if (method, name) == ("GET", "faults"):
            return _json(self.faults.log())
        if (method, name) == ("DELETE", "faults"):
            self.faults.clear()
            return _json({})
        if (method, name) == ("POST", "faults"):
            try:
                self.faults.add(msgspec.json.decode(body, type=Fault))
            except ValueError as err:
                return _json({"message": str(err)}, 400)
            return _json({})
        if (method, name) == ("POST", "interrupt"):
            return self._interrupt(body)
        return _json({"message": f"the sandbox has no {method} {path}"}, 404)

    def _interrupt(self, body: bytes) -> Answer:
        try:
            job_id = str(json.loads(body)["jobId"])
        except (ValueError, KeyError, TypeError):
            return _json({"message": 'send {"jobId": "…"}'}, 400)
        for batch in self._batches.values():
            instance = batch.scheduler.interrupt(job_id)
            if instance:
                self.faults.note("interrupt", job=job_id, instance=instance)
                return _json({"instance": instance})
        return _json({"message": f"the job {job_id} is not running"}, 404)

    def _status(self) -> dict[str, Any]:
        running = {r: batch.scheduler.running_jobs() for r, batch in self._batches.items()}
        return {
            "region": self.region,
            "uptime": round(time.time() - self._started, 1),
            "slots": self._options["slots"],
            "running": [job for jobs in running.values() for job in jobs],
            "jobs": sum(len(batch.store.jobs) for batch in self._batches.values()),
        }


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open: clients make many small calls
    disable_nagle_algorithm = True

    def log_request(self, *_: Any) -> None:
        """Calls are counted, not logged: they may hold secrets."""

    def address_string(self) -> str:
        return str(self.client_address[0])


def listen(app: App, port: int = 0) -> BaseWSGIServer:
    """A server on that loopback port (0: any free one); `serve_forever` answers.

    Raises OSError when the port is taken.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(256)
        return make_server(
            "127.0.0.1",
            listening.getsockname()[1],
            app,
            threaded=True,
            request_handler=_Handler,
            fd=listening.fileno(),
        )
    finally:
        listening.close()  # make_server has a duplicate


def _scope(environ: Environ) -> tuple[str, str] | None:
    """Region and service that the request was signed for, None when it was not signed."""
    signed = environ.get("HTTP_AUTHORIZATION", "")
    if not signed:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        signed = "Credential=" + query.get("X-Amz-Credential", [""])[0]
    match = _SCOPE.search(signed)
    return (match[1], match[2]) if match else None


def _read_body(environ: Environ) -> bytes | None:
    """The body, left readable for another application; None when it is too large."""
    stream = environ["wsgi.input"]
    length = environ.get("CONTENT_LENGTH")
    if length and (not length.isdigit() or int(length) > MAX_BODY):
        return None
    limit = int(length) if length else (MAX_BODY if environ.get("wsgi.input_terminated") else 0)
    body = bytes(stream.read(limit))
    environ["wsgi.input"] = BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    return body


def _raw_path(environ: Environ) -> str:
    """The path as it was sent: ARNs in it hold escaped slashes."""
    return str(environ.get("RAW_URI", environ["PATH_INFO"])).partition("?")[0]


def _hang_up(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return _send(start_response, Answer(200, b"", {}))


def _throttled(service: str) -> Answer:
    if service == "batch":
        return _error(429, "TooManyRequestsException", "Too Many Requests")
    return _error(400, "ThrottlingException", "Rate exceeded")


def _error(status: int, code: str, message: str) -> Answer:
    """An error that clients of any protocol of AWS's can at least show."""
    headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-errortype": code}
    body = json.dumps({"__type": code, "message": message}).encode()
    return Answer(status, body, headers)


def _json(value: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


def _send(start_response: StartResponse, answer: Answer) -> Iterable[bytes]:
    headers = [*answer.headers.items(), ("Content-Length", str(len(answer.body)))]
    start_response(f"{answer.status} -", headers)
    return [answer.body]
