"""A stand-in for W&B's server on one loopback port, as much of it as its own client talks to.

The client feeds it: runs begin, log and end here; the public API then asks for them. What it was
asked by name that it does not know is an error, never an empty success.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789abcdef" * 3


class Standin:
    """`runs` by id. `answer_with` is sent in place of any answer about runs, where it is set:
    a status, a body, and whether the body is cut off.
    """

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.operations: list[str] = []
        self.answer_with: tuple[int, bytes, bool] | None = None
        self.url = ""

    def run(self, run_id: str, state: str, **summary: float) -> None:
        """A run that is there already."""
        self.runs[run_id] = _new_run(run_id) | {"state": state, "summary": summary}

    def answer(self, operation: str, variables: dict[str, Any]) -> Any:
        self.operations.append(operation)
        return {
            "CreateRunFiles": self._create_files,
            "OrganizationCoreWeaveOrganizationID": self._organization,
            "RunFullHistory": self._history,
            "RunResumeStatus": self._resume_status,
            "Runs": self._list_runs,
            "UpsertBucket": self._upsert,
            "Viewer": self._viewer,
        }[operation](variables)

    def _viewer(self, _: dict[str, Any]) -> Any:
        viewer = {"id": "v", "entity": "lab", "username": "ada", "email": "ada@lab", "flags": "{}"}
        return {"viewer": viewer | {"teams": {"edges": []}}}

    def _resume_status(self, asked: dict[str, Any]) -> Any:
        run = self.runs.get(asked["name"])
        entity = {"id": "e", "name": "lab"}
        model = {"id": "p", "name": "atari", "entity": entity, "bucket": None}
        if run:
            model["bucket"] = {
                "id": run["id"],
                "name": run["id"],
                "summaryMetrics": json.dumps(run["summary"]),
                "displayName": run["displayName"],
                "logLineCount": 0,
                "historyLineCount": len(run["history"]),
                "eventsLineCount": 0,
                "historyTail": json.dumps([json.dumps(row) for row in run["history"][-1:]]),
                "eventsTail": "[]",
                "config": "{}",
                "tags": run["tags"],
                "notes": None,
                "wandbConfig": '{"t": 1}',
            }
        return {"model": model}

    def _upsert(self, asked: dict[str, Any]) -> Any:
        inserted = asked["name"] not in self.runs
        run = self.runs.setdefault(asked["name"], _new_run(asked["name"]))
        run["state"] = "running"
        for ours, theirs in (("group", "groupName"), ("displayName", "displayName")):
            run[ours] = asked.get(theirs) or run[ours]
        run["tags"] = asked.get("tags") or run["tags"]
        run["project"] = f"{asked['entity']}/{asked['project']}"
        entity = {"id": "e", "name": asked["entity"]}
        bucket = {
            "id": run["id"],
            "name": run["id"],
            "displayName": run["displayName"],
            "description": None,
            "config": "{}",
            "sweepName": None,
            "project": {"id": "p", "name": asked["project"], "entity": entity},
            "historyLineCount": len(run["history"]),
        }
        return {"upsertBucket": {"bucket": bucket, "inserted": inserted}}

    def _create_files(self, asked: dict[str, Any]) -> Any:
        files = [{"name": name, "uploadUrl": f"{self.url}/upload"} for name in asked["files"]]
        return {"createRunFiles": {"runID": asked["run"], "uploadHeaders": [], "files": files}}

    def _organization(self, _: dict[str, Any]) -> Any:
        return {"entity": {"organization": {"coreWeaveOrganizationId": None}}}

    def _list_runs(self, asked: dict[str, Any]) -> Any:
        if f"{asked['entity']}/{asked['project']}" != "lab/atari":
            return {"project": None}
        wanted = json.loads(asked["filters"])
        found = [run for run in self.runs.values() if _matches(run, wanted)]
        start = int(asked.get("cursor") or 0)
        page = found[start : start + asked["perPage"]]
        edges = [
            {"node": _node(run), "cursor": str(start + place + 1)} for place, run in enumerate(page)
        ]
        more = start + len(page) < len(found)
        info = {"endCursor": edges[-1]["cursor"] if edges else None, "hasNextPage": more}
        runs = {"edges": edges, "pageInfo": info}
        project = {"internalId": "7", "runCount": len(found), "readOnly": False, "runs": runs}
        return {"project": project}

    def _history(self, asked: dict[str, Any]) -> Any:
        rows = self.runs[asked["name"]]["history"]
        return {"project": {"run": {"history": [json.dumps(row) for row in rows]}}}

    def stream(self, run_id: str, sent: dict[str, Any]) -> None:
        """The file stream's part: history, summary, and how it ended."""
        run = self.runs[run_id]
        for name, chunk in (sent.get("files") or {}).items():
            rows = (
                [json.loads(row) for row in chunk["content"]]
                if "jsonl" in name or "summary" in name
                else []
            )
            if "history" in name:
                run["history"] = run["history"][: chunk["offset"]] + rows
            elif "summary" in name and rows:
                run["summary"] = rows[-1]
        if sent.get("complete"):
            run["state"] = "finished" if sent.get("exitcode") == 0 else "failed"


def _new_run(run_id: str) -> dict[str, Any]:
    blank = {"group": None, "displayName": run_id, "tags": [], "project": "lab/atari"}
    return {"id": run_id, "state": "running", "history": [], "summary": {}, **blank}


def _node(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": run["id"],
        "projectId": "7",
        "name": run["id"],
        "displayName": run["displayName"],
        "tags": run["tags"],
        "state": run["state"],
        "group": run["group"],
        "config": "{}",
        "summaryMetrics": json.dumps(run["summary"]),
        "systemMetrics": "{}",
        "historyLineCount": len(run["history"]),
        "historyKeys": None,
        "sweepName": None,
        "jobType": None,
        "commit": None,
        "readOnly": False,
        "createdAt": "2026-01-01T00:00:00",
        "heartbeatAt": "2026-01-01T00:00:00",
        "description": None,
        "notes": None,
        "user": {"name": "Ada", "username": "ada"},
    }


def _matches(run: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """As much of the filters' language as is used."""
    for name, condition in wanted.items():
        if name == "$and":
            if not all(_matches(run, one) for one in condition):
                return False
            continue
        value = run["id" if name == "name" else name]
        ((operator, operand),) = condition.items()
        if operator == "$in" and value not in operand:
            return False
        if operator == "$regex" and not re.search(operand, value):
            return False
        assert operator in {"$in", "$regex"}
    return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        standin = self.server.standin
        if self.path.startswith("/files/"):
            standin.stream(self.path.split("/")[4], json.loads(body))
            self._reply(200, b"{}")
        elif self.path == "/graphql":
            self._graphql(standin, json.loads(body))
        else:
            self._reply(200, b"{}")

    do_PUT = do_POST  # noqa: N815 # their names there
    do_GET = do_POST  # noqa: N815 # likewise

    def _graphql(self, standin: Standin, asked: dict[str, Any]) -> None:
        match = re.search(r"(?:query|mutation)\s+(\w+)", asked["query"])
        operation = asked.get("operationName") or (match[1] if match else "")
        if operation == "Runs" and standin.answer_with:
            status, body, cut = standin.answer_with
            self._reply(status, body, cut=cut)
            return
        try:
            data = standin.answer(operation, asked.get("variables") or {})
        except LookupError as err:
            self._reply(400, json.dumps({"errors": [{"message": f"unknown {err}"}]}).encode())
            return
        self._reply(200, json.dumps({"data": data}).encode())

    def _reply(self, status: int, body: bytes, *, cut: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) + (100 if cut else 0)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = cut

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # its name there
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client drops its connections when it ends."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    standin: Standin


@contextlib.contextmanager
def standin() -> Iterator[Standin]:
    """The stand-in, answering at `url` until the end."""
    found = Standin()
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.standin = found
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
