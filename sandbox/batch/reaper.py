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
"""


class Reaper:
    """`watching` a process group: it is killed if this process dies. `close` ends the shell."""

    def __init__(self) -> None:
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

    def _tell(self, sign: str, group: int) -> None:
        with self._lock:
            if self._shell is None:
                self._shell = subprocess.Popen(
                    ["sh", "-c", _SCRIPT, "reaper"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
            assert self._shell.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # somebody killed it: the guard remains
                self._shell.stdin.write(f"{sign} {group}\n".encode())
                self._shell.stdin.flush()
