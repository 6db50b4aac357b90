"""`pulumi-resource-aws`: started by the engine."""

from __future__ import annotations

from sandbox.provider.server import main

VERSION = "7.51.1"
"""Of the provider whose place it takes: the one that requirements.lock names."""

if __name__ == "__main__":
    main(VERSION)
