"""Fetches small documents from registries. Speaks HTTP (the standard library's).

A password goes over TLS or to this machine, and nowhere else: not where a redirect leads.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import IO

TIMEOUT_S = 5.0
"""For each piece of an answer."""
PATIENCE_S = 20.0
"""For all of them: a server may send few letters at a time for ever."""
MOST_BYTES = 4 * 1024 * 1024
"""Of a manifest; registries take no larger ones (Distribution, "maximum manifest size")."""
_PIECE = 1 << 16


class NotFound(Exception):
    """The registry answers, and has no such image."""


class Denied(Exception):
    """The registry does not show the image to who asks so."""


class NoAnswer(Exception):
    """The registry could not be asked, or did not answer the question; its text says why."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Leaves the password behind when another place is to be asked, and TLS never."""

    def redirect_request(  # as the standard library has it
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        further = super().redirect_request(req, fp, code, msg, headers, newurl)
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if after.scheme not in {"https", before.scheme}:
            raise NoAnswer(f"it leads on to {newurl.partition('?')[0]}, which is not safe")
        if further and before.netloc != after.netloc:
            further.remove_header("Authorization")
        return further


_OPENER = urllib.request.build_opener(_Redirects)
_DIRECT = urllib.request.build_opener(_Redirects, urllib.request.ProxyHandler({}))
"""Without a proxy: what is plain HTTP is on this machine, and stays there."""


def fetch(
    url: str, *, accept: str = "*/*", authorization: str | None = None, form: bytes | None = None
) -> bytes:
    """The answer's body; `form` is posted. Raises HTTPError, closed, and NoAnswer."""
    request = urllib.request.Request(  # noqa: S310 # http and https alone come here
        url, form, headers={"Accept": accept, "User-Agent": "runfleet"}
    )
    if authorization:
        request.add_header("Authorization", authorization)
    opener = _DIRECT if url.startswith("http:") else _OPENER
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return _read(answer)
    except urllib.error.HTTPError as err:
        err.close()
        raise
    except urllib.error.URLError as err:
        raise NoAnswer(str(err.reason)) from err
    except TimeoutError as err:
        raise NoAnswer(f"no answer within {TIMEOUT_S:.0f} s") from err
    except (OSError, http.client.HTTPException, ValueError) as err:
        raise NoAnswer(f"its answer was cut off ({type(err).__name__})") from err


def in_words(err: urllib.error.HTTPError) -> Exception:
    """What to raise for that answer."""
    if err.code == http.client.NOT_FOUND:
        return NotFound()
    if err.code in {http.client.UNAUTHORIZED, http.client.FORBIDDEN}:
        return Denied(f"it answers {err.code} {err.reason}")
    if err.code == http.client.TOO_MANY_REQUESTS:
        wait = (err.headers.get("Retry-After") or "").strip()
        until = f": again in {wait} s" if wait.isdecimal() else ""
        return NoAnswer(f"it wants fewer questions for a while (429{until})")
    return NoAnswer(f"it answers {err.code} {err.reason}")


def _read(answer: http.client.HTTPResponse) -> bytes:
    ends = time.monotonic() + PATIENCE_S
    body = b""
    while piece := answer.read1(_PIECE):
        body += piece
        if len(body) > MOST_BYTES:
            raise NoAnswer(f"its answer is longer than {MOST_BYTES:,} bytes")
        if time.monotonic() > ends:
            raise NoAnswer(f"its answer has not ended within {PATIENCE_S:.0f} s")
    if answer.length:
        raise NoAnswer(f"its answer was cut off, {answer.length:,} bytes before its end")
    return body
