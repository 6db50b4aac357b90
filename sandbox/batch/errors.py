"""The errors that AWS Batch answers with. Pure."""

from __future__ import annotations


class BatchError(Exception):
    """An answer with an error code, as botocore's model names it."""

    code = "ServerException"
    status = 500


class ClientError(BatchError):
    """ClientException: the request is at fault. `rule` is the row of rules.py or limits.py that it
    breaks; None where the sandbox does not have what AWS has.
    """

    code = "ClientException"
    status = 400

    def __init__(self, message: str, *, rule: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule


class ServerError(BatchError):
    """ServerException: the service is at fault."""


class TooManyRequests(BatchError):
    """What a client gets above the service's rate of calls."""

    code = "TooManyRequestsException"
    status = 429
