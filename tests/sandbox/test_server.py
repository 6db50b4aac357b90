"""The one port: errors in each service's own protocol, and many clients at once."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

pytestmark = pytest.mark.slow
ONE_TRY = Config(retries={"total_max_attempts": 1}, max_pool_connections=64)

CALLS = {
    "batch": ("describe_job_queues", "TooManyRequestsException"),
    "ec2": ("describe_vpcs", "RequestLimitExceeded"),
    "ecr": ("describe_repositories", "ThrottlingException"),
    "iam": ("list_roles", "Throttling"),
    "logs": ("describe_log_groups", "ThrottlingException"),
    "s3": ("list_buckets", "SlowDown"),
    "secretsmanager": ("list_secrets", "ThrottlingException"),
    "ssm": ("describe_parameters", "ThrottlingException"),
    "sts": ("get_caller_identity", "Throttling"),
}


@pytest.mark.parametrize("service", CALLS)
def test_every_service_answers_and_its_errors_are_understood(world: Any, service: str) -> None:
    name, code = CALLS[service]
    call = getattr(world.sandbox.client(service, config=ONE_TRY), name)
    call()
    world.sandbox.fault("throttle", service=service)
    with pytest.raises(ClientError) as caught:
        call()
    assert caught.value.response["Error"]["Code"] == code
    call()


@pytest.mark.parametrize("service", ["sqs", "sns", "lambda", "dynamodb", "cloudformation"])
def test_a_service_that_it_lacks_is_named(world: Any, service: str) -> None:
    names = {
        "sqs": "list_queues",
        "sns": "list_topics",
        "lambda": "list_functions",
        "dynamodb": "list_tables",
        "cloudformation": "list_stacks",
    }
    with pytest.raises(ClientError, match=f"does not have the service {service}"):
        getattr(world.sandbox.client(service, config=ONE_TRY), names[service])()


def test_sixty_four_clients_at_once(world: Any) -> None:
    """Moto's state is plain dicts: changed and read at once, it must stay whole."""
    logs, ec2 = (world.sandbox.client(s, config=ONE_TRY) for s in ("logs", "ec2"))
    wrong: list[Exception] = []

    def work(number: int) -> None:
        try:
            logs.create_log_group(logGroupName=f"/many/{number}")
            logs.describe_log_groups(logGroupNamePrefix="/many")
            ec2.describe_security_groups()
            ec2.create_security_group(GroupName=f"many-{number}", Description="d")
        except Exception as err:  # noqa: BLE001 # reported below
            wrong.append(err)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    groups = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix="/many")
    assert sum(len(page["logGroups"]) for page in groups) == 64


def test_a_request_that_is_too_large_is_refused(world: Any) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", world.sandbox.port, timeout=20)
    try:
        connection.putrequest("POST", "/_sandbox/faults")
        connection.putheader("X-Sandbox-Key", world.sandbox.app.key)
        connection.putheader("Content-Length", str(1 << 40))
        connection.endheaders()
        assert connection.getresponse().status == 413
    finally:
        connection.close()


@pytest.mark.parametrize("length", ["-1", "x", "1_0"])
def test_a_length_that_is_none_is_refused(world: Any, length: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", world.sandbox.port, timeout=20)
    try:
        connection.putrequest("POST", "/_sandbox/faults")
        connection.putheader("X-Sandbox-Key", world.sandbox.app.key)
        connection.putheader("Content-Length", length)
        connection.endheaders()
        assert connection.getresponse().status in {400, 413}
    finally:
        connection.close()


@pytest.mark.parametrize("content_type", ["", "application/x-www-form-urlencoded", "text/xml"])
@pytest.mark.parametrize("bad", [{}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_batch_refuses_in_json_whatever_the_request_is(
    world: Any, content_type: str, bad: dict[str, str]
) -> None:
    """Batch's protocol has no other form; an unsigned call is told from its address."""
    connection = http.client.HTTPConnection("127.0.0.1", world.sandbox.port, timeout=20)
    try:
        headers = {"Content-Type": content_type} | bad
        connection.request("POST", "/v1/submitjob", b"a=b", headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
    finally:
        connection.close()
    code = "AccessDenied" if bad else "MissingAuthenticationToken"
    assert (answer.status, answer.getheader("x-amzn-errortype")) == (403, code)
    assert told["message"]
