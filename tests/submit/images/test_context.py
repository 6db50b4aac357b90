"""submit.images.context: equal files, equal tag; .dockerignore as Docker reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from submit.images.context import context_tag, ignore_rules, iter_context, parse_ignore

FILES = (".dockerignore", "Dockerfile", "a.py", "data/big.bin", "data/keep.txt", "x/y/z.pyc")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        path = tmp_path / "context" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name if name != ".dockerignore" else "")
    return tmp_path / "context"


def tag(folder: Path, *options: str) -> str:
    return context_tag(folder, folder / "Dockerfile", options)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", FILES),
        ("# data\n\n  \n", FILES),
        ("data", (".dockerignore", "Dockerfile", "a.py", "x/y/z.pyc")),
        ("/data/\n", (".dockerignore", "Dockerfile", "a.py", "x/y/z.pyc")),
        ("data\n!data/keep.txt", (*FILES[:3], "data/keep.txt", "x/y/z.pyc")),
        ("!data/keep.txt\ndata", (*FILES[:3], "x/y/z.pyc")),
        ("*.pyc", FILES),
        ("**/*.pyc", FILES[:5]),
        ("x/**", FILES[:5]),
        ("**/y", FILES[:5]),
        ("*", ()),
        ("*\n!*.py", ("a.py",)),
        ("?.py", (".dockerignore", "Dockerfile", *FILES[3:])),
        ("[ab].py", (".dockerignore", "Dockerfile", *FILES[3:])),
        ("dat", FILES),
        (".", FILES),
    ],
)
def test_what_is_ignored(folder: Path, text: str, left: tuple[str, ...]) -> None:
    assert tuple(sorted(iter_context(folder, parse_ignore(text)))) == tuple(sorted(left))


def test_a_dockerfile_may_have_a_list_of_its_own(folder: Path) -> None:
    (folder / ".dockerignore").write_text("data")
    (folder / "Dockerfile.dockerignore").write_text("x")
    rules = ignore_rules(folder, folder / "Dockerfile")
    assert "data/big.bin" in set(iter_context(folder, rules))


def test_the_tag_is_that_of_the_content(folder: Path, tmp_path: Path) -> None:
    """Wherever the folder lies, and whenever its files were written."""
    first = tag(folder)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, copy_function=shutil.copyfile)
    assert tag(copy) == first
    assert tag(folder, "linux/arm64") != first


@pytest.mark.parametrize("change", ["content", "name", "mode", "dockerfile", "link", "more"])
def test_any_change_is_another_tag(folder: Path, change: str) -> None:
    first = tag(folder)
    match change:
        case "content":
            (folder / "a.py").write_text("b.py")
        case "name":
            (folder / "a.py").rename(folder / "b.py")
        case "mode":
            (folder / "a.py").chmod(0o755)
        case "dockerfile":
            (folder / "Dockerfile").write_text("FROM scratch")
        case "link":
            (folder / "a.py").unlink()
            (folder / "a.py").symlink_to("Dockerfile")
        case _:
            (folder / "more").write_text("")
    assert tag(folder) != first


def test_what_is_ignored_changes_nothing(folder: Path) -> None:
    (folder / ".dockerignore").write_text("data")
    first = tag(folder)
    (folder / "data" / "big.bin").write_text("other")
    assert tag(folder) == first
