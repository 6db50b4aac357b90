"""IAM policy documents, which say the same in many ways. Pure."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote


def same_json(given: str | None, now: Any) -> str:
    """The document as it was given, if it still says the same; else as it is."""
    document = json.loads(unquote(now)) if isinstance(now, str) else now
    if given is not None and json.loads(given) == document:
        return given
    return json.dumps(document)
