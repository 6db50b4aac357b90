"""Pages of a list. Pure."""

from __future__ import annotations

from typing import Any

from sandbox.batch import limits
from sandbox.batch.rules import refusal


def refuse_both(request: dict[str, Any], named: str) -> None:
    """Raises ClientError where things are named, and yet a page of so many is asked for."""
    if request.get(named) and "maxResults" in request:
        raise refusal(
            "pages",
            f"Error executing request, Exception : {named[0].upper()}{named[1:]} and MaxResults "
            "cannot both be set",
        )


def paged(
    items: list[Any], request: dict[str, Any], limit: limits.Limit
) -> tuple[list[Any], str | None]:
    """One page of `items` and the token of the next.

    Raises ClientError for a token that was never given out.
    """
    size = request.get("maxResults", limit.at_most)
    limit.check(size)
    token = request.get("nextToken", "0")
    if not token.isascii() or not token.isdigit():
        raise refusal("pages", "nextToken is not valid")
    start = int(token)
    after = start + size
    return items[start:after], str(after) if after < len(items) else None
