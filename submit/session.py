"""The edge of the program: who asks, where and when, and the ledger and backends they use.

Looks at the environment and the clock; opens a ledger or a backend when it is first needed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from submit.fleet import LOCAL
from submit.home import home

if TYPE_CHECKING:
    from submit.backends import Backend
    from submit.fleet import Fleet
    from submit.ledger import Ledger
    from submit.records import Scope


class Clock(Protocol):
    """What is needed of time; the module `time` is one."""

    def time(self) -> float:
        """Seconds since 1970."""

    def sleep(self, seconds: float, /) -> None:
        """Waits."""


class Session:
    """What the verbs of submit.api are given. Usable as a context manager.

    `fleet` names a file with the fleet document (`-`: standard input), `stack` a Pulumi stack;
    without them the environment is asked, then the stack that is selected in `cwd`.
    """

    def __init__(
        self,
        *,
        fleet: str | None = None,
        stack: str | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        clock: Clock = time,
        connect: Callable[[Scope], Backend] | None = None,
    ) -> None:
        self.environ = os.environ if environ is None else environ
        self.cwd = cwd or Path.cwd()
        self.fleet = fleet or self.environ.get("RUNFLEET_FLEET") or None
        # Pulumi itself puts PULUMI_STACK above the selection.
        self.stack = stack or self.environ.get("RUNFLEET_STACK") or self.environ.get("PULUMI_STACK")
        self.loaded: Fleet | None = None
        self.clock = clock
        self._connect = connect
        self._backends: dict[Scope, Backend] = {}
        self._ledger: Ledger | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ledger:
            self._ledger.close()
            self._ledger = None
        for backend in self._backends.values():
            backend.close()
        self._backends = {}

    @property
    def home(self) -> Path:
        """Where runfleet keeps what it must remember."""
        return home(self.environ)

    @property
    def user(self) -> str:
        """Whose experiments these are."""
        name = self.environ.get("USER") or self.environ.get("LOGNAME")
        if name:
            return name
        import pwd  # noqa: PLC0415 # rarely: a container or a service

        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            return str(os.getuid())

    def ledger(self) -> Ledger:
        """The ledger."""
        if self._ledger is None:
            from submit.ledger import Ledger  # noqa: PLC0415 # a dry run does without SQLite
            from submit.shared_file import shared_path  # noqa: PLC0415 # likewise
            from submit.turns import Turns  # noqa: PLC0415 # likewise

            self._ledger = Ledger(self.home, Turns(shared_path(self.environ)))
        return self._ledger

    def backend(self, scope: Scope) -> Backend:
        """Where the jobs of that account and region go."""
        if scope not in self._backends:
            self._backends[scope] = (self._connect or self._find)(scope)
        return self._backends[scope]

    def _find(self, scope: Scope) -> Backend:
        if scope.account != LOCAL:
            return _aws(scope)
        from submit.backends.local import LocalBackend  # noqa: PLC0415 # a dry run does without

        return LocalBackend(self.home, scope.region, self.environ)


def _aws(scope: Scope) -> Backend:
    from submit.backends.aws import AwsBackend  # noqa: PLC0415 # a dry run does without AWS

    return AwsBackend(scope.region)
