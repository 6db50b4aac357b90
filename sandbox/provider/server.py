"""The provider's side of Pulumi's gRPC protocol.

Not pulumi.provider.experimental: that one answers failures with a Python traceback, can't
report a resource that was made and then failed, and makes one resource at a time.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from sandbox.provider.cloud import Cloud, NotLoopback, TookTooLong
from sandbox.provider.functions import FUNCTIONS, NoAnswer
from sandbox.provider.kind import HalfMade, Kind
from sandbox.provider.wire import UNKNOWN, Properties, dump, has_unknown, load

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


def kinds() -> dict[str, Kind]:
    """All resource types, by token."""
    from sandbox.provider import (  # noqa: PLC0415 # one file a service
        kinds_batch,
        kinds_ec2,
        kinds_iam,
        kinds_logs,
    )

    modules = (kinds_batch, kinds_ec2, kinds_iam, kinds_logs)
    return {kind.token: kind for module in modules for kind in module.KINDS}


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._kinds = kinds()
        self._clouds: dict[str, Cloud] = {}
        self._region = ""

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
        return empty_pb2.Empty()

    def Attach(self, _request: Any, _context: Any) -> Any:  # noqa: N802
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
        try:
            result = function(self._cloud(arguments), arguments)
        except NoAnswer as err:
            context.abort(grpc.StatusCode.NOT_FOUND, f"invoking {request.tok}: {err}")
        except Exception as err:  # noqa: BLE001 # whatever AWS said goes to the user
            context.abort(grpc.StatusCode.UNKNOWN, f"invoking {request.tok}: {_said(err)}")
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
        for name in request.ignoreChanges:
            if name in old:
                new[name] = old[name]
        changes = kind.changes(old, new)
        return _diff_response(
            changes, kind.replacements(old, new), delete_first=kind.delete_first(new)
        )

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        inputs = load(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(id="", properties=dump(kind.preview_state(inputs)))
        cloud = self._cloud(inputs)
        try:
            resource_id = kind.create(cloud, kind.final_name(inputs), inputs)
            state = self._state(kind, cloud, resource_id, inputs)
        except HalfMade as err:
            state = kind.read(cloud, err.resource_id, inputs) or inputs
            _abort_half_made(context, kind, err, state, inputs)
        except Exception as err:  # noqa: BLE001 # whatever AWS said goes to the user
            context.abort(grpc.StatusCode.UNKNOWN, f"creating {kind.label}: {_said(err)}")
        return provider_pb2.CreateResponse(id=resource_id, properties=dump(state))

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        inputs = load(request.inputs)
        cloud = self._cloud(inputs or load(request.properties))
        try:
            state = kind.read(cloud, request.id, inputs)
        except Exception as err:  # noqa: BLE001 # whatever AWS said goes to the user
            context.abort(grpc.StatusCode.UNKNOWN, f"reading {kind.label}: {_said(err)}")
        if state is None:
            return provider_pb2.ReadResponse(id="")
        if inputs:
            seen = kind.observed_inputs(inputs, state)
        else:  # an import: all that can be given
            seen = {key: state[key] for key in kind.inputs if state.get(key) not in (None, "")}
        return provider_pb2.ReadResponse(id=request.id, properties=dump(state), inputs=dump(seen))

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        state, new = load(request.olds), load(request.news)
        old = load(request.old_inputs)
        for name in request.ignoreChanges:
            if name in old:
                new[name] = old[name]
        if request.preview:
            after = state | new | dict.fromkeys(kind.changing, UNKNOWN)
            if "tags" in kind.outputs:
                after["tagsAll"] = new.get("tags", {})
            return provider_pb2.UpdateResponse(properties=dump(after))
        cloud = self._cloud(new)
        try:
            kind.update(cloud, request.id, old, new)
            state = self._state(kind, cloud, request.id, new)
        except Exception as err:  # noqa: BLE001 # whatever AWS said goes to the user
            context.abort(
                grpc.StatusCode.UNKNOWN, f"updating {kind.label} ({request.id}): {_said(err)}"
            )
        return provider_pb2.UpdateResponse(properties=dump(state))

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = self._kind(request.urn, context)
        state = load(request.properties)
        try:
            kind.delete(self._cloud(state), request.id, state)
        except Exception as err:  # noqa: BLE001 # whatever AWS said goes to the user
            context.abort(
                grpc.StatusCode.UNKNOWN, f"deleting {kind.label} ({request.id}): {_said(err)}"
            )
        return empty_pb2.Empty()

    def _kind(self, urn: str, context: Any) -> Kind:
        token = urn.split("::")[-2].rpartition("$")[2]
        kind = self._kinds.get(token)
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
            self._clouds[region] = Cloud(region)
        return self._clouds[region]

    @staticmethod
    def _state(kind: Kind, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties:
        state = kind.read(cloud, resource_id, inputs)
        if state is None:
            raise TookTooLong(f"{resource_id} can't be found after it was made")
        return state


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
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(0)


def _plugin_info(version: str) -> Any:
    from pulumi.runtime.proto import plugin_pb2  # noqa: PLC0415 # one message of it

    return plugin_pb2.PluginInfo(version=version)


def _urn_name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _said(err: Exception) -> str:
    """The error in one line, as AWS words it."""
    response = getattr(err, "response", None)
    if isinstance(response, dict) and "Error" in response:
        operation = getattr(err, "operation_name", "")
        error = response["Error"]
        return f"operation error {operation}, {error.get('Code')}: {error.get('Message')}"
    return f"{type(err).__name__}: {err}" if not str(err) else str(err)


def _diff_response(changes: list[str], replaces: list[str], *, delete_first: bool) -> Any:
    kinds_ = provider_pb2.PropertyDiff
    return provider_pb2.DiffResponse(
        changes=(
            provider_pb2.DiffResponse.DIFF_SOME if changes else provider_pb2.DiffResponse.DIFF_NONE
        ),
        diffs=changes,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and delete_first,
        detailedDiff={
            key: kinds_(
                kind=kinds_.UPDATE_REPLACE if key in replaces else kinds_.UPDATE, inputDiff=True
            )
            for key in changes
        },
        hasDetailedDiff=True,
    )


def _abort_half_made(
    context: Any, kind: Kind, err: HalfMade, state: Properties, inputs: Properties
) -> None:
    """Tells the engine that the resource exists: it is kept in the state, and tried again."""
    detail = any_pb2.Any()
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(
            id=err.resource_id,
            properties=dump(state),
            inputs=dump(inputs),
            reasons=[str(err)],
        )
    )
    message = f"creating {kind.label} ({err.resource_id}): {err}"
    code = grpc.StatusCode.UNKNOWN
    status = status_pb2.Status(code=code.value[0], message=message, details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)
