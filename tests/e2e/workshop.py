"""Program and providers in one process that stays, for tests that call the engine many times.

A `pulumi` command starts a language host, lists packages, and imports the program and two
providers: four seconds, of which one is the engine's. Here that is done once; the command is told
where they listen (`--client`, PULUMI_DEBUG_PROVIDERS). Run as a program of its own: it prints the
addresses, and ends with its standard input.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from pulumi.automation._server import LanguageServer
from pulumi.runtime import config
from pulumi.runtime.proto import language_pb2_grpc, provider_pb2_grpc

from infra.jobs_plugin import Provider as JobsProvider
from sandbox.provider.plugin import VERSION
from sandbox.provider.server import Provider as AwsProvider

PROGRAM = Path(__file__).resolve().parents[2] / "__main__.py"


def run() -> None:
    """The program, told of its configuration in the way that a language host does."""
    os.environ["PULUMI_CONFIG"] = json.dumps(config.CONFIG.get())
    os.environ["PULUMI_CONFIG_SECRET_KEYS"] = json.dumps(sorted(config._SECRET_KEYS.get()))
    runpy.run_path(str(PROGRAM), run_name="__main__")


def main() -> None:
    # The program is run by a thread of the server, and only a main thread can take signals.
    signal.signal = lambda *_: None  # type: ignore[assignment, misc]
    servers = {name: grpc.server(ThreadPoolExecutor(32)) for name in ("client", "aws", "jobs")}
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageServer(run), servers["client"])
    add = provider_pb2_grpc.add_ResourceProviderServicer_to_server
    add(AwsProvider(VERSION), servers["aws"])
    add(JobsProvider(), servers["jobs"])
    ports = {name: server.add_insecure_port("127.0.0.1:0") for name, server in servers.items()}
    for server in servers.values():
        server.start()
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    for server in servers.values():
        server.stop(0)


if __name__ == "__main__":
    main()
