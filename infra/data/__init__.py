"""Files that are part of the program. Reads them, and nothing else."""

from __future__ import annotations

import importlib.resources


def instance_types_csv() -> str:
    """What tools/make_catalog.py wrote."""
    here = importlib.resources.files(__name__)
    return here.joinpath("instance_types.csv").read_text(encoding="utf-8")
