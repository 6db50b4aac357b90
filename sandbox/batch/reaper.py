"""Ends the jobs of a sandbox that is no more: a shell that waits for the end of a pipe.

The pipe's other end is held by the sandbox's process alone, so the kernel closes it however that
process dies. Works wherever there is a POSIX shell, and costs nothing per job.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator

_SCRIPT = """
trap '' INT TERM HUP
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) groups="${groups%% "$group" *} ${groups#* "$group" }" ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
if [ $# -gt 0 ]; then
    left=$("$1" ps --all --quiet --filter "label=$2") && [ "$left" ] &&
        "$1" rm --force --volumes $left >/dev/null
fi
"""


class Reaper:
    """`watching` a process group: it is killed if this process dies. `close` ends the shell."""

    def __init__(self, containers: tuple[str, str] | None = None) -> None:
        """`containers` is an engine, and the label of those that it is to remove at the end."""
        self._containers = containers or ()
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def watching(self, group: int) -> Iterator[None]:
        self._tell("+", group)
        try:
            yield
        finally:
            self._tell("-", group)

    def close(self) -> None:
        """Ends the shell, and the groups that are still watched."""
        with self._lock:
            if self._shell:
                assert self._shell.stdin is not None
                self._shell.stdin.close()
                self._shell.wait()
                self._shell = None

    def start(self) -> None:
        """Begins, if it has not: from now on whatever has the label goes with this process."""
        with self._lock:
            self._started()

    def _tell(self, sign: str, group: int) -> None:
        with self._lock:
            stdin = self._started().stdin
            assert stdin is not None
            with contextlib.suppress(BrokenPipeError):  # somebody killed it: the guard remains
                stdin.write(f"{sign} {group}\n".encode())
                stdin.flush()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._shell is None:
            self._shell = subprocess.Popen(
                ["sh", "-c", _SCRIPT, "reaper", *self._containers],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self._shell
