"""What a build sends to Docker, as a digest: equal files, equal tag. Reads files.

`.dockerignore` is read as Docker does ("Dockerfile reference, .dockerignore file"): a pattern is
Go's filepath.Match with `**`, counts for what lies below, and the last that matches decides.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

TAG_LENGTH = 16
"""Hexadecimal digits: 64 bits, enough for all builds of a team."""


class _Rule(msgspec.Struct, frozen=True):
    pattern: re.Pattern[str]
    keeps: bool


def context_tag(folder: Path, dockerfile: Path, options: Sequence[str] = ()) -> str:
    """A tag that says what is built: the Dockerfile, the options, and each file of the context
    with its name, its content and whether it can be executed. Raises OSError.
    """
    digest = hashlib.sha256()
    for part in (dockerfile.read_bytes(), *(option.encode() for option in options)):
        _add(digest, part)
    for name in iter_context(folder, ignore_rules(folder, dockerfile)):
        path = folder / name
        _add(digest, os.fsencode(name))
        if path.is_symlink():
            _add(digest, b"link " + os.fsencode(path.readlink()))
        else:
            _add(digest, b"x" if path.stat().st_mode & 0o100 else b"-")
            _add(digest, _content(path))
    return digest.hexdigest()[:TAG_LENGTH]


def iter_context(folder: Path, rules: Sequence[_Rule]) -> Iterator[str]:
    """The files of the context in order, as paths from the folder with `/` between."""
    kept = any(rule.keeps for rule in rules)
    for place, folders, files in os.walk(folder):
        below = Path(place).relative_to(folder)
        folders.sort()
        for name in sorted([*files, *(one for one in folders if (Path(place) / one).is_symlink())]):
            path = (below / name).as_posix()
            if not _is_ignored(path, rules):
                yield path
        if not kept:  # else something below an ignored folder may be kept
            folders[:] = [n for n in folders if not _is_ignored((below / n).as_posix(), rules)]


def _content(path: Path) -> bytes:
    """Its digest, read in pieces: a context may hold data sets."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.digest()


def ignore_rules(folder: Path, dockerfile: Path) -> list[_Rule]:
    """Those of `<Dockerfile>.dockerignore`, else of the folder's `.dockerignore`."""
    for path in (Path(f"{dockerfile}.dockerignore"), folder / ".dockerignore"):
        if path.is_file():
            return parse_ignore(path.read_text(encoding="utf-8", errors="surrogateescape"))
    return []


def parse_ignore(text: str) -> list[_Rule]:
    """The rules of a .dockerignore, in their order."""
    rules = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        keeps = line.strip().startswith("!")
        pattern = line.strip().removeprefix("!").strip().strip("/")
        if pattern.removeprefix("./") not in {"", "."}:
            rules.append(_Rule(re.compile(_expression(pattern.removeprefix("./"))), keeps))
    return rules


def _is_ignored(path: str, rules: Sequence[_Rule]) -> bool:
    ignored = False
    for rule in rules:
        if ignored == rule.keeps and rule.pattern.fullmatch(path):
            ignored = not rule.keeps
    return ignored


_SPECIAL = re.compile(r"\*\*/?|\*|\?|\[[^\]]+\]|\\.|.", re.DOTALL)


def _expression(pattern: str) -> str:
    """The regular expression of a pattern: the path itself, or whatever lies below it."""
    parts = [_piece(match[0]) for match in _SPECIAL.finditer(pattern)]
    return f"{''.join(parts)}(?:/.*)?"


def _piece(text: str) -> str:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if text in known:
        return known[text]
    if len(text) > 1 and text[0] == "[":
        inner = text[1:-1].replace("\\", "\\\\")
        return f"[{inner}]"
    return re.escape(text[1:] if text[0] == "\\" and len(text) > 1 else text)


def _add(digest: hashlib._Hash, part: bytes) -> None:
    """With its length, so that no two lists of parts look alike."""
    digest.update(len(part).to_bytes(8, "big") + part)
