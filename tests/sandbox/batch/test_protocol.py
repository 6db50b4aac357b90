"""Requests and answers against botocore's own model of AWS Batch."""

from __future__ import annotations

import http.client
import json
from typing import Any

import botocore.session
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow
MODEL = botocore.session.get_session().get_service_model("batch")
SCOPE = "AWS4-HMAC-SHA256 Credential={}/20261201/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"


def call(
    world: Any,
    path: str,
    body: bytes,
    *,
    method: str = "POST",
    service: str | None = "batch",
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], Any]:
    """A raw HTTP call."""
    connection = http.client.HTTPConnection("127.0.0.1", world.sandbox.port, timeout=20)
    signed = {"Authorization": SCOPE.format(world.sandbox.app.key, service)} if service else {}
    try:
        connection.request(method, path, body, signed | (headers or {}))
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, dict(answer.getheaders()), json.loads(text) if text else None
    finally:
        connection.close()


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"jobs": "x"}', b'{"jobs": [1]}'),
        *(b'{"jobs": %s%s}' % (b"[" * n, b"]" * n) for n in (100, 480, 900, 960)),
        b'{"jobs": [null]}',
    ],
    ids=lambda body: body[:12],
)
def test_a_bad_body_is_a_client_exception(world: Any, body: bytes) -> None:
    status, headers, answer = call(world, "/v1/describejobs", body)
    assert status == 400
    assert headers["x-amzn-errortype"] == "ClientException"
    assert answer["message"]


def test_an_unknown_member_is_named(world: Any) -> None:
    _, _, answer = call(world, "/v1/describejobs", b'{"jobs": [], "jbos": []}')
    assert "jbos is not a member of DescribeJobsRequest" in answer["message"]


def test_a_member_that_is_null_is_not_given(world: Any) -> None:
    order = b'[{"order": null, "computeEnvironment": "ce"}]'
    body = b'{"jobQueueName": "null", "priority": 1, "computeEnvironmentOrder": %s}' % order
    _, _, answer = call(world, "/v1/createjobqueue", body)
    assert "computeEnvironmentOrder[0].order is required" in answer["message"]


def test_empty_tags_are_no_tags(world: Any) -> None:
    """The model gives them a least size; clients send them all the same, and AWS takes them."""
    job_id = world.submit("true", tags={})
    assert world.over(job_id)["tags"] == {}
    arn = world.definition("untagged", tags={})
    assert world.batch.list_tags_for_resource(resourceArn=arn)["tags"] == {}


def test_all_faults_are_told_at_once(world: Any) -> None:
    _, _, answer = call(world, "/v1/submitjob", b'{"jobName": 3, "arrayProperties": {"size": "x"}}')
    for part in ("jobQueue is required", "jobDefinition is required", "jobName", "size"):
        assert part in answer["message"]


@pytest.mark.parametrize("operation", MODEL.operation_names)
def test_every_operation_is_there_or_says_that_it_is_not(world: Any, operation: str) -> None:
    """Never an empty success: what the sandbox lacks is refused by its name."""
    have = world.sandbox.app.batch()._operations
    model = MODEL.operation_model(operation)
    path = model.http["requestUri"].replace("{resourceArn}", "arn%3Aaws%3Abatch")
    status, _, answer = call(world, path, b"{}", method=model.http["method"])
    if operation not in have:
        assert status == 400
        assert operation in answer["message"]
    else:
        assert status == 200 or "does not have" not in answer["message"]


@pytest.mark.parametrize("service", ["sqs", "lambda"])
def test_another_service_is_named(world: Any, service: str) -> None:
    status, _, answer = call(world, "/", b"", service=service)
    assert status == 501
    assert service in answer["message"]


def test_an_unsigned_call_is_refused(world: Any) -> None:
    status, _, answer = call(world, "/v1/describejobs", b"{}", service=None)
    assert (status, answer["__type"]) == (403, "MissingAuthenticationToken")


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Host": "evil.example:80"}, {"Origin": "http://x"}]
)
def test_a_web_page_cannot_reach_it(world: Any, headers: dict[str, str]) -> None:
    """DNS rebinding: the page's own host name, or its Origin, gives it away."""
    for path in ("/v1/describejobs", "/_sandbox/faults"):
        status, _, answer = call(world, path, b"{}", headers=headers)
        assert status == 403
        assert "loopback" in answer["message"]


@pytest.mark.parametrize("path", ["/v1/describejobs", "/_sandbox/status"])
def test_another_user_of_the_machine_cannot_use_it(world: Any, path: str) -> None:
    """Jobs run with the rights of the sandbox's owner: without its key nothing is answered."""
    signed = {"Authorization": SCOPE.format("guessed", "batch"), "X-Sandbox-Key": "guessed"}
    status, _, answer = call(world, path, b"{}", headers=signed)
    assert (status, answer["__type"]) == (403, "UnrecognizedClientException")


def test_it_listens_on_loopback_only(world: Any) -> None:
    import psutil  # noqa: PLC0415 # only here

    port = world.sandbox.port
    listening = [c for c in psutil.Process().net_connections() if c.status == "LISTEN"]
    assert {c.laddr.ip for c in listening if c.laddr.port == port} == {"127.0.0.1"}


def requests_of(shape: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Mostly legal values of a shape of the model, with a wrong one now and then."""
    wrong = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just({})
    if shape.type_name == "structure":
        members = {
            name: requests_of(member, depth + 1)
            for name, member in shape.members.items()
            if depth < 4
        }
        required = {name: members[name] for name in shape.required_members if name in members}
        optional = {name: value for name, value in members.items() if name not in required}
        return st.fixed_dictionaries(required, optional=optional) | wrong
    if shape.type_name == "list":
        return st.lists(requests_of(shape.member, depth + 1), max_size=3) | wrong
    if shape.type_name == "map":
        return st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3) | wrong
    if shape.type_name == "string":
        names = st.sampled_from(["ce", "q", "d", "d:1", "job", "SPOT", "MANAGED", "container"])
        return (st.sampled_from(shape.enum) if shape.enum else names) | st.text(max_size=8)
    if shape.type_name == "boolean":
        return st.booleans() | wrong
    return st.integers(-1, 20_000) | wrong


@pytest.mark.parametrize("operation", MODEL.operation_names)
@settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck), print_blob=True)
@given(data=st.data())
def test_any_request_is_answered_by_the_model(world: Any, operation: str, data: Any) -> None:
    """No request, however wrong, is answered with a 500, or not at all."""
    model = MODEL.operation_model(operation)
    path = model.http["requestUri"].replace("{resourceArn}", "arn%3Aaws%3Abatch")
    body = json.dumps(data.draw(requests_of(model.input_shape))).encode()
    status, headers, answer = call(world, path, body, method=model.http["method"])
    assert status in {200, 400}
    if status == 400:
        assert headers["x-amzn-errortype"] == "ClientException"
        assert answer["message"]
