"""What every error of submit has."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from submit import errors

ROOT = Path(errors.__file__).parent
CLASSES = {"WrongUse", "Refused", "ServiceFailed"}


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.name))
def test_each_error_says_what_to_type_next(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in CLASSES
        ):
            assert len(node.args) == 3, f"{path}:{node.lineno} has no hint"
