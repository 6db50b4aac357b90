"""Takes a word out of this process's arguments, as `ps` shows them. Writes its own memory."""

from __future__ import annotations

from pathlib import Path

_ARG_START, _ARG_END = 47, 48
"""Places in /proc/self/stat of where the arguments begin and end (proc(5), fields 48 and 49)."""


def hide_argument(word: str) -> None:
    """`ps` shows x's in its place from now on; nothing happens where the system has no /proc.

    Python has its own copy of the arguments, which stays as it is.
    """
    sought = word.encode("utf-8", "surrogateescape")
    if not sought:
        return
    try:
        # The process's name, in brackets, may hold spaces: the fields behind it are counted.
        fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
        after = fields.rpartition(")")[2].split()
        start, end = (int(after[place - 2]) for place in (_ARG_START, _ARG_END))
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            arguments = memory.read(end - start)
            at = arguments.find(sought)
            while at >= 0:
                memory.seek(start + at)
                memory.write(b"x" * len(sought))
                at = arguments.find(sought, at + len(sought))
    except (OSError, ValueError, IndexError):
        return  # an older or another system: the key was visible for a moment, as typed
