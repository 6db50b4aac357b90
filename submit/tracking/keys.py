"""The key of Weights & Biases: given, in the environment, or in netrc. Reads files.

In the order in which wandb itself looks. The key is in no message.
"""

from __future__ import annotations

import netrc
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from submit.errors import Refused, WrongUse

DEFAULT_BASE_URL = "https://api.wandb.ai"
PUBLIC_HOSTS = ("api.wandb.ai", "api.forge.coreweave.com")
"""Names of the public server: netrc may have either, by the version of wandb that wrote it."""
OTHERS = 0o077
"""Rights of group and others to a file."""
_SHORTEST = 40
"""Letters of a key, but for a prefix that servers of one's own put before it."""


def find_key(given: str | None, environ: Mapping[str, str]) -> str | None:
    """The key: `given`, else WANDB_API_KEY, else netrc's for the host of WANDB_BASE_URL.

    Raises WrongUse for one that can't be a key, Refused for a netrc that others may read, or
    that can't be read.
    """
    for source, key in (
        ("--wandb-key", given),
        ("WANDB_API_KEY", environ.get("WANDB_API_KEY")),
    ):
        if key:
            return checked_key(key, source)
    path = _netrc_path(environ)
    key = _netrc_key(path, base_url(environ)) if path else None
    return checked_key(key, str(path)) if key else None


def base_url(environ: Mapping[str, str]) -> str:
    """W&B's server: WANDB_BASE_URL, or the public one."""
    return (environ.get("WANDB_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")


def checked_key(key: str, source: str) -> str:
    """The key. Raises WrongUse for what W&B would not take, without showing it."""
    problem = ""
    if not re.fullmatch(r"[\w.-]+", key, re.ASCII):
        problem = "holds more than letters, digits, -, _ and ."
    elif len(key.partition("-")[2] or key) < _SHORTEST:
        problem = f"has {len(key)} letters, fewer than the {_SHORTEST} of a key"
    if problem:
        raise WrongUse(
            "wandb-key",
            f"{source} is no key of Weights & Biases: it {problem}",
            "copy it from https://wandb.ai/authorize",
        )
    return key


def _netrc_path(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("NETRC")
    home = Path(environ.get("HOME") or "~").expanduser()
    candidates = [Path(named).expanduser()] if named else [home / ".netrc", home / "_netrc"]
    return next((path for path in candidates if path.exists()), None)


def _netrc_key(path: Path, url: str) -> str | None:
    """The password of the server's machine; others' entries are of no interest."""
    try:
        known = netrc.netrc(path)
        status = path.stat()
    except netrc.NetrcParseError as err:
        # Its own words quote what it stumbled over, which may be a password.
        raise Refused(
            "netrc",
            f"{path} is no netrc file that can be read, up to line {err.lineno or 1}",
            "export WANDB_API_KEY=…",
        ) from None
    except (OSError, UnicodeDecodeError) as err:
        raise Refused(
            "netrc",
            f"{path} can't be read: {getattr(err, 'strerror', None) or 'it is no UTF-8 text'}",
            "export WANDB_API_KEY=…",
        ) from err
    host = urlsplit(url).netloc
    names = PUBLIC_HOSTS if host in PUBLIC_HOSTS else (host,)
    # Not `default`: it is no key of W&B's.
    found = next((known.hosts[name] for name in names if name in known.hosts), None)
    if not found or not found[2]:
        return None
    if status.st_uid not in {os.getuid(), 0} or status.st_mode & OTHERS:
        raise Refused(
            "netrc-rights",
            f"{path} holds a key of Weights & Biases, and others than you may read it "
            f"(mode {status.st_mode & 0o777:03o})",
            f"chmod 600 {path}",
        )
    return found[2]
