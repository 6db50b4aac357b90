"""YAML text → nodes, with nothing expanded and nothing made of it. Pure. Loads yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import ComposerError
from yaml.events import AliasEvent

if TYPE_CHECKING:
    from yaml.nodes import Node


def compose(text: str, deepest: int) -> Node | None:
    """The one document; None when there is none.

    Raises YAMLError, also for aliases (a few of them can stand for more than fits into memory)
    and for what is nested deeper than `deepest`.
    """
    loader = _Loader(text)
    loader.left = deepest
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    left = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call] # PyYAML's stubs
        mark: Any = event.start_mark
        if isinstance(event, AliasEvent):
            problem = f"*{event.anchor}: aliases are not read; write it out"
            raise ComposerError(None, None, problem, mark)
        if self.left == 0:
            raise ComposerError(None, None, "nested too deep", mark)
        self.left -= 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.left += 1
