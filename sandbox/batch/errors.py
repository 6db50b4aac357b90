"""The errors that AWS Batch answers with. Pure."""

from __future__ import annotations


class BatchError(Exception):
    """An answer with an error code, as botocore's model names it."""

    code = "ServerException"
    status = 500


class ClientError(BatchError):
    """ClientException: the request is at fault."""

    code = "ClientException"
    status = 400


class ServerError(BatchError):
    """ServerException: the service is at fault."""


class TooManyRequests(BatchError):
    """What a client gets above the service's rate of calls."""

    code = "TooManyRequestsException"
    status = 429
