"""Asks an image's registry for its digest and platforms. Speaks HTTP (the standard library's).

The API is Distribution's ("HTTP API V2"), with its token authentication. A password goes to the
registry and to the token server that it names, over TLS or to this machine, and nowhere else: not
where a redirect leads.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import IO, Any

import msgspec

from submit.images.names import ImageName
from submit.images.platforms import (
    INDEX_TYPES,
    MANIFEST_TYPES,
    Found,
    Unreadable,
    read_config,
    read_manifest,
)

TIMEOUT_S = 5.0
MOST_BYTES = 4 * 1024 * 1024
"""Of a manifest; registries take no larger ones (Distribution, "maximum manifest size")."""
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')

Credentials = tuple[str, str]
"""A user and a password."""


class NotFound(Exception):
    """The registry answers, and has no such image."""


class Denied(Exception):
    """The registry does not show the image to who asks so."""


class NoAnswer(Exception):
    """The registry could not be asked, or did not answer the question; its text says why."""


def look_up(image: ImageName, credentials: Callable[[], Credentials | None]) -> Found:
    """The image as the registry has it: two calls at most for one of many platforms, and three
    for one of a single; two more where it wants a token. `credentials` are asked for when they
    are wanted.

    Raises NotFound, Denied and NoAnswer.
    """
    registry = _Registry(image, credentials)
    body = registry.get(
        f"manifests/{image.digest or image.tag}", accept=", ".join(INDEX_TYPES + MANIFEST_TYPES)
    )
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    if image.digest and digest != image.digest:
        raise NoAnswer(f"it answers with another image, {digest}")
    try:
        platforms, config = read_manifest(body)
        if config:
            platforms = read_config(registry.get(f"blobs/{urllib.parse.quote(config, safe=':')}"))
    except Unreadable as err:
        raise NoAnswer(f"its answer can't be read: {err}") from err
    return Found(digest=digest, platforms=platforms)


def list_tags(image: ImageName, credentials: Callable[[], Credentials | None]) -> list[str]:
    """The repository's tags, the first 1,000. Raises NotFound, Denied and NoAnswer."""
    body = _Registry(image, credentials).get("tags/list?n=1000")
    try:
        return msgspec.json.decode(body, type=_Tags).tags or []
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise NoAnswer(f"its answer can't be read: {err}") from err


class _Tags(msgspec.Struct, frozen=True):
    tags: list[str] | None = None


class _Registry:
    """One repository of a registry, and what it takes to be let in."""

    def __init__(self, image: ImageName, credentials: Callable[[], Credentials | None]) -> None:
        scheme = "http" if image.is_local else "https"
        self._base = f"{scheme}://{image.registry}/v2/{image.repository}/"
        self._credentials = credentials
        self._authorization: str | None = None

    def get(self, path: str, accept: str = "*/*") -> bytes:
        """The body at that path. Raises NotFound, Denied and NoAnswer."""
        url = self._base + path
        try:
            return _fetch(url, accept, self._authorization)
        except urllib.error.HTTPError as err:
            if err.code != http.client.UNAUTHORIZED or self._authorization:
                raise _in_words(err) from err
            self._authorization = self._let_in(err.headers.get_all("WWW-Authenticate") or [])
        try:
            return _fetch(url, accept, self._authorization)
        except urllib.error.HTTPError as err:
            raise _in_words(err) from err

    def _let_in(self, challenges: list[str]) -> str:
        """What to put into the header Authorization, by what the registry says that it wants."""
        for challenge in challenges:
            kind, _, rest = challenge.partition(" ")
            if kind.lower() == "basic":
                found = self._credentials()
                if not found:
                    raise Denied("it wants a user and a password")
                return _basic(found)
            if kind.lower() == "bearer":
                return f"Bearer {self._token(dict(_CHALLENGE.findall(rest)))}"
        raise NoAnswer("it wants to know who asks, and does not say how")

    def _token(self, challenge: dict[str, str]) -> str:
        realm = challenge.pop("realm", "")
        parts = urllib.parse.urlsplit(realm)
        if parts.scheme != "https" and not (
            self._base.startswith("http:") and parts.scheme == "http"
        ):
            raise NoAnswer(f"it sends for a token to {realm!r}, which is not safe")
        query: dict[str, str] = {
            key: challenge[key] for key in ("service", "scope") if key in challenge
        }
        found = self._credentials()
        url = f"{realm}?{urllib.parse.urlencode(query)}"
        try:
            body = _fetch(url, "application/json", _basic(found) if found else None)
            answer = msgspec.json.decode(body, type=dict[str, Any])
        except urllib.error.HTTPError as err:
            raise _in_words(err) from err
        except (msgspec.DecodeError, UnicodeDecodeError) as err:
            raise NoAnswer(f"its token can't be read: {err}") from err
        token = answer.get("token") or answer.get("access_token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise NoAnswer("its token can't be read")
        return token


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


def _fetch(url: str, accept: str, authorization: str | None) -> bytes:
    """Raises HTTPError, which a caller reads, and NoAnswer."""
    request = urllib.request.Request(  # noqa: S310 # http and https alone come here
        url, headers={"Accept": accept, "User-Agent": "runfleet"}
    )
    if authorization:
        request.add_header("Authorization", authorization)
    try:
        with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(MOST_BYTES + 1)
    except urllib.error.HTTPError as err:
        err.close()
        raise
    except urllib.error.URLError as err:
        raise NoAnswer(str(err.reason)) from err
    except TimeoutError as err:
        raise NoAnswer(f"no answer within {TIMEOUT_S:.0f} s") from err
    except (OSError, http.client.HTTPException, ValueError) as err:
        raise NoAnswer(f"its answer was cut off ({type(err).__name__})") from err
    if len(body) > MOST_BYTES:
        raise NoAnswer(f"its answer is longer than {MOST_BYTES:,} bytes")
    return body


def _in_words(err: urllib.error.HTTPError) -> Exception:
    if err.code == http.client.NOT_FOUND:
        return NotFound()
    if err.code in {http.client.UNAUTHORIZED, http.client.FORBIDDEN}:
        return Denied(f"it answers {err.code} {err.reason}")
    if err.code == http.client.TOO_MANY_REQUESTS:
        return NoAnswer("it wants fewer questions for a while (429)")
    return NoAnswer(f"it answers {err.code} {err.reason}")


def _basic(credentials: Credentials) -> str:
    return "Basic " + base64.b64encode(":".join(credentials).encode()).decode()
