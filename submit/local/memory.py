"""How much memory a run's processes have. Looks at /proc.

A watch rather than a limit of the kernel's: a limit on address space would break CUDA and
memory-mapped data, and a control group of one's own is not to be had everywhere.
"""

from __future__ import annotations

import os
from pathlib import Path

_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") >> 10


def exceeds(pid: int, limit_mib: int) -> bool:
    """Whether a process and its descendants together have more than so much memory.

    What they share counts once, but is looked at only when the plain sum is above the limit.
    """
    pids = _family(pid)
    if sum(map(_resident_kib, pids)) >> 10 <= limit_mib:
        return False
    return sum(map(_proportional_kib, pids)) >> 10 > limit_mib


def _family(pid: int) -> list[int]:
    found = [pid]
    for one in found:  # grows while it is walked
        for thread in _list(Path(f"/proc/{one}/task")):
            found += map(int, _read(Path(f"/proc/{one}/task/{thread}/children")).split())
    return found


def _resident_kib(pid: int) -> int:
    fields = _read(Path(f"/proc/{pid}/statm")).split()
    return int(fields[1]) * _PAGE_KIB if fields else 0


def _proportional_kib(pid: int) -> int:
    for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return _resident_kib(pid)


def _list(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 # names are enough
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
