"""Spans of calls, collected by the real SDK of OpenTelemetry: names, attributes, and what they leave out."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from http_server import HANG, SERVE

COLLECTING = """
import json, sys
import anyio
from mcp import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from gripfast.edges.mcp.server import server_of
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.settings import SessionSettings

memory = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(memory))
trace.set_tracer_provider(provider)


async def main() -> None:
    sessions = Sessions(SessionSettings((sys.argv[1],), rules="read-only"))
    for mode in ("legacy", "2026-07-28"):
        async with Client(server_of(sessions), mode=mode) as client:
            await client.call_tool("Read", {"file_path": "a.txt"})
            await client.call_tool("Read", {"file_path": "none.txt"})
            await client.call_tool("Write", {"file_path": "b.txt", "content": "correct-horse-battery"})
            await client.call_tool("made up", {})
        sessions.observers.clear()
    await sessions.close()

anyio.run(main)
print(json.dumps([
    {"name": span.name, "kind": span.kind.name, "status": span.status.status_code.name,
     "described": span.status.description, "events": len(span.events),
     "parent": span.parent and span.parent.span_id, "id": span.context.span_id, **dict(span.attributes)}
    for span in memory.get_finished_spans()
]))
"""


def spans(project: Path, **environment: str) -> list[dict[str, Any]]:
    """In a process of its own: a tracer provider is set once."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECTING, str(project)],
        capture_output=True, text=True, timeout=HANG, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def secretive(project: Path) -> Path:
    (project / ".env").write_text("API_KEY=correct-horse-battery\n", encoding="utf-8")
    return project


def test_each_call_is_a_span_by_the_conventions(secretive: Path) -> None:
    found = spans(secretive)
    calls = [span for span in found if span["name"].startswith("execute_tool")]
    assert [span["name"] for span in calls] == [
        "execute_tool Read", "execute_tool Read", "execute_tool Write", "execute_tool"
    ] * 2  # fmt: skip
    for span in calls:
        assert span["gen_ai.operation.name"] == "execute_tool" and span["mcp.method.name"] == "tools/call"
        assert span["gen_ai.tool.call.id"] and span["kind"] == "INTERNAL"
        assert span["described"] is None and span["events"] == 0  # both could quote the call
        outer = next(one for one in found if one["id"] == span["parent"])
        assert outer["name"].startswith("tools/call") and outer["kind"] == "SERVER"
    read, none, write, made_up = calls[:4]
    assert (read["gen_ai.tool.name"], read["status"], read.get("error.type")) == ("Read", "UNSET", None)
    assert (none["error.type"], none["status"]) == ("NOT_FOUND", "ERROR")
    assert (write["error.type"], write["gripfast.decision"]) == ("POLICY_DENIED", "denied")
    assert made_up["error.type"] == "TOOL_NOT_FOUND"


def test_content_is_in_spans_only_if_asked_for_and_secrets_never(secretive: Path) -> None:
    without = json.dumps(spans(secretive))
    assert "a.txt" not in without and "one" not in json.loads(without)[0].values()
    asked = spans(secretive, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true")
    read, _, write, _ = [span for span in asked if span["name"].startswith("execute_tool")][:4]
    assert json.loads(read["gen_ai.tool.call.arguments"]) == {"file_path": "a.txt"}
    assert "one" in read["gen_ai.tool.call.result"]
    assert "«API_KEY»" in write["gen_ai.tool.call.arguments"]
    assert "correct-horse-battery" not in json.dumps(asked)


def test_without_an_sdk_nothing_is_made_of_a_call(project: Path) -> None:
    code = """
import sys
from gripfast.edges.mcp.server import server_of
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.settings import SessionSettings

sessions = Sessions(SessionSettings((sys.argv[1],)))
print(sessions.observers, server_of(sessions).middleware, "opentelemetry.sdk" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, str(project)], capture_output=True, text=True, timeout=HANG)
    assert done.stdout == "[] [] False\n", done.stderr


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
MESSAGES: list[dict[str, Any]] = [
    {"id": 1, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "Read", "arguments": {"file_path": "a.txt"}}},
]


def test_a_server_sends_its_spans_to_where_the_environment_says(project: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `otel` is not installed")
    got: list[bytes] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{collector.server_address[1]}"
        done = subprocess.run(
            SERVE, cwd=project, env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, timeout=HANG,
            input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in MESSAGES),
            capture_output=True, text=True,
        )  # fmt: skip
        collector.shutdown()
    assert done.returncode == 0, done.stderr
    assert b"execute_tool Read" in b"".join(got) and b"gripfast" in b"".join(got)
