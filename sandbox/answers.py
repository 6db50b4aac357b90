"""HTTP answers, and errors as each of AWS's protocols has them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from xml.sax.saxutils import escape


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes
    headers: dict[str, str]


_XML = {
    "ec2": "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors>"
    "<RequestID>sandbox</RequestID></Response>",
    "s3": "<Error><Code>{}</Code><Message>{}</Message><RequestId>sandbox</RequestId></Error>",
    "query": "<ErrorResponse><Error><Type>Sender</Type><Code>{}</Code><Message>{}</Message>"
    "</Error><RequestId>sandbox</RequestId></ErrorResponse>",
}
_THROTTLED: Mapping[str, tuple[int, str, str]] = {
    "batch": (429, "TooManyRequestsException", "Too Many Requests"),
    "ec2": (503, "RequestLimitExceeded", "Request limit exceeded."),
    "iam": (400, "Throttling", "Rate exceeded"),
    "sts": (400, "Throttling", "Rate exceeded"),
    "s3": (503, "SlowDown", "Please reduce your request rate."),
}
"""Status, code and message above the rate of calls, by service; JSON services share theirs."""


def error(status: int, code: str, message: str, *, service: str, content_type: str = "") -> Answer:
    """An error that the service's clients understand.

    A service that is not known speaks XML when its request is a form, JSON else; Batch speaks JSON
    whatever the request is.
    """
    form = content_type.startswith("application/x-www-form-urlencoded")
    xml = _XML.get(service) or (_XML["query"] if form and service != "batch" else None)
    if xml:
        body = xml.format(escape(code), escape(message))
        return Answer(status, body.encode(), {"Content-Type": "text/xml"})
    body = json.dumps({"__type": code, "message": message})
    headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-errortype": code}
    return Answer(status, body.encode(), headers)


def throttled(service: str, content_type: str = "") -> Answer:
    """What the service answers to too many calls."""
    status, code, message = _THROTTLED.get(service, (400, "ThrottlingException", "Rate exceeded"))
    return error(status, code, message, service=service, content_type=content_type)


_EXPIRED: Mapping[str, tuple[int, str]] = {
    "ec2": (400, "RequestExpired"),
    "s3": (400, "ExpiredToken"),
    "iam": (403, "ExpiredToken"),
    "sts": (403, "ExpiredToken"),
    "batch": (403, "ExpiredTokenException"),
}
"""Status and code when credentials are no longer valid, by service; JSON services share theirs."""


def expired(service: str, content_type: str = "") -> Answer:
    """What the service answers to credentials that were good once."""
    status, code = _EXPIRED.get(service, (400, "ExpiredTokenException"))
    message = "The security token included in the request is expired"
    return error(status, code, message, service=service, content_type=content_type)


def as_json(value: Any, status: int = 200) -> Answer:
    """A JSON document."""
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})
