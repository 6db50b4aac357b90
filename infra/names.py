"""Names in AWS: each carries the stack's name and fits what the service takes. Pure.

The provider adds 26 characters to a `name_prefix`, Pulumi adds 8 to the name of a resource that
gets none; the limits below leave room for that.
"""

from __future__ import annotations

import hashlib
import re

ROLE_PREFIX = 64 - 26
"""IAM, CreateRole: 64 characters."""
BATCH_PREFIX = 128 - 26
BATCH_NAME = 128 - 8
"""Batch, CreateComputeEnvironment and CreateJobQueue: 128 letters, digits, - and _."""
TEMPLATE_PREFIX = 125 - 26
"""The AWS provider takes launch template names of 125 characters, EC2 itself 128."""
GROUP_PREFIX = 255 - 26
"""EC2, CreateSecurityGroup: 255 characters."""
SECRET_PREFIX = 512 - 26
"""Secrets Manager, CreateSecret: 512 characters."""
POLICY_PREFIX = 128 - 26
"""IAM, CreatePolicy: 128 characters."""
BUCKET_PREFIX = 63 - 26
"""S3, CreateBucket: 63 lower-case letters, digits and -."""
REPOSITORY_NAME = 256
"""ECR, CreateRepository: 256 characters, parts of lower-case letters and digits."""

_DIGEST = 6


def named(stack: str, rest: str, *, limit: int, before: str = "") -> str:
    """`<before><stack><rest>` in at most `limit` letters, digits, - and _.

    A stack name that is too long or has other characters is shortened and gets a digest of
    itself, so that two stacks never share a name.
    """
    return before + _fitting(stack, limit - len(before) - len(rest)) + rest


def _fitting(stack: str, room: int) -> str:
    if len(stack) <= room and re.fullmatch("[A-Za-z0-9][A-Za-z0-9_-]*", stack):
        return stack
    digest = hashlib.sha256(stack.encode()).hexdigest()[:_DIGEST]
    legal = re.sub("[^A-Za-z0-9_-]+", "-", stack).strip("-_")
    return "-".join(filter(None, (legal[: room - _DIGEST - 1].rstrip("-_"), digest)))


def lower_named(stack: str, rest: str, *, limit: int, before: str = "") -> str:
    """As `named`, for services that take lower-case letters, digits and single - only."""
    plain = re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", stack)
    if plain and len(before + stack + rest) <= limit:
        return before + stack + rest
    digest = hashlib.sha256(stack.encode()).hexdigest()[:_DIGEST]
    room = limit - len(before) - len(rest) - _DIGEST - 1
    legal = re.sub("[^a-z0-9]+", "-", stack.lower()).strip("-")[:room].rstrip("-")
    return before + "-".join(filter(None, (legal, digest))) + rest
