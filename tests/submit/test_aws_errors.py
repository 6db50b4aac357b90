"""submit.backends.aws_errors: what a call that failed has done."""

from __future__ import annotations

from typing import Any

import botocore.exceptions
import pytest

from submit.backends import NotNow, Unclear
from submit.backends.aws_errors import answered, answered_once
from submit.errors import ServiceFailed


def error(code: str, status: int) -> Any:
    answer: Any = {"Error": {"Code": code, "Message": "m"}}
    answer["ResponseMetadata"] = {"HTTPStatusCode": status}
    return botocore.exceptions.ClientError(answer, "SubmitJob")


def _transport(name: str) -> Any:
    kind = getattr(botocore.exceptions, name)
    return kind(
        endpoint_url="https://batch.eu-west-1.amazonaws.com/v1/submitjob",
        error="e",
        proxy_url="http://p",
    )


@pytest.mark.parametrize(
    ("raised", "meant"),
    [
        (error("ThrottlingException", 400), NotNow),
        (error("TooManyRequestsException", 429), NotNow),
        (error("ServerException", 500), Unclear),
        (error("InternalFailure", 503), Unclear),
        (error("ClientException", 400), ServiceFailed),
        (error("AccessDeniedException", 403), ServiceFailed),
        (error("ExpiredTokenException", 403), ServiceFailed),
        (_transport("EndpointConnectionError"), NotNow),
        (_transport("ConnectTimeoutError"), NotNow),
        (_transport("ProxyConnectionError"), NotNow),
        (_transport("ReadTimeoutError"), Unclear),
        (_transport("ConnectionClosedError"), Unclear),
        (_transport("HTTPClientError"), Unclear),
        (_transport("SSLError"), Unclear),
    ],
    ids=str,
)
def test_what_a_failed_submit_means(raised: Exception, meant: type[Exception]) -> None:
    """Only what certainly did nothing may simply be done again."""

    def call() -> None:
        raise raised

    with pytest.raises(meant):
        answered_once(call)
    with pytest.raises(ServiceFailed) as err:
        answered(call)
    assert err.value.message
