"""`pulumi-resource-runfleet-jobs`: tells, before queues are destroyed, which jobs end with them.

`pulumi destroy` does not run the program, and the AWS provider says nothing of what is in a queue
that it deletes. So the stack has a resource of this provider that stands on all its queues: on
the way down it goes first, and speaks. It changes nothing in the account; it is Batch that ends
the jobs of a queue that is deleted. Speaks Pulumi's gRPC protocol, and boto3 when it has to tell.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
)

from infra.ending import told
from infra.standing import Look, NotCounted

VERSION = "1.0.0"
LOOK_ROUND_S = 2


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """A provider of one kind of resource, whose inputs are `region`, `account`, `config` (what
    boto3 has to know of the AWS provider's configuration) and `queues`, ARNs by name.
    """

    def __init__(self, engine: str = "") -> None:
        """`engine` is its address; without one, it attaches itself."""
        self._engine = engine

    def GetPluginInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802 # the protocol's name
        return plugin_pb2.PluginInfo(version=VERSION)

    def Attach(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self._engine = request.address
        return empty_pb2.Empty()

    def CheckConfig(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Check(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, _context: Any) -> Any:  # noqa: N802
        kinds = provider_pb2.DiffResponse
        same = request.old_inputs == request.news
        return kinds(changes=kinds.DIFF_NONE if same else kinds.DIFF_SOME)

    def Create(self, request: Any, _context: Any) -> Any:  # noqa: N802
        made = "" if request.preview else "jobs"
        return provider_pb2.CreateResponse(id=made, properties=request.properties)

    def Read(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.ReadResponse(
            id=request.id, properties=request.properties, inputs=request.inputs
        )

    def Update(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.UpdateResponse(properties=request.news)

    def Delete(self, request: Any, _context: Any) -> Any:  # noqa: N802
        said = last_word(json_format.MessageToDict(request.properties))
        if said:
            _say(self._engine, request.urn, said)
        return empty_pb2.Empty()

    def Cancel(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return empty_pb2.Empty()


def last_word(properties: Mapping[str, Any]) -> str:
    """What is to be said before these queues go; nothing if no job is in them."""
    names = {arn: name for name, arn in properties.get("queues", {}).items()}
    try:
        look = Look(
            properties["config"], account=properties["account"], region=properties["region"]
        )
        found = look.jobs(names)
    except NotCounted as why:
        return f"jobs that are in the queues end with them; they were not counted: {why}"
    if not found:
        return ""
    return f"jobs end with their queues: {told({names[arn]: jobs for arn, jobs in found.items()})}"


def _say(engine: str, urn: str, message: str) -> None:
    warning = engine_pb2.LogRequest(severity=engine_pb2.WARNING, urn=urn, message=message)
    with grpc.insecure_channel(engine) as channel:
        engine_pb2_grpc.EngineStub(channel).Log(warning)


def main(engine: str) -> None:
    """Serves on a loopback port, which the engine reads from standard output."""
    server = grpc.server(ThreadPoolExecutor(2))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(engine), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    engine_pid = os.getppid()
    with contextlib.suppress(KeyboardInterrupt):
        while server.wait_for_termination(LOOK_ROUND_S) and os.getppid() == engine_pid:
            pass  # an engine that is killed takes nobody along
    server.stop(0)


if __name__ == "__main__":
    main(sys.argv[-1])
