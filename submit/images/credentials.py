"""The password that Docker keeps for a registry. Reads its file, and asks its helpers.

Docker's config.json: `auths` has them readable, `credsStore` and `credHelpers` name a program
`docker-credential-NAME` that is told the registry on its standard input.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submit.images.names import DOCKER_HUB
from submit.images.registry import TOKEN_USER, Credentials

HUB_KEY = "https://index.docker.io/v1/"
"""Under which Docker keeps the password for Docker Hub."""
HELPER_TIMEOUT_S = 10


def docker_credentials(registry: str, environ: Mapping[str, str]) -> Credentials | None:
    """User and password as `docker login` left them, if it did; None too where they can't be
    read, since most images want none.
    """
    folder = environ.get("DOCKER_CONFIG") or Path(environ.get("HOME") or "~") / ".docker"
    try:
        config = json.loads((Path(folder).expanduser() / "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(config, dict):
        return None
    key = HUB_KEY if registry == DOCKER_HUB else registry
    helper = _member(config, "credHelpers").get(key) or config.get("credsStore")
    if helper:
        return _ask_helper(str(helper), key)
    for name in (key, f"https://{key}"):
        entry = _member(_member(config, "auths"), name)
        if entry:
            return _decode(entry)
    return None


def _ask_helper(helper: str, key: str) -> Credentials | None:
    if not re.fullmatch(r"[A-Za-z0-9._-]+", helper):
        return None
    try:
        done = subprocess.run(
            [f"docker-credential-{helper}", "get"],
            input=key,
            capture_output=True,
            check=True,
            encoding="utf-8",
            timeout=HELPER_TIMEOUT_S,
        )
        answer = json.loads(done.stdout)
        return str(answer["Username"]), str(answer["Secret"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None


def _decode(entry: Mapping[str, Any]) -> Credentials | None:
    if isinstance(entry.get("identitytoken"), str) and entry["identitytoken"]:
        return TOKEN_USER, entry["identitytoken"]  # beside it stands a user without a password
    try:
        user, colon, password = base64.b64decode(str(entry["auth"])).decode().partition(":")
    except (KeyError, ValueError):
        return None
    return (user, password) if colon else None


def _member(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}
