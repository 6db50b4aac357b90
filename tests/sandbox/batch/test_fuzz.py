"""Whatever is asked, in whatever order: an answer that the model allows, never a 500 or a hang.

Requests begin as good ones and are spoilt here and there, so that they come far; each example is a
sequence on the same few names, so that they meet what others have made. FUZZ=5000 looks deeper.
"""

from __future__ import annotations

import copy
import http.client
import json
import os
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.sandbox.batch.test_protocol import SCOPE
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow
MODEL = botocore.session.get_session().get_service_model("batch")
EXAMPLES = int(os.environ.get("FUZZ", "80"))
JOB = "@job"
"""Stands for the newest job's id."""
ARN = "arn:aws:batch:us-east-1:123456789012:"
NEEDS = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "4"}]
CONTAINER = {"image": "i", "command": ["true"], "resourceRequirements": NEEDS}
GROUP = {"targetNodes": "0:", "container": CONTAINER}
TASK = {
    "containers": [
        CONTAINER | {"name": "a", "dependsOn": [{"containerName": "b", "condition": "SUCCESS"}]},
        CONTAINER | {"name": "b", "essential": False},
    ]
}
ORDER = [{"order": 1, "computeEnvironment": "ce"}]
POLICY = {"shareDistribution": [{"shareIdentifier": "a*", "weightFactor": 0.5}]}
ACTION = {
    "reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
    "state": "RUNNABLE",
    "maxTimeSeconds": 600,
    "action": "CANCEL",
}
SUBMIT = {"jobName": "j", "jobQueue": "q", "jobDefinition": "d"}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("CreateJobQueue", {"jobQueueName": "q2", "priority": 1, "computeEnvironmentOrder": ORDER}),
    ("CreateJobQueue", {"jobQueueName": "q3", "priority": 1, "schedulingPolicyArn": "@policy"}),
    ("UpdateJobQueue", {"jobQueue": "q2", "state": "DISABLED"}),
    ("UpdateJobQueue", {"jobQueue": "q", "jobStateTimeLimitActions": [ACTION]}),
    ("DeleteJobQueue", {"jobQueue": "q2"}),
    ("DescribeJobQueues", {"maxResults": 1}),
    ("GetJobQueueSnapshot", {"jobQueue": "q"}),
    ("DescribeComputeEnvironments", {"maxResults": 1, "nextToken": "1"}),
    ("UpdateComputeEnvironment", {"computeEnvironment": "ce2", "state": "DISABLED"}),
    ("UpdateComputeEnvironment", {"computeEnvironment": "ce", "computeResources": {"maxvCpus": 9}}),
    ("DeleteComputeEnvironment", {"computeEnvironment": "ce2"}),
    ("CreateSchedulingPolicy", {"name": "p", "fairsharePolicy": POLICY}),
    ("UpdateSchedulingPolicy", {"arn": "@policy", "fairsharePolicy": POLICY}),
    ("DeleteSchedulingPolicy", {"arn": "@policy"}),
    ("DescribeSchedulingPolicies", {"arns": ["@policy"]}),
    ("ListSchedulingPolicies", {}),
    ("RegisterJobDefinition",
     {"jobDefinitionName": "d", "type": "container", "containerProperties": CONTAINER}),
    ("RegisterJobDefinition",
     {"jobDefinitionName": "t", "type": "container", "ecsProperties": {"taskProperties": [TASK]}}),
    ("RegisterJobDefinition",
     {"jobDefinitionName": "n", "type": "multinode",
      "nodeProperties": {"numNodes": 2, "mainNode": 0, "nodeRangeProperties": [GROUP]}}),
    ("DeregisterJobDefinition", {"jobDefinition": "d:1"}),
    ("DescribeJobDefinitions", {"jobDefinitionName": "d", "status": "ACTIVE"}),
    ("SubmitJob", SUBMIT | {"retryStrategy": {"attempts": 2}, "tags": {"a": "b"}}),
    ("SubmitJob", SUBMIT | {"arrayProperties": {"size": 3}, "dependsOn": [{"jobId": JOB}]}),
    ("SubmitJob", SUBMIT | {"containerOverrides": {"command": ["false"], "environment": [
        {"name": "A", "value": "b"}]}}),
    ("SubmitJob", SUBMIT | {"jobDefinition": "t", "ecsPropertiesOverride": {
        "taskProperties": [{"containers": [{"name": "a", "command": ["true"]}]}]}}),
    ("SubmitJob", SUBMIT | {"jobDefinition": "n", "nodeOverrides": {"numNodes": 3}}),
    ("SubmitJob", SUBMIT | {"jobQueue": "q3", "shareIdentifier": "a"}),
    ("DescribeJobs", {"jobs": [JOB, JOB + ":0", JOB + "#0"]}),
    ("ListJobs", {"jobQueue": "q", "filters": [{"name": "JOB_NAME", "values": ["j*"]}]}),
    ("ListJobs", {"arrayJobId": JOB, "jobStatus": "FAILED"}),
    ("ListJobs", {"multiNodeJobId": JOB}),
    ("CancelJob", {"jobId": JOB, "reason": "r"}),
    ("TerminateJob", {"jobId": JOB + ":1", "reason": "r"}),
    ("TerminateJobs", {"jobs": [JOB], "reason": "r"}),
    ("TagResource", {"resourceArn": ARN + "job-queue/q", "tags": {"a": "b"}}),
    ("UntagResource", {"resourceArn": ARN + "job-queue/q", "tagKeys": ["a"]}),
    ("ListTagsForResource", {"resourceArn": ARN + "job-queue/q"}),
]  # fmt: skip
TEXTS = st.sampled_from(
    ["ce", "q", "d", "d:1", "t", "a", JOB, JOB + ":0", JOB + "#1", "@policy", "", "*", "1", "-1",
     "0:1", "arn:aws:batch:", ARN + "job/x", "ENABLED", "c6g.medium", "\0", "é" * 300, "../..", "%2F"]
) | st.text(max_size=8)  # fmt: skip
NUMBERS = st.sampled_from([0, 1, 2, -1, 59, 10_001, 2**31, 2**63, -(2**63), 10**30])
WRONG = st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False) | TEXTS | st.just({})


def values_of(shape: Shape, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a shape of the model, with a wrong one now and then."""
    if depth > 4:
        return WRONG
    if isinstance(shape, StructureShape):
        members = {n: values_of(m, depth + 1) for n, m in shape.members.items()}
        must = {name: members.pop(name) for name in shape.required_members}
        some = dict(list(members.items())[: 3 if depth else 99])
        return st.fixed_dictionaries(must, optional=some) | WRONG
    if isinstance(shape, ListShape):
        return st.lists(values_of(shape.member, depth + 1), max_size=3) | WRONG
    if isinstance(shape, MapShape):
        return st.dictionaries(TEXTS, TEXTS, max_size=3) | WRONG
    if isinstance(shape, StringShape):
        return (st.sampled_from(shape.enum) if shape.enum else TEXTS) | TEXTS
    return {"boolean": st.booleans()}.get(shape.type_name, NUMBERS) | WRONG


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, Any]:
    """A request: good, good but for some members, or made from the model alone."""
    operation, request = draw(st.sampled_from(CASES))
    shape = MODEL.operation_model(operation).input_shape
    assert isinstance(shape, StructureShape)
    how = draw(st.sampled_from(["good", "spoilt", "spoilt", "more", "made"]))
    if how == "made":
        return operation, draw(values_of(shape))
    request = copy.deepcopy(request)
    if how == "more":
        name = draw(st.sampled_from(sorted(shape.members)))
        request[name] = draw(values_of(shape.members[name], 1))
    if how == "spoilt" and request:
        place, key, inner = draw(st.sampled_from(list(_places(request, shape))))
        place[key] = draw(values_of(inner, 2) if inner else WRONG)
    return operation, request


def _places(value: Any, shape: Shape | None) -> Iterator[tuple[Any, Any, Shape | None]]:
    """Each member and item, with its shape."""
    if isinstance(value, dict):
        for key, item in value.items():
            members = shape.members if isinstance(shape, StructureShape) else {}
            inner = members.get(key)
            yield value, key, inner
            yield from _places(item, inner)
    if isinstance(value, list):
        for number, item in enumerate(value):
            inner = shape.member if isinstance(shape, ListShape) else None
            yield value, number, inner
            yield from _places(item, inner)


class Client:
    """Raw calls on one sandbox; knows the newest job."""

    def __init__(self, world: World) -> None:
        self.port = world.sandbox.port
        self.signature = SCOPE.format(world.sandbox.app.key, "batch")
        self.job = "none"

    def call(
        self, method: str, path: str, body: bytes, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            own = {"Authorization": self.signature} if headers is None else headers
            connection.request(method, path, body, own)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, dict(answer.getheaders()), json.loads(text) if text else None
        finally:
            connection.close()

    def ask(self, operation: str, request: Any) -> None:
        """One request, whose answer must be one of AWS's."""
        model = MODEL.operation_model(operation)
        text = json.dumps(request).replace(JOB, self.job)
        text = text.replace("@policy", ARN + "scheduling-policy/p")
        path = model.http["requestUri"]
        if "{resourceArn}" in path:
            arn = request.get("resourceArn") if isinstance(request, dict) else None
            path = path.replace("{resourceArn}", http_quote(str(arn or "x")))
        status, headers, answer = self.call(model.http["method"], path, text.encode())
        assert status in {200, 400}, (operation, request, answer)
        if status == 400:
            assert headers["x-amzn-errortype"] == "ClientException"
            assert answer["message"]
        elif operation == "SubmitJob":
            self.job = answer["jobId"]


def http_quote(text: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 # only here

    return quote(text, safe="")


@pytest.fixture(scope="module")
def start(world: World) -> tuple[World, dict[str, Any]]:
    """A world, and what its Batch knows at first."""
    world.environment("ce2")
    store = world.sandbox.app.batch().store
    return world, copy.deepcopy(store.kept())


def begin_anew(world: World, kept: dict[str, Any]) -> None:
    """Whatever runs is ended, whatever was made is forgotten."""
    batch = world.sandbox.app.batch()
    with batch.store.lock:
        for running in list(batch.scheduler._running.values()):
            running.end("over")
    until(lambda: not batch.scheduler.running_jobs())
    with batch.store.lock:
        batch.store.restore(copy.deepcopy(kept))


@settings(
    deadline=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), print_blob=True
)
@given(steps=st.lists(spoilt(), min_size=1, max_size=10))
@example(steps=[case for case in CASES if case[0].startswith(("Create", "Register"))])
@example(steps=CASES)
@example(steps=CASES[::-1])
def test_any_sequence_is_answered(start: Any, steps: list[tuple[str, Any]]) -> None:
    world, kept = start
    begin_anew(world, kept)
    client = Client(world)
    for operation, request in steps:
        client.ask(operation, request)
    for read in ("DescribeJobQueues", "DescribeComputeEnvironments", "DescribeJobDefinitions"):
        client.ask(read, {})
    client.ask("DescribeJobs", {"jobs": [JOB, JOB + ":0", JOB + "#0"]})
    assert world.sandbox.app.batch().scheduler._thread.is_alive()


@settings(
    deadline=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), print_blob=True
)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"]),
    path=st.sampled_from(["/", "/v1/submitjob", "/v1/describejobs", "/v1/tags/x", "/v1/../etc", "//"])
    | st.text(alphabet="/%.?&=#abv1\t+é{", max_size=30).map(lambda text: "/" + http_quote(text)),
    body=st.binary(max_size=200) | st.sampled_from([b"{}", b"[" * 50_000, b"{" * 50_000, b"x" * 300_000]),
    headers=st.fixed_dictionaries(
        {},
        optional={
            "Content-Type": st.sampled_from(
                ["", "text/plain", "application/xml", "multipart/form-data",
                 "application/x-www-form-urlencoded", "application/json; charset=utf-16"]
            ),
            "Authorization": st.sampled_from(
                ["", "Basic x", "AWS4-HMAC-SHA256", SCOPE.format("guessed", "batch"), "@own"]
            ),
            "X-Amz-Target": st.sampled_from(["", "AWSBatch.SubmitJob", "x" * 1000]),
            "Expect": st.just("100-continue"),
        },
    ),
)  # fmt: skip
def test_any_bytes_are_answered(
    start: Any, method: str, path: str, body: bytes, headers: dict[str, str]
) -> None:
    """Unsigned, garbage, another's key, wrong types and methods: an error as AWS words one."""
    world, _ = start
    client = Client(world)
    if headers.get("Authorization") == "@own":
        headers = headers | {"Authorization": client.signature}
    connection = http.client.HTTPConnection("127.0.0.1", world.sandbox.port, timeout=20)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    assert answer.status in {200, 303, 400, 403, 404}, (answer.status, text)
    if answer.status == 400:
        assert answer.getheader("x-amzn-errortype") == "ClientException"
        assert method == "HEAD" or json.loads(text)["message"]


def test_a_body_without_end_is_not_waited_for_in_memory(world: World) -> None:
    """A length beyond all measure is refused at once, and the next call is answered."""
    client = Client(world)
    connection = http.client.HTTPConnection("127.0.0.1", world.sandbox.port, timeout=20)
    try:
        connection.putrequest("POST", "/v1/submitjob")
        connection.putheader("Authorization", client.signature)
        connection.putheader("Content-Length", str(10**12))
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 413
        assert answer.getheader("x-amzn-errortype") == "RequestTooLarge"
    finally:
        connection.close()
    client.ask("DescribeJobQueues", {})
