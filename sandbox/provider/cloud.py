"""boto3 towards the sandbox, and towards nothing else."""

from __future__ import annotations

import functools
import itertools
import os
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

POLL_SECONDS = 0.05
WAIT_SECONDS = 120.0
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
UNIQUE_HEX = 26
"""Characters that the provider puts behind a namePrefix."""
_count = itertools.count()


class NotLoopback(Exception):
    """There is no sandbox to talk to."""


class Failed(Exception):
    """Something did not become what it was to become."""


class Cloud:
    """One region of the sandbox. Raises NotLoopback without one."""

    def __init__(self, region: str, stopped: threading.Event) -> None:
        """Once `stopped` is set, nothing is waited for any more."""
        self.region = region
        self._stopped = stopped
        self._making = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        if urlsplit(self._endpoint).hostname not in LOOPBACK:
            raise NotLoopback(
                "this provider speaks to the sandbox only, and AWS_ENDPOINT_URL is "
                f"{self._endpoint or 'not set'}: python -m sandbox up, then "
                'eval "$(python -m sandbox env)"'
            )

    def client(self, service: str) -> Any:
        """A boto3 client; loading the first takes a second."""
        with self._making:  # boto3 must not make two at a time
            if service not in self._clients:
                self._clients[service] = self._new_client(service)
            return self._clients[service]

    def _new_client(self, service: str) -> Any:
        from botocore.config import Config  # noqa: PLC0415 # see _session

        return self._session.client(
            service,
            endpoint_url=self._endpoint,
            region_name=self.region,
            config=Config(proxies={}),  # loopback is never behind the user's proxy
        )

    @functools.cached_property
    def _session(self) -> Any:
        import boto3  # noqa: PLC0415 # a third of the start-up time, and previews may do without

        return boto3.session.Session()

    @functools.cached_property
    def account(self) -> str:
        return str(self.client("sts").get_caller_identity()["Account"])

    @functools.cached_property
    def partition(self) -> dict[str, Any]:
        """What botocore knows of the region's partition: id, outputs, regions."""
        name = self._session.get_partition_for_region(self.region)
        known = self._session._session.get_data("partitions")["partitions"]  # noqa: SLF001 # boto3 shows no other way
        return next(dict(found) for found in known if found["id"] == name)

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition['id']}:{service}:{self.region}:{self.account}:{resource}"

    def wait(self, what: str, condition: Callable[[], Any]) -> Any:
        """The condition's value once it is true.

        Raises Failed after WAIT_SECONDS, or when told to stop.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise Failed(f"{what} took longer than {WAIT_SECONDS:.0f} s")
            if self._stopped.wait(POLL_SECONDS):
                raise Failed(f"stopped while {what}")
        return value


def unique_suffix() -> str:
    """Later ones sort behind earlier ones, and no two are the same."""
    return f"{time.time_ns():018x}{next(_count) % 16**8:08x}"
