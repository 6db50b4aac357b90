"""The provider as the engine meets it: over gRPC, with a sandbox behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from sandbox.provider.server import Provider
from sandbox.testing import Running, running

SEED = b"one update"


class Refused(Exception):
    """What Check has against the inputs: (property, reason) each."""


class Diff:
    """What a change of inputs needs."""

    def __init__(self, response: Any) -> None:
        self.changes = sorted(response.diffs)
        self.replaces = sorted(response.replaces)
        self.delete_first = response.deleteBeforeReplace
        assert bool(self.changes) == (response.changes == response.DIFF_SOME)


class Made:
    """A resource in the sandbox, as the engine's state has it."""

    def __init__(self, engine: Engine, token: str, inputs: dict[str, Any], name: str) -> None:
        self.engine = engine
        self.token = token
        self.urn = f"urn:pulumi:test::test::{token}::{name}"
        self.inputs = engine.check(self.urn, inputs)
        self.id = ""
        self.state: dict[str, Any] = {}

    def create(self) -> Made:
        request = provider_pb2.CreateRequest(urn=self.urn, properties=struct(self.inputs))
        made = self.engine.stub.Create(request)
        self.id, self.state = made.id, python(made.properties)
        return self

    def preview_create(self) -> dict[str, Any]:
        request = provider_pb2.CreateRequest(
            urn=self.urn, properties=struct(self.inputs), preview=True
        )
        return python(self.engine.stub.Create(request).properties)

    def read(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Inputs and outputs as they are now."""
        request = provider_pb2.ReadRequest(
            id=self.id, urn=self.urn, properties=struct(self.state), inputs=struct(self.inputs)
        )
        found = self.engine.stub.Read(request)
        return (python(found.inputs), python(found.properties)) if found.id else None

    def diff(self, inputs: dict[str, Any]) -> Diff:
        request = provider_pb2.DiffRequest(
            id=self.id,
            urn=self.urn,
            olds=struct(self.state),
            old_inputs=struct(self.inputs),
            news=struct(self.engine.check(self.urn, inputs, self.inputs)),
        )
        return Diff(self.engine.stub.Diff(request))

    def update(self, inputs: dict[str, Any], *, preview: bool = False) -> dict[str, Any]:
        new = self.engine.check(self.urn, inputs, self.inputs)
        request = provider_pb2.UpdateRequest(
            id=self.id,
            urn=self.urn,
            olds=struct(self.state),
            old_inputs=struct(self.inputs),
            news=struct(new),
            preview=preview,
        )
        state = python(self.engine.stub.Update(request).properties)
        if not preview:
            self.inputs, self.state = new, state
        return state

    def delete(self) -> None:
        request = provider_pb2.DeleteRequest(
            id=self.id, urn=self.urn, properties=struct(self.state)
        )
        self.engine.stub.Delete(request)


class Engine:
    """Speaks to a provider as the engine does, and clears away at the end."""

    def __init__(self, stub: Any, sandbox: Running) -> None:
        self.stub = stub
        self.sandbox = sandbox
        self.made: list[Made] = []

    def new(self, token: str, inputs: dict[str, Any], *, logical_name: str = "thing") -> Made:
        """A resource that is checked and not yet made."""
        return Made(self, token, inputs, logical_name)

    def make(self, token: str, inputs: dict[str, Any], *, logical_name: str = "thing") -> Made:
        made = self.new(token, inputs, logical_name=logical_name).create()
        self.made.append(made)
        return made

    def check(
        self, urn: str, inputs: dict[str, Any], old: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        request = provider_pb2.CheckRequest(
            urn=urn, olds=struct(old or {}), news=struct(inputs), randomSeed=SEED
        )
        answer = self.stub.Check(request)
        if answer.failures:
            raise Refused([(f.property, f.reason) for f in answer.failures])
        return python(answer.inputs)

    def invoke(self, token: str, **arguments: Any) -> dict[str, Any]:
        request = provider_pb2.InvokeRequest(tok=token, args=struct(arguments))
        answer = self.stub.Invoke(request)
        if answer.failures:
            raise Refused([(f.property, f.reason) for f in answer.failures])
        return python(getattr(answer, "return"))

    def clear(self) -> None:
        while self.made:
            self.made.pop().delete()


def struct(values: dict[str, Any]) -> struct_pb2.Struct:
    """As the engine writes values; not by the provider's own hand."""
    message = struct_pb2.Struct()
    message.update(values)
    return message


def python(message: struct_pb2.Struct) -> dict[str, Any]:
    """As the engine reads values: numbers are floats, and equal to ints."""
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 # beside its only use

    return dict(MessageToDict(message))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Running]:
    with running() as sandbox, mock.patch.dict(os.environ, sandbox.env()):
        yield sandbox


@pytest.fixture(scope="module")
def stub(sandbox: Running) -> Iterator[Any]:
    """A provider that is configured, at a loopback port."""
    _ = sandbox
    with serving(Provider("0.0.0")) as stub:
        stub.Configure(provider_pb2.ConfigureRequest(args=struct({"region": "us-east-1"})))
        yield stub


@pytest.fixture
def engine(stub: Any, sandbox: Running) -> Iterator[Engine]:
    engine = Engine(stub, sandbox)
    yield engine
    engine.clear()


class serving:  # noqa: N801 # used as a function
    """A provider behind a port, for the time of a `with`."""

    def __init__(self, provider: Provider) -> None:
        self._pool = ThreadPoolExecutor(4)
        self._server = grpc.server(self._pool)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")

    def __enter__(self) -> Any:
        self._server.start()
        return provider_pb2_grpc.ResourceProviderStub(self._channel)

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._server.stop(0).wait()
        self._pool.shutdown()
