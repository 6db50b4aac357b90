"""Ends jobs that use more memory than they asked for, as a container's limit does. Speaks psutil.

Linux counts a page once for each process that shares it; what is shared is counted once here, as a
container's limit counts (proportional set size), where the plain sum is above the limit.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable

import psutil

from sandbox.batch.attempts import OUT_OF_MEMORY
from sandbox.batch.sequence import Part

EVERY_SECONDS = 0.25
_MIB = 1024 * 1024


class MemoryWatch:
    """Looks at the jobs that run, by the id of their process group, a few times a second."""

    def __init__(self, running: Callable[[], dict[int, Part]]) -> None:
        self._running = running
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="memory-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._stopped.wait(EVERY_SECONDS):
            running = self._running()
            if not running:
                continue
            for session, processes in _by_session(set(running)).items():
                limit = running[session].memory_mib * _MIB
                if _resident(processes) > limit and _shared_once(processes) > limit:
                    _kill(session, running[session])


def _by_session(sessions: set[int]) -> dict[int, list[psutil.Process]]:
    found: dict[int, list[psutil.Process]] = defaultdict(list)
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            session = os.getsid(pid)
            if session in sessions:
                found[session].append(psutil.Process(pid))
    return found


def _resident(processes: list[psutil.Process]) -> int:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def _shared_once(processes: list[psutil.Process]) -> int:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            full = process.memory_full_info()
            total += getattr(full, "pss", full.uss)
    return total


def _kill(session: int, part: Part) -> None:
    part.reasons.append(OUT_OF_MEMORY)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    part.stop.set()
