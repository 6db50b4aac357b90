"""A sandbox from outside: its control addresses, and the variables that lead to it."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from sandbox.errors import SandboxError

CONTROL = "/_sandbox/"
KEY_HEADER = "X-Sandbox-Key"

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


def control(port: int, key: str, method: str, name: str, body: Any = None) -> Any:
    """Asks the sandbox at that port (its /_sandbox/ addresses).

    Raises SandboxError with its message, or when it does not answer.
    """
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{CONTROL}{name}",
        data=None if body is None else json.dumps(body).encode(),
        headers={KEY_HEADER: key},
        method=method,
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as err:
        with err:
            raise SandboxError(_message(err)) from err
    except (OSError, ValueError) as err:
        raise SandboxError(f"the sandbox at port {port} does not answer") from err


def is_answering(port: int, key: str) -> bool:
    """Whether that sandbox answers at that port."""
    try:
        control(port, key, "GET", "status")
    except SandboxError:
        return False
    return True


def environment(folder: Path, *, port: int, region: str, key: str) -> dict[str, str]:
    """The variables that point boto3, the AWS CLI, Pulumi and submit at the sandbox.

    The AWS files named are never there, so that no profile of the user's leaks in.
    """
    none = str(folder / "no-aws-profile")
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": key,
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


def _message(err: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(err)["message"])
    except (ValueError, KeyError, TypeError):
        return f"the sandbox answered {err.code} {err.reason}"
