"""Whether a failed attempt gets another. Pure."""

from __future__ import annotations

from typing import Any


def grants_retry(
    strategy: dict[str, Any],
    attempts: int,
    *,
    status_reason: str,
    reason: str | None,
    exit_code: int | None,
) -> bool:
    """Whether the retry strategy grants another attempt after so many.

    The first rule decides whose conditions all match; when none does, the answer is yes (API
    Reference, RetryStrategy).
    """
    if attempts >= strategy.get("attempts", 1):
        return False
    facts = {
        "onStatusReason": status_reason,
        "onReason": reason or "",
        "onExitCode": "" if exit_code is None else str(exit_code),
    }
    for rule in strategy.get("evaluateOnExit", []):
        if all(_matches(facts[key], rule[key]) for key in facts if key in rule):
            return bool(rule["action"].upper() == "RETRY")
    return True


def _matches(text: str, pattern: str) -> bool:
    """`*` at the end of a pattern matches the rest; letters match in either case."""
    if pattern.endswith("*"):
        return text.lower().startswith(pattern[:-1].lower())
    return text.lower() == pattern.lower()
