"""submit.images against a real registry, and against one that answers nonsense."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from submit import api, doctor
from submit.errors import Refused
from submit.findings import Verdict
from submit.images import fetching
from submit.images.check import check_image
from submit.images.credentials import docker_credentials
from submit.images.fetching import Denied, NoAnswer, NotFound
from submit.images.names import parse_image
from submit.images.registry import TOKEN_USER, look_up
from tests.submit.fake import FLEET
from tests.submit.images.conftest import PASSWORD, USER, Registry

pytestmark = pytest.mark.slow
ARM, X86 = "c6g-medium", "c6i-large"
BOTH = msgspec.structs.replace(
    FLEET,
    queues={
        ARM: FLEET.queues[ARM],
        X86: msgspec.structs.replace(FLEET.queues[ARM], arch="x86_64", instance_type="c6i.large"),
    },
)


def nobody() -> None:
    return None


def check(
    image: str, queue: str = ARM, environ: dict[str, str] | None = None
) -> tuple[str | None, list[str]]:
    notes: list[str] = []
    digest = check_image(image, BOTH, queue, environ or {}, notes.append)
    return digest, notes


@pytest.mark.parametrize("docker", [False, True], ids=["OCI", "Docker"])
def test_an_image_of_both_kinds_of_types(registry: Registry, docker: bool) -> None:  # noqa: FBT001
    many = registry.put_index("lab/ppo", f"many-{docker}", "amd64", "arm64", docker=docker)
    found = look_up(parse_image(f"{registry.host}/lab/ppo:many-{docker}"), nobody)
    assert (found.digest, found.platforms) == (many, ("linux/amd64", "linux/arm64"))
    one = registry.put_image("lab/ppo", f"one-{docker}", "arm64", docker=docker)
    found = look_up(parse_image(f"{registry.host}/lab/ppo@{one}"), nobody)
    assert (found.digest, found.platforms) == (one, ("linux/arm64",))


def test_an_index_that_does_not_tell_a_platform_is_looked_into(registry: Registry) -> None:
    """As some tools make them: without platforms, with empty ones, with a signature beside."""
    arm, x86 = (registry.put_image("lab/odd", arch, arch) for arch in ("arm64", "amd64"))
    chart = registry.put_image("lab/odd", "chart", "", config_kind="application/x.chart+json")
    note = {"vnd.docker.reference.type": "attestation-manifest"}
    registry.put_entries(
        "lab/odd",
        "bare",
        {"digest": arm},
        {"digest": chart},
        {"digest": x86, "annotations": note},
    )
    registry.put_entries(
        "lab/odd", "empty", {"digest": arm, "platform": {"architecture": "", "os": ""}}
    )
    inner = registry.put_entries("lab/odd", "inner", {"digest": arm})
    kind = "application/vnd.oci.image.index.v1+json"
    registry.put_entries("lab/odd", "nested", {"digest": inner, "mediaType": kind})
    for tag in ("bare", "empty", "nested"):
        image = f"{registry.host}/lab/odd:{tag}"
        assert look_up(parse_image(image), nobody).platforms == ("linux/arm64",), tag
        with pytest.raises(Refused, match="is built for linux/arm64, and"):
            check(image, X86)


@pytest.mark.parametrize(
    ("arch", "said", "platform"),
    [
        ("aarch64", {}, "linux/arm64"),
        ("x86_64", {}, "linux/amd64"),
        ("arm64", {"os": "Linux", "variant": "v8"}, "linux/arm64"),
        ("arm", {"variant": "v7"}, "linux/arm"),
        ("amd64", {"os": "windows"}, "windows/amd64"),
        ("amd64", {"os": None}, None),
    ],
)
def test_platforms_as_other_tools_write_them(
    registry: Registry, arch: str, said: dict[str, object], platform: str | None
) -> None:
    registry.put_image("lab/named", "1", arch, **said)
    image = f"{registry.host}/lab/named:1"
    if platform is None:
        with pytest.raises(NoAnswer, match="can't be read"):
            look_up(parse_image(image), nobody)
    else:
        assert look_up(parse_image(image), nobody).platforms == (platform,)


def test_what_is_no_image_is_refused(registry: Registry) -> None:
    kind = "application/vnd.cncf.helm.config.v1+json"
    registry.put_image("lab/chart", "1", "", config_kind=kind)
    with pytest.raises(Refused, match=f"nothing that a machine can run, but {re.escape(kind)}"):
        check(f"{registry.host}/lab/chart:1")


def test_an_image_of_no_told_platform_is_pinned_and_noted(registry: Registry) -> None:
    digest = registry.put_image("lab/silent", "1", "")
    found, notes = check(f"{registry.host}/lab/silent:1")
    assert found == digest
    assert "does not say for which machines" in notes[0]


def test_an_image_for_other_machines_is_refused_with_the_ways_out(registry: Registry) -> None:
    digest = registry.put_index("lab/ppo", "x86", "amd64")
    image = f"{registry.host}/lab/ppo:x86"
    with pytest.raises(Refused) as found:
        check(image)
    assert f"{image} is built for linux/amd64, and {ARM} (c6g.medium) runs linux/arm64" in (
        found.value.message
    )
    assert found.value.hint == f"submit image build --push --archs linux/arm64, or --queue {X86}"
    assert check(image, X86) == (digest, [])


def test_an_image_that_there_is_not_is_refused(registry: Registry) -> None:
    registry.put_image("lab/ppo", "latest", "arm64")
    assert check(f"{registry.host}/lab/ppo")[0]
    for image in ("lab/ppo:none", "lab/none:1", f"lab/ppo@sha256:{'0' * 64}"):
        with pytest.raises(Refused, match=f"has no image {registry.host}/{image}") as found:
            check(f"{registry.host}/{image}")
        assert "--no-image-check" in found.value.hint


def test_a_registry_that_wants_to_know_who_asks(closed_registry: Registry, tmp_path: Path) -> None:
    digest = closed_registry.put_index("lab/ppo", "1", "arm64")
    image = f"{closed_registry.host}/lab/ppo:1"
    assert look_up(parse_image(image), lambda: (USER, PASSWORD)).digest == digest
    with pytest.raises(Denied):
        look_up(parse_image(image), nobody)
    with pytest.raises(Denied):
        look_up(parse_image(image), lambda: (USER, "wrong"))
    with pytest.raises(Refused, match="does not show") as found:
        check(image, environ={"HOME": str(tmp_path)})
    assert f"docker login {closed_registry.host}" in found.value.hint
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    config = {"auths": {closed_registry.host: {"auth": auth}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert check(image, environ={"DOCKER_CONFIG": str(tmp_path)}) == (digest, [])


class Nonsense(http.server.BaseHTTPRequestHandler):
    """Answers with what the server's `answer` holds: status, headers, body, letters that lack."""

    server: NonsenseServer

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        told = self.rfile.read(length).decode()
        self.server.asked.append({**self.headers, "path": self.path, "told": told})
        status, headers, body, lack = self.server.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + lack))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # its name there
        pass


class NonsenseServer(http.server.ThreadingHTTPServer):
    asked: list[dict[str, str]]
    answer: tuple[int, dict[str, str], bytes, int]
    words = ""


@contextlib.contextmanager
def nonsense() -> Iterator[NonsenseServer]:
    with NonsenseServer(("127.0.0.1", 0), Nonsense) as server:
        server.asked = []
        server.answer = (200, {}, b"", 0)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


UNSAFE = {"WWW-Authenticate": 'Bearer realm="ftp://x/token",service="s"'}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {}, b"<html>", 0), "its answer can't be read"),
        ((200, {}, b'{"schemaVersion": 1, "architecture": "amd64"}', 0), "first format"),
        ((200, {}, b"{}", 0), "neither an index nor an image"),
        ((200, {}, b'{"manifests": [{"digest": 5}]}', 0), r"\$.manifests\[0\].digest"),
        ((200, {}, b"\xff", 0), "can't be read"),
        ((200, {}, b'{"manif', 50), "cut off"),
        ((200, {}, b"x" * 2000, 0), "longer than"),
        ((429, {"Retry-After": "60"}, b"", 0), "429: again in 60 s"),
        ((429, {}, b"", 0), r"\(429\)"),
        ((500, {}, b"oops", 0), "it answers 500"),
        ((503, {}, b"", 0), "it answers 503"),
        ((401, {}, b"", 0), "does not say how"),
        ((401, UNSAFE, b"", 0), "not safe"),
        ((302, {"Location": "ftp://x/y"}, b"", 0), "leads on to ftp://x/y, which is not safe"),
        ((302, {"Location": "/v2/again"}, b"", 0), "302"),
    ],
)
def test_an_odd_answer_is_told_and_the_submission_goes_on(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[int, dict[str, str], bytes, int], said: str
) -> None:
    monkeypatch.setattr(fetching, "MOST_BYTES", 1000)
    with nonsense() as server:
        server.answer = answer
        image = f"127.0.0.1:{server.server_port}/lab/ppo:1"
        with pytest.raises(NoAnswer, match=said):
            look_up(parse_image(image), nobody)
        digest, notes = check(image)
    assert digest is None
    assert len(notes) == 1
    assert notes[0].endswith("it goes on unchecked")
    assert image in notes[0]


def test_a_registry_that_is_not_there_is_told() -> None:
    digest, notes = check("127.0.0.1:9/lab/ppo")
    assert digest is None
    assert "could not be looked up at 127.0.0.1:9: " in notes[0]


def test_a_redirect_does_not_carry_the_password_away() -> None:
    with nonsense() as first, nonsense() as second:
        first.answer = (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"", 0)
        target = f"http://127.0.0.1:{second.server_port}/elsewhere"
        original = first.RequestHandlerClass.do_GET  # type: ignore[attr-defined]

        def then_redirect(handler: Nonsense) -> None:
            if handler.headers.get("Authorization"):
                handler.server.answer = (307, {"Location": target}, b"", 0)
            original(handler)

        handler = type("Redirecting", (Nonsense,), {"do_GET": then_redirect})
        first.RequestHandlerClass = handler
        second.answer = (404, {}, b"", 0)
        with pytest.raises(NotFound):
            look_up(parse_image(f"127.0.0.1:{first.server_port}/a"), lambda: ("u", "p"))
        assert [("Authorization" in asked) for asked in first.asked] == [False, True]
        assert ["Authorization" in asked for asked in second.asked] == [False]


class Shy(Nonsense):
    """Wants a token, with the server's words for it, and gives one to whoever asks for it."""

    def do_GET(self) -> None:
        if self.path.startswith("/token"):
            self.server.answer = (200, {}, b'{"access_token": "t0k3n"}', 0)
        elif self.headers.get("Authorization") == "Bearer t0k3n":
            self.server.answer = (404, {}, b"", 0)
        else:
            words = self.server.words.replace("HERE", f"http://127.0.0.1:{self.server.server_port}")
            self.server.answer = (401, {"WWW-Authenticate": words}, b"", 0)
        super().do_GET()

    def do_POST(self) -> None:
        self.do_GET()


@pytest.mark.parametrize(
    "words",
    [
        'Basic realm="x", Bearer realm="HERE/token?a=b",service="s",scope="repository:a:pull"',
        "bearer  realm=HERE/token?a=b , scope=repository:a:pull,service=s",
        r'Digest realm="a \"b\"", BEARER realm="HERE/token?a=b",SERVICE="s",scope="repository:a:pull"',
    ],
)
def test_a_token_is_bought_in_whatever_words_it_is_wanted(words: str) -> None:
    """Rather than to hand out a password; and with a token in place of one, as Docker does."""
    for credentials in (("u", "p"), (TOKEN_USER, "r3fr3sh")):
        with nonsense() as server:
            server.RequestHandlerClass, server.words = Shy, words
            with pytest.raises(NotFound):
                look_up(parse_image(f"127.0.0.1:{server.server_port}/a"), lambda: credentials)  # noqa: B023
            _, bought, _ = server.asked
        where, _, query = bought["path"].partition("?")
        asked = urllib.parse.parse_qs(f"{query}&{bought['told']}")
        assert (where, asked["a"], asked["service"]) == ("/token", ["b"], ["s"])
        assert asked["scope"] == ["repository:a:pull"]
        if credentials[0] == TOKEN_USER:
            assert (asked["grant_type"], asked["refresh_token"]) == (["refresh_token"], ["r3fr3sh"])
            assert "Authorization" not in bought
        else:
            assert bought["Authorization"] == "Basic dTpw"


def test_a_server_that_never_ends_its_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_S", 0.2)

    def drip(handler: Nonsense) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(1000):
                handler.wfile.write(b" ")
                time.sleep(0.02)

    with nonsense() as server:
        server.RequestHandlerClass = type("Dripping", (Nonsense,), {"do_GET": drip})
        with pytest.raises(NoAnswer, match="has not ended"):
            look_up(parse_image(f"127.0.0.1:{server.server_port}/a"), nobody)


def test_what_is_asked_on_this_machine_goes_through_no_proxy(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could carry a password away."""
    digest = registry.put_image("lab/ppo", "near", "arm64")
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert check(f"{registry.host}/lab/ppo:near") == (digest, [])


def test_a_token_that_docker_keeps_in_place_of_a_password(tmp_path: Path) -> None:
    auth = base64.b64encode(b"00000000-0000-0000-0000-000000000000:").decode()
    entry = {"auth": auth, "identitytoken": "r3fr3sh"}
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"lab.example.com": entry}}))
    environ = {"DOCKER_CONFIG": str(tmp_path)}
    assert docker_credentials("lab.example.com", environ) == (TOKEN_USER, "r3fr3sh")


def test_where_aws_is_on_this_machine_nobody_pulls_images() -> None:
    environ = {"AWS_ENDPOINT_URL": "http://127.0.0.1:5000"}
    assert check("ghcr.io/lab/ppo:1", environ=environ) == (None, [])


def test_the_doctor_looks_at_the_image_of_the_stack(registry: Registry, tmp_path: Path) -> None:
    """On each kind of machine that the fleet has: the digest, or why runs there would be refused."""
    digest = registry.put_index("lab/ppo", "doctor", "amd64")
    session = api.Session(environ={}, cwd=tmp_path)
    fleet = msgspec.structs.replace(BOTH, image=f"{registry.host}/lab/ppo:doctor")
    arm, x86 = doctor.look_at_image(session, fleet)
    assert (arm.what, arm.verdict) == ("image on arm64", Verdict.PROBLEM)
    assert "--archs linux/arm64" in arm.next
    assert (x86.what, x86.verdict) == ("image on x86_64", Verdict.OK)
    assert digest in x86.says
    gone = msgspec.structs.replace(fleet, image=f"{registry.host}/lab/ppo:gone")
    assert {one.verdict for one in doctor.look_at_image(session, gone)} == {Verdict.PROBLEM}
    (none,) = doctor.look_at_image(session, msgspec.structs.replace(fleet, image=None))
    assert none.verdict is Verdict.OK
