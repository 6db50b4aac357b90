"""Who asks from a browser, and what they are shown: the status page. Reads only."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import msgspec

from sandbox import page, views
from sandbox.answers import Answer
from sandbox.batch.service import Batch
from sandbox.conditions import Conditions
from sandbox.faults import Faults
from sandbox.listening import Environ

NEWEST_FAULTS = 50
_HOSTS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?")


def is_from_here(environ: Environ) -> bool:
    """Whether the sandbox was asked under a loopback name, and not by a web page."""
    return bool(_HOSTS.fullmatch(environ.get("HTTP_HOST", ""))) and "HTTP_ORIGIN" not in environ


def is_a_visit(environ: Environ) -> bool:
    """Whether a browser asks, not a client of AWS: those sign."""
    path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
    signed = environ.get("HTTP_AUTHORIZATION") or "X-Amz-Credential" in query
    return (
        environ["REQUEST_METHOD"] == "GET"
        and not signed
        and (path == "/" or path.startswith("/job/"))
    )


class StatusPage:
    """For whoever has the key: in the address once, and in a cookie then."""

    def __init__(
        self,
        key: str,
        faults: Faults,
        conditions: Conditions,
        *,
        status: Callable[[], dict[str, Any]],
        batches: Callable[[], list[Batch]],
    ) -> None:
        self._key = key
        self._faults = faults
        self._conditions = conditions
        self._status = status
        self._batches = batches

    def answer(self, environ: Environ) -> Answer:
        """Answers a visit."""
        if not is_from_here(environ):
            return page.refusal(403, "loopback clients only")
        cookie = f"sandbox-{environ['SERVER_PORT']}"
        given = parse_qs(environ.get("QUERY_STRING", "")).get("key", [""])[0]
        if self._is_key(given):
            keep = f"{cookie}={given}; HttpOnly; SameSite=Strict; Path=/"
            return Answer(303, b"", {"Location": "/", "Set-Cookie": keep})
        pairs = (pair.strip().partition("=") for pair in environ.get("HTTP_COOKIE", "").split(";"))
        if not self._is_key(next((value for name, _, value in pairs if name == cookie), "")):
            return page.refusal(403, "Open the address that this prints: python -m sandbox page")
        if environ["PATH_INFO"] == "/":
            return self._overview()
        job_id = environ["PATH_INFO"].removeprefix("/job/")
        found = (views.job(batch, job_id) for batch in self._batches())
        shown = next((one for one in found if one), None)
        return page.job(*shown) if shown else page.refusal(404, f"there is no job {job_id}")

    def _is_key(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._key.encode())

    def _overview(self) -> Answer:
        facts = self._status()
        heading = (
            f"{facts['region']}, up for {facts['uptime']:.0f} s, {len(facts['running'])} running in "
            f"{facts['slots']} slots, clock {facts['speed']:g} times as fast as usual"
        )
        log = self._faults.log()
        struck = [(n + 1, *_fault_row(fault)) for n, fault in enumerate(log["struck"])]
        lasting = msgspec.to_builtins(self._conditions.now).items()
        return page.overview(
            heading,
            [
                *(table for batch in self._batches() for table in views.tables(batch)),
                page.Table("Faults", ("number", "kind", "what"), reversed(struck[-NEWEST_FAULTS:])),
                page.Table("Waiting faults", ("kind", "what"), map(_fault_row, log["waiting"])),
                page.Table("Conditions", ("name", "value"), [(k, str(v)) for k, v in lasting]),
            ],
        )


def _fault_row(fault: dict[str, Any]) -> tuple[str, str]:
    return fault["kind"], ", ".join(f"{k} {v}" for k, v in fault.items() if k != "kind")
