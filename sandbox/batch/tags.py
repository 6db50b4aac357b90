"""Tags of Batch's resources: what AWS takes. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.batch import limits
from sandbox.batch.rules import refusal


def check(tags: Mapping[str, str] | None) -> None:
    """Raises ClientError for too many tags, and for keys that AWS keeps for itself.

    User Guide, Tag restrictions: `aws:` begins no key, in whatever case.
    """
    limits.TAGS.check(len(tags or {}))
    for key in tags or {}:
        if key.lower().startswith("aws:"):
            raise refusal(
                "reserved tags", f"the tag {key!r} begins with aws:, which AWS keeps for itself"
            )
