"""Asks an image's registry for its digest and platforms. Speaks HTTP, by submit.images.fetching.

The API is Distribution's ("HTTP API V2"), with its token authentication. A password goes to the
registry and to the token server that it names.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import urllib.error
import urllib.parse
from collections.abc import Callable
from typing import Any

import msgspec

from submit.images.challenges import parse_challenges
from submit.images.fetching import Denied, NoAnswer, NotFound, fetch, in_words
from submit.images.names import ImageName
from submit.images.platforms import (
    INDEX_TYPES,
    MANIFEST_TYPES,
    Found,
    Kind,
    Unreadable,
    platforms_of,
)

Credentials = tuple[str, str]
"""A user and a password."""
TOKEN_USER = "<token>"  # noqa: S105 # no password: what Docker calls it
"""In place of a user: the password is a token that buys others (OAuth 2.0, "refresh token")."""
_TYPES = ", ".join(INDEX_TYPES + MANIFEST_TYPES)


def look_up(image: ImageName, credentials: Callable[[], Credentials | None]) -> Found:
    """The image as the registry has it: one call for one of many platforms, and two for one of a
    single; two more where it wants a token, and two for each image of which an index does not
    tell the platform. `credentials` are asked for when they are wanted.

    Raises NotFound, Denied, NoAnswer, and NoImage for what is none.
    """
    registry = _Registry(image, credentials)

    def ask(kind: Kind, digest: str) -> bytes | None:
        path = f"{kind}/{urllib.parse.quote(digest, safe=':')}"
        try:
            return registry.get(path, accept=_TYPES if kind == "manifests" else "*/*")
        except NotFound:
            return None  # a copy of an index need not have all of its images

    body = registry.get(f"manifests/{image.digest or image.tag}", accept=_TYPES)
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    if image.digest and digest != image.digest:
        raise NoAnswer(f"it answers with another image, {digest}")
    try:
        platforms = platforms_of(body, ask)
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
            return fetch(url, accept=accept, authorization=self._authorization)
        except urllib.error.HTTPError as err:
            if err.code != http.client.UNAUTHORIZED or self._authorization:
                raise in_words(err) from err
            self._authorization = self._let_in(err.headers.get_all("WWW-Authenticate") or [])
        try:
            return fetch(url, accept=accept, authorization=self._authorization)
        except urllib.error.HTTPError as err:
            raise in_words(err) from err

    def _let_in(self, headers: list[str]) -> str:
        """What to put into the header Authorization, by what the registry says that it wants: a
        token rather than the password itself.
        """
        ways = {one.scheme: one.says for one in reversed(parse_challenges(headers))}
        if "bearer" in ways:
            return f"Bearer {self._token(ways['bearer'])}"
        if "basic" in ways:
            found = self._credentials()
            if not found or found[0] == TOKEN_USER:
                raise Denied("it wants a user and a password")
            return _basic(found)
        raise NoAnswer("it wants to know who asks, and does not say how")

    def _token(self, says: dict[str, str]) -> str:
        realm = says.get("realm", "")
        parts = urllib.parse.urlsplit(realm)
        if parts.scheme != "https" and not (
            self._base.startswith("http:") and parts.scheme == "http"
        ):
            raise NoAnswer(f"it sends for a token to {realm!r}, which is not safe")
        wanted: dict[str, str] = {name: says[name] for name in ("service", "scope") if name in says}
        found = self._credentials()
        try:
            answer = msgspec.json.decode(_buy(realm, wanted, found), type=dict[str, Any])
        except urllib.error.HTTPError as err:
            raise in_words(err) from err
        except (msgspec.DecodeError, UnicodeDecodeError) as err:
            raise NoAnswer(f"its token can't be read: {err}") from err
        token = answer.get("token") or answer.get("access_token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise NoAnswer("its token can't be read")
        return token


def _buy(realm: str, wanted: dict[str, str], credentials: Credentials | None) -> bytes:
    """What the token server answers (Distribution, "Token Authentication Specification", and
    for who has a token already its "OAuth2 Token Authentication").
    """
    if credentials and credentials[0] == TOKEN_USER:
        form = {"grant_type": "refresh_token", "client_id": "runfleet", **wanted}
        form["refresh_token"] = credentials[1]
        body = urllib.parse.urlencode(form).encode()
        return fetch(realm, accept="application/json", form=body)
    joint = "&" if urllib.parse.urlsplit(realm).query else "?"
    return fetch(
        f"{realm}{joint}{urllib.parse.urlencode(wanted)}",
        accept="application/json",
        authorization=_basic(credentials) if credentials else None,
    )


def _basic(credentials: Credentials) -> str:
    return "Basic " + base64.b64encode(":".join(credentials).encode()).decode()
