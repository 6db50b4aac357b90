"""The status page: who gets it, what it shows, in a real browser."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.browser import browser, find
from tests.sandbox.conftest import World, until

pytestmark = pytest.mark.slow


BROKEN = """
(() => {
  const lines = cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
  };
  return [...document.querySelectorAll("th, td")]
    .filter(cell => /^[A-Za-z]{1,12}$/.test(cell.innerText) && lines(cell) > 1)
    .map(cell => cell.innerText);
})()
"""
"""The single words that the page shows in several lines."""


def get(world: World, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", world.sandbox.port, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def cookie(world: World, key: str) -> dict[str, str]:
    return {"Cookie": f"other=1; sandbox-{world.sandbox.port}={key}"}


def test_only_who_has_the_key_sees_it(world: World) -> None:
    key = world.sandbox.app.key
    for path, headers in (("/", {}), ("/?key=guessed", {}), ("/", cookie(world, "guessed"))):
        status, _, text = get(world, path, **headers)
        assert status == 403
        assert "python -m sandbox page" in text
    status, headers, _ = get(world, f"/?key={key}")
    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
    assert get(world, "/", **cookie(world, key))[0] == 200
    for bad in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert get(world, "/", **(cookie(world, key) | bad))[0] == 403


def test_it_shows_what_there_is_and_escapes_it(world: World) -> None:
    job = world.over(world.submit("sh", "-c", "echo '<script>alert(1)</script>'; exit 3"))
    world.sandbox.fault("latency", operation="<b>")
    held = cookie(world, world.sandbox.app.key)
    _, headers, text = get(world, "/", **held)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    for part in (job["jobId"], "c6g.medium", 'id="queues"', "&lt;b&gt;"):
        assert part in text
    status, _, text = get(world, f"/job/{job['jobId']}", **held)
    assert status == 200
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script" not in text
    assert get(world, "/job/nope", **held)[0] == 404
    assert get(world, "/job/%3Cscript%3E", **held)[2].count("<script") == 0
    world.sandbox.app.faults.clear()


@pytest.mark.skipif(find() is None, reason="no Chromium on PATH: apt-get install chromium")
def test_in_a_browser_it_follows_what_happens(world: World, tmp_path: Path) -> None:
    """Opened once, it shows new jobs, their end and their log without being asked again."""
    program = find()
    assert program
    with browser(program, tmp_path / "profile") as tab:
        tab.open(f"{world.sandbox.endpoint}/?key={world.sandbox.app.key}")
        tab.wait_for("Compute environments")
        assert tab.evaluate("location.search") == ""
        job_id = world.submit("sh", "-c", "echo seen '<img src=x onerror=alert(1)>'; sleep 60")
        tab.wait_for(job_id)
        until(lambda: world.lines(world.job(job_id)))
        world.sandbox.interrupt(job_id)
        assert "Host EC2" in tab.wait_for(f"job {job_id}, instance i-")
        world.submit("true", jobName="n" * 128)
        tab.wait_for("n" * 128)
        assert tab.evaluate(BROKEN) == []
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        tab.evaluate(f"document.querySelector('a[href=\"/job/{job_id}\"]').click()")
        tab.wait_for("seen <img src=x onerror=alert(1)>")
        assert tab.evaluate("document.images.length") == 0
        failures: list[Any] = [
            event for event in tab.events if event.get("method") in {"Log.entryAdded", "Runtime.exceptionThrown"}
        ]  # fmt: skip
        assert [f for f in failures if "favicon" not in str(f)] == []
