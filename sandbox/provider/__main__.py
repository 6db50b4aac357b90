"""`pulumi-resource-aws`: started by the engine."""

from __future__ import annotations

from sandbox.provider.plugin import VERSION
from sandbox.provider.server import main

if __name__ == "__main__":
    main(VERSION)
