"""What it means for us when AWS, or the way to it, fails. Speaks botocore."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from submit.backends import NotNow, Unclear
from submit.errors import ServiceFailed

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

T = TypeVar("T")

THROTTLED = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Codes of an error that comes before anything is done (botocore's retry handlers, "standard")."""
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_UNKNOWN_KEY = frozenset({"InvalidClientTokenId", "UnrecognizedClientException"})
_SERVER_ERROR = 500


def answered(
    call: Callable[..., T], *, passing: type[Exception] | tuple[()] = (), **request: Any
) -> T:
    """What the call answers.

    Raises ServiceFailed, in words, whenever there is no answer; `passing` as it is.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # with boto3

    try:
        return call(**request)
    except passing:
        raise
    except (BotoCoreError, ClientError) as err:
        raise in_words(err) from err


def answered_once(call: Callable[..., T], **request: Any) -> T:
    """As `answered`, for a call that must not be made twice.

    Raises Unclear where it may have been done, NotNow where it was not and may be asked again.
    """
    from botocore.exceptions import (  # noqa: PLC0415 # with boto3
        BotoCoreError,
        ClientError,
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
        ProxyConnectionError,
    )
    from botocore.exceptions import ConnectionError as NoConnection  # noqa: PLC0415 # with boto3

    try:
        return call(**request)
    except ClientError as err:
        if err.response["Error"].get("Code") in THROTTLED:
            raise NotNow from in_words(err)
        if err.response["ResponseMetadata"]["HTTPStatusCode"] >= _SERVER_ERROR:
            raise Unclear(str(err)) from err
        raise in_words(err) from err
    except (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError) as err:
        raise NotNow from in_words(err)  # the connection was not even made
    except (HTTPClientError, NoConnection) as err:
        raise Unclear(str(err)) from err
    except BotoCoreError as err:  # before anything left: credentials, parameters
        raise in_words(err) from err


def in_words(err: Exception) -> ServiceFailed:
    """The error as people read it, the service's own code and words kept."""
    from botocore.exceptions import (  # noqa: PLC0415 # with boto3
        ClientError,
        HTTPClientError,
        NoCredentialsError,
        ProfileNotFound,
    )
    from botocore.exceptions import ConnectionError as NoConnection  # noqa: PLC0415 # with boto3

    if isinstance(err, NoCredentialsError):
        return ServiceFailed(
            "no-credentials",
            "there are no AWS credentials here",
            'aws sso login, or aws configure; for the sandbox eval "$(python -m sandbox env)"',
        )
    if isinstance(err, ProfileNotFound):
        return ServiceFailed("no-profile", str(err), "aws configure list-profiles")
    if isinstance(err, (NoConnection, HTTPClientError)):
        return _unreachable(err)
    if isinstance(err, ClientError):
        return _refused(err)
    return ServiceFailed("aws", f"AWS could not be asked: {err}", "aws sts get-caller-identity")


def _unreachable(err: Exception) -> ServiceFailed:
    endpoint = str(vars(err).get("kwargs", {}).get("endpoint_url") or "AWS")
    scheme, slashes, rest = endpoint.partition("://")
    host = scheme + slashes + rest.partition("/")[0]
    if rest.startswith(("127.", "localhost", "[::1]")):
        return ServiceFailed(
            "sandbox-down",
            f"nothing answers at {host}: the sandbox is not running",
            'python -m sandbox up && eval "$(python -m sandbox env)"',
        )
    return ServiceFailed(
        "unreachable", f"{host} can't be reached: {err}", "check the network, then the same line"
    )


def _refused(err: ClientError) -> ServiceFailed:
    error = err.response["Error"]
    code, message = error.get("Code", ""), error.get("Message", "")
    if code in _EXPIRED:
        return ServiceFailed(
            "expired", "the AWS credentials have expired", "aws sso login, then the same line again"
        )
    if code in _UNKNOWN_KEY:
        return ServiceFailed(
            "bad-credentials",
            f"AWS does not know these credentials ({code}: {message})",
            "aws sts get-caller-identity",
        )
    return ServiceFailed(
        "aws-" + code,
        f"AWS refused {err.operation_name}: {code}: {message}",
        "aws sts get-caller-identity" if "AccessDenied" in code else "submit doctor",
    )
