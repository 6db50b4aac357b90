"""A real registry on loopback, with or without tokens, and images that are put into it by HTTP."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

OCI = "application/vnd.oci.image"
DOCKER = "application/vnd.docker.distribution.manifest"
USER, PASSWORD = "ada", "a pass:word"


class Registry:
    """`host` is its name in an image's. `put_image` and `put_index` answer with digests."""

    def __init__(self, host: str, token: str | None = None) -> None:
        self.host = host
        self._token = token

    def put_image(
        self,
        name: str,
        tag: str,
        arch: str,
        *,
        docker: bool = False,
        config_kind: str = "",
        **said: object,
    ) -> str:
        """An image for one architecture, without a layer; its configuration has what is `said`."""
        config = json.dumps({"architecture": arch, "os": "linux", "rootfs": {}} | said).encode()
        self._put_blob(name, config)
        kind = f"{DOCKER}.v2+json" if docker else f"{OCI}.manifest.v1+json"
        config_kind = config_kind or (
            "application/vnd.docker.container.image.v1+json" if docker else f"{OCI}.config.v1+json"
        )
        manifest = {
            "schemaVersion": 2,
            "mediaType": kind,
            "config": {"mediaType": config_kind, "size": len(config), "digest": _digest(config)},
            "layers": [],
        }
        return self.put_manifest(name, tag, manifest)

    def put_index(self, name: str, tag: str, *archs: str, docker: bool = False) -> str:
        """One name for an image of each architecture, and BuildKit's attestation beside them."""
        kind = f"{DOCKER}.v2+json" if docker else f"{OCI}.manifest.v1+json"
        entries = []
        for arch in (*archs, "unknown"):
            digest = self.put_image(name, f"{tag}-{arch}", arch, docker=docker)
            platform = {"architecture": arch, "os": "unknown" if arch == "unknown" else "linux"}
            entries.append({"mediaType": kind, "size": 1, "digest": digest, "platform": platform})
        index = f"{DOCKER}.list.v2+json" if docker else f"{OCI}.index.v1+json"
        manifest = {"schemaVersion": 2, "mediaType": index, "manifests": entries}
        return self.put_manifest(name, tag, manifest)

    def put_entries(self, name: str, tag: str, *entries: dict[str, Any]) -> str:
        """An index that holds just these: a digest, and what more is said of it."""
        full = [{"mediaType": f"{OCI}.manifest.v1+json", "size": 1} | entry for entry in entries]
        kind = f"{OCI}.index.v1+json"
        return self.put_manifest(
            name, tag, {"schemaVersion": 2, "mediaType": kind, "manifests": full}
        )

    def put_manifest(self, name: str, tag: str, manifest: dict[str, Any]) -> str:
        body = json.dumps(manifest).encode()
        self._call("PUT", f"/v2/{name}/manifests/{tag}", body, str(manifest["mediaType"]))
        return _digest(body)

    def _put_blob(self, name: str, body: bytes) -> None:
        place = self._call("POST", f"/v2/{name}/blobs/uploads/", b"").headers["Location"]
        joint = "&" if "?" in place else "?"
        query = urllib.parse.urlencode({"digest": _digest(body)})
        self._call("PUT", f"{place}{joint}{query}", body, "application/octet-stream")

    def _call(self, method: str, url: str, body: bytes, kind: str = "") -> Any:
        full = url if url.startswith("http") else f"http://{self.host}{url}"
        request = urllib.request.Request(  # noqa: S310 # http, to this machine
            full, body, {"Content-Type": kind}, method=method
        )
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 # likewise
            answer.read()
            return answer


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """One that asks nobody who he is."""
    with _serving(tmp_path_factory.mktemp("registry"), {}) as host:
        yield Registry(host)


@pytest.fixture(scope="session")
def closed_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """One that wants a token, which is given to a user with a password alone."""
    folder = tmp_path_factory.mktemp("closed")
    with _token_server(folder) as (realm, make_token):
        auth = {
            "token": {
                "realm": realm,
                "service": "test-registry",
                "issuer": "test",
                "rootcertbundle": str(folder / "cert.pem"),
            }
        }
        with _serving(folder, auth) as host:
            yield Registry(host, make_token("repository:lab/ppo:pull,push"))


@contextlib.contextmanager
def _serving(folder: Path, auth: dict[str, Any]) -> Iterator[str]:
    program = shutil.which("docker-registry")
    if not program:
        pytest.skip("docker-registry is not installed (Debian: apt-get install docker-registry)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{probe.getsockname()[1]}"
    config = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": host, "secret": "for tests"},
        **({"auth": auth} if auth else {}),
    }
    (folder / "config.yml").write_text(json.dumps(config))  # JSON is YAML
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", str(folder / "config.yml")], stdout=log, stderr=log
        )
    try:
        _wait_for(host, process, folder / "log")
        yield host
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait_for(host: str, process: subprocess.Popen[bytes], log: Path) -> None:
    name, _, port = host.partition(":")
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection((name, int(port)), timeout=1):
            return
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    raise AssertionError(f"no registry at {host}: {log.read_text()}")


@contextlib.contextmanager
def _token_server(folder: Path) -> Iterator[tuple[str, Any]]:
    """Gives tokens as the registry's documentation has them: to pull, to the user above."""
    make_token = _signer(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            given = self.headers.get("Authorization")
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            scope = query.get("scope", [""])[0] if given == wanted else ""
            body = json.dumps({"token": make_token(scope)}).encode()
            self.send_response(401 if given and given != wanted else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/token", make_token
        finally:
            server.shutdown()
            thread.join()


def _signer(folder: Path) -> Any:
    from cryptography import x509  # noqa: PLC0415 # moto brings it
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: PLC0415

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(timezone.utc)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    der = base64.b64encode(cert.public_bytes(serialization.Encoding.DER)).decode()

    def make_token(scope: str) -> str:
        kind, _, rest = scope.partition(":")
        repository, _, actions = rest.rpartition(":")
        access = [{"type": kind, "name": repository, "actions": actions.split(",")}]
        at = int(time.time())
        times = {"exp": at + 600, "nbf": at - 10, "iat": at}
        claims = {"iss": "test", "sub": USER, "aud": "test-registry", "jti": "1", **times}
        claims["access"] = access if scope else []
        head = {"typ": "JWT", "alg": "RS256", "x5c": [der]}
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in (head, claims))
        signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64url(signature)}"

    return make_token


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
