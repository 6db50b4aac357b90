"""What goes wrong with a sandbox as a whole. Pure."""

from __future__ import annotations


class SandboxError(Exception):
    """What is wrong, and what to type."""
