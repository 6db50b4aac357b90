"""The provider's side of Pulumi's gRPC protocol.

Not pulumi.provider.experimental: that one answers failures with a Python traceback, can't
report a resource that was made and then failed, and makes one resource at a time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from sandbox.provider.cloud import Cloud, Failed, NotLoopback, unique_suffix
from sandbox.provider.functions import FUNCTIONS, NoAnswer
from sandbox.provider.kind import Kind
from sandbox.provider.kinds import BY_TOKEN
from sandbox.provider.wire import Properties, dump, has_unknown, load

CONFIG_KEYS = frozenset(
    {
        "region",
        "skipCredentialsValidation",
        "skipMetadataApiCheck",
        "skipRegionValidation",
        "skipRequestingAccountId",
        "version",
    }
)
WORKERS = 8
LOOK_ROUND_S = 2


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._clouds: dict[str, Cloud] = {}
        self._region = ""
        self._stopped = threading.Event()

    def GetPluginInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802 # the protocol's name
        return _plugin_info(self._version)

    def Handshake(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.ProviderHandshakeResponse()

    def GetSchema(self, _request: Any, context: Any) -> Any:  # noqa: N802
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "the sandbox's provider has no schema")

    def GetMapping(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.GetMappingResponse()

    def GetMappings(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.GetMappingsResponse()

    def Cancel(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        self._stopped.set()
        return empty_pb2.Empty()

    def Attach(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        """To another engine (PULUMI_DEBUG_PROVIDERS): what the last one stopped is not its."""
        self._stopped = threading.Event()
        self._clouds = {}
        return empty_pb2.Empty()

    def CheckConfig(self, request: Any, _context: Any) -> Any:  # noqa: N802
        unknown = sorted(set(load(request.news)) - CONFIG_KEYS)
        failures = [
            provider_pb2.CheckFailure(
                property=key, reason=f"the sandbox's provider has no setting aws:{key}"
            )
            for key in unknown
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(self, request: Any, _context: Any) -> Any:  # noqa: N802
        old, new = load(request.olds), load(request.news)
        replaces = ["region"] if old.get("region") != new.get("region") else []
        return _diff_response(replaces, replaces, delete_first=False)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        given = load(request.args)
        environment = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        self._region = str(given.get("region") or environment or "")
        if not self._region:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                "no region is set: pulumi config set aws:region us-east-1",
            )
        try:
            self._cloud({})
        except NotLoopback as err:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(err))
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802
        known = FUNCTIONS.get(request.tok)
        if known is None:
            context.abort(
                grpc.StatusCode.UNIMPLEMENTED,
                f"the sandbox's provider has no function {request.tok}",
            )
            raise AssertionError
        names, function = known
        arguments = {key: value for key, value in load(request.args).items() if value is not None}
        unknown = sorted(set(arguments) - names - {"region"})
        if unknown:
            failures = [
                provider_pb2.CheckFailure(property=key, reason="the sandbox does not have it")
                for key in unknown
            ]
            return provider_pb2.InvokeResponse(failures=failures)
        with _telling(context, f"invoking {request.tok}"):
            result = function(self._cloud(arguments), arguments)
        return provider_pb2.InvokeResponse(**{"return": dump(result)})

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        old = load(request.olds)
        new = {key: value for key, value in load(request.news).items() if value is not None}
        failures = [
            provider_pb2.CheckFailure(property=name, reason=reason)
            for name, reason in kind.faults(new)
        ]
        if not failures:
            new = kind.named(_urn_name(request.urn), request.randomSeed, old, new)
        return provider_pb2.CheckResponse(inputs=dump(new), failures=failures)

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        old, new = load(request.old_inputs), load(request.news)
        return _diff_response(
            kind.changes(old, new),
            kind.replacements(old, new),
            delete_first=kind.delete_first(new),
        )

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        inputs = load(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(id="", properties=dump(kind.preview_new(inputs)))
        cloud = self._cloud(inputs)
        with _telling(context, f"creating {kind.label} ({_urn_name(request.urn)})"):
            name = kind.final_name(inputs, unique_suffix())
            resource_id = kind.create(cloud, name, inputs)
        try:
            kind.complete(cloud, resource_id, inputs)
            state = _read(kind, cloud, resource_id, inputs)
        except Exception as err:  # the resource exists: it must not be lost
            _abort_half_made(context, kind, cloud, resource_id, inputs, _said(err))
            raise AssertionError from err
        return provider_pb2.CreateResponse(id=resource_id, properties=dump(state))

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        inputs = load(request.inputs)
        cloud = self._cloud(inputs or load(request.properties))
        with _telling(context, f"reading {kind.label} ({request.id})"):
            state = kind.read(cloud, request.id, inputs)
        if state is None:
            return provider_pb2.ReadResponse(id="")
        if inputs:
            seen = kind.observed_inputs(inputs, state)
        else:  # an import: all that can be given
            seen = {key: state[key] for key in kind.inputs if state.get(key) not in (None, "")}
        return provider_pb2.ReadResponse(id=request.id, properties=dump(state), inputs=dump(seen))

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        old, new = load(request.old_inputs), load(request.news)
        if request.preview:
            after = kind.preview_changed(load(request.olds), old, new)
            return provider_pb2.UpdateResponse(properties=dump(after))
        cloud = self._cloud(new)
        with _telling(context, f"updating {kind.label} ({request.id})"):
            if kind.changes(old, new):
                kind.update(cloud, request.id, old, new)
            else:  # the engine wants what its creation did not bring about
                kind.complete(cloud, request.id, new)
            state = _read(kind, cloud, request.id, new)
        return provider_pb2.UpdateResponse(properties=dump(state))

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        state = load(request.properties)
        with _telling(context, f"deleting {kind.label} ({request.id})"):
            kind.delete(self._cloud(state), request.id, state)
        return empty_pb2.Empty()

    def _kind(self, urn: str, context: Any) -> Kind:
        token = urn.split("::")[-2].rpartition("$")[2]
        kind = BY_TOKEN.get(token)
        if kind is None:
            context.abort(
                grpc.StatusCode.UNIMPLEMENTED, f"the sandbox's provider has no resource {token}"
            )
            raise AssertionError
        return kind

    def _cloud(self, properties: Properties) -> Cloud:
        region = str(properties.get("region") or self._region)
        if has_unknown(region):
            region = self._region
        if region not in self._clouds:
            self._clouds[region] = Cloud(region, self._stopped)
        return self._clouds[region]


def main(version: str) -> None:
    """Serves on a loopback port, which the engine reads from standard output."""
    server = grpc.server(
        ThreadPoolExecutor(WORKERS),
        options=[
            ("grpc.max_receive_message_length", 1 << 29),
            ("grpc.max_send_message_length", 1 << 29),
        ],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(version), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    engine_pid = os.getppid()
    with contextlib.suppress(KeyboardInterrupt):
        while server.wait_for_termination(LOOK_ROUND_S) and os.getppid() == engine_pid:
            pass  # an engine that is killed takes nobody along
    server.stop(0)


def _plugin_info(version: str) -> Any:
    from pulumi.runtime.proto import plugin_pb2  # noqa: PLC0415 # one message of it

    return plugin_pb2.PluginInfo(version=version)


def _urn_name(urn: str) -> str:
    return urn.rpartition("::")[2]


@contextlib.contextmanager
def _telling(context: Any, doing: str) -> Iterator[None]:
    """Whatever goes wrong, AWS's own words reach the user, after what was being done."""
    try:
        yield
    except NoAnswer as err:
        context.abort(grpc.StatusCode.NOT_FOUND, f"{doing}: {err}")
    except Exception as err:  # noqa: BLE001 # a traceback would go nowhere
        context.abort(grpc.StatusCode.UNKNOWN, f"{doing}: {_said(err)}")


def _said(err: Exception) -> str:
    """The error in one line, as AWS words it; our own mistakes with their kind."""
    response = getattr(err, "response", None)
    if isinstance(response, dict) and "Error" in response:
        operation = getattr(err, "operation_name", "")
        error = response["Error"]
        return f"operation error {operation}, {error.get('Code')}: {error.get('Message')}"
    return str(err) if isinstance(err, Failed) else f"{type(err).__name__}: {err}"


def _read(kind: Kind, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties:
    state = kind.read(cloud, resource_id, inputs)
    if state is None:
        raise Failed(f"{resource_id} can't be found")
    return state


def _diff_response(changes: list[str], replaces: list[str], *, delete_first: bool) -> Any:
    difference = provider_pb2.PropertyDiff
    return provider_pb2.DiffResponse(
        changes=(
            provider_pb2.DiffResponse.DIFF_SOME if changes else provider_pb2.DiffResponse.DIFF_NONE
        ),
        diffs=changes,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and delete_first,
        detailedDiff={
            key: difference(
                kind=difference.UPDATE_REPLACE if key in replaces else difference.UPDATE,
                inputDiff=True,
            )
            for key in changes
        },
        hasDetailedDiff=True,
    )


def _abort_half_made(
    context: Any,
    kind: Kind,
    cloud: Cloud,
    resource_id: str,
    inputs: Properties,
    reason: str,
) -> None:
    """Tells the engine that the resource exists: it is kept in the state, and tried again."""
    state = inputs
    with contextlib.suppress(Exception):  # then what was asked for is all that is known
        state = _read(kind, cloud, resource_id, inputs)
    detail = any_pb2.Any()
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(
            id=resource_id, properties=dump(state), inputs=dump(inputs), reasons=[reason]
        )
    )
    message = f"creating {kind.label} ({resource_id}): {reason}"
    code = grpc.StatusCode.UNKNOWN
    status = status_pb2.Status(code=code.value[0], message=message, details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)
