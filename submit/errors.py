"""What can end a verb early: one class per exit code, one slug per case. Pure.

Building an error prints nothing; submit/commands prints `message`, then `hint` (a command
to type). Exit code 1 ("some runs failed") is a result, not an error, and has no class.
"""

from __future__ import annotations


class SubmitError(Exception):
    """Base: `slug` names the case for machines, `message` says what is wrong with which value,
    `hint` what to type next.
    """

    exit_code = 4

    def __init__(self, slug: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.hint = hint


class WrongUse(SubmitError):
    """The request itself is malformed; nothing was sent."""

    exit_code = 2


class Refused(SubmitError):
    """The request is well formed but would fail on the service; nothing was sent."""

    exit_code = 3


class ServiceFailed(SubmitError):
    """The service (AWS, Pulumi, the file system) failed; `message` says what was sent."""

    exit_code = 4
