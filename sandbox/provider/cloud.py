"""boto3 towards the sandbox, and towards nothing else."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

POLL_SECONDS = 0.05
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class NotLoopback(Exception):
    """There is no sandbox to talk to."""


class TookTooLong(Exception):
    """Something did not become what it was to become."""


class Cloud:
    """One region of the sandbox. Raises NotLoopback without one."""

    def __init__(self, region: str) -> None:
        self.region = region
        self.endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        if urlsplit(self.endpoint).hostname not in LOOPBACK:
            raise NotLoopback(
                "this provider speaks to the sandbox only, and AWS_ENDPOINT_URL is "
                f"{self.endpoint or 'not set'}: python -m sandbox up, then "
                'eval "$(python -m sandbox env)"'
            )

    @functools.cache  # noqa: B019 # a Cloud lives as long as the provider
    def client(self, service: str) -> Any:
        """A boto3 client; loading the first takes a second."""
        return _session().client(service, endpoint_url=self.endpoint, region_name=self.region)


def wait(what: str, condition: Callable[[], Any], seconds: float) -> Any:
    """The condition's value once it is true.

    Raises TookTooLong after that many seconds.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TookTooLong(f"{what} took longer than {seconds:.0f} s")
        time.sleep(POLL_SECONDS)
    return value


@functools.cache
def _session() -> Any:
    import boto3  # noqa: PLC0415 # a third of the start-up time, and previews may do without

    return boto3.session.Session()
