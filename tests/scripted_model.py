"""A scripted model on loopback that makes a list of tool calls, by the APIs of Anthropic, OpenAI and Gemini."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, dict[str, Any]]


@dataclass
class Script:
    """The calls to make, in order, and a record of what the model was shown."""

    calls: list[Call]
    tools: list[str] = field(default_factory=list[str])
    results: list[Any] = field(default_factory=list[Any])
    url: str = ""


@contextmanager
def scripted_model(*calls: Call) -> Generator[Script]:
    script = Script(list(calls))

    class Handler(_Model):
        plays = script

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    plays: Script

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._reply({})

    def do_GET(self) -> None:
        self._reply({"data": []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "count_tokens" in self.path:
            self._reply({"input_tokens": 10})
        elif "chat/completions" in self.path:
            self._chat(body)
        elif "/messages" in self.path:
            self._messages(body)
        elif self.path.endswith("/responses"):
            self._responses(body)
        elif "enerateContent" in self.path:
            self._gemini(body)
        else:
            self._reply({})

    def _next(self, tools: list[str], results: list[Any]) -> Call | None:
        script = self.plays
        if tools:
            script.tools = tools
        if len(results) >= len(script.results):
            script.results = results
        played = len(results)
        return script.calls[played] if tools and played < len(script.calls) else None

    def _messages(self, body: dict[str, Any]) -> None:
        contents: list[Any] = [one["content"] for one in body.get("messages", []) if isinstance(one["content"], list)]
        results = [block for content in contents for block in content if block.get("type") == "tool_result"]
        call = self._next([tool.get("name", "") for tool in body.get("tools", [])], results)
        usage = {"input_tokens": 10, "output_tokens": 1}
        message: dict[str, Any] = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "scripted"),
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        stop = "tool_use" if call else "end_turn"
        if call:
            block: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": call[0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
            whole = {**block, "input": call[1]}
        else:
            block, whole = {"type": "text", "text": ""}, {"type": "text", "text": "FINISHED"}
            delta = {"type": "text_delta", "text": "FINISHED"}
        if not body.get("stream"):
            self._reply({**message, "content": [whole], "stop_reason": stop})
            return
        ending = {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}}
        self._stream(
            ("message_start", {"message": message}),
            ("content_block_start", {"index": 0, "content_block": block}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", ending),
            ("message_stop", {}),
        )

    def _chat(self, body: dict[str, Any]) -> None:
        results = [one for one in body.get("messages", []) if one.get("role") == "tool"]
        call = self._next([tool["function"]["name"] for tool in body.get("tools", [])], results)
        message: dict[str, Any] = {"role": "assistant", "content": None if call else "FINISHED"}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"id": f"call_{len(results)}", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
        self._reply({"id": "c", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]})

    def _responses(self, body: dict[str, Any]) -> None:
        results = [one for one in body.get("input", []) if one.get("type") == "function_call_output"]
        call = self._next([name for tool in body.get("tools", []) for name in _names(tool)], results)
        played = len(results)
        if call:
            space, _, name = call[0].rpartition(".")  # a tool in a namespace is called by namespace and name
            item = {"type": "function_call", "name": name, **({"namespace": space} if space else {})}
            begun: dict[str, Any] = {**item, "id": f"fc_{played}", "call_id": f"call_{played}", "arguments": ""}
            whole = {**begun, "arguments": json.dumps(call[1])}
        else:
            begun = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
            whole = {**begun, "content": [{"type": "output_text", "text": "FINISHED"}]}
        response = {"id": f"resp_{played}"}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        self._stream(
            ("response.created", {"response": response}),
            ("response.output_item.added", {"output_index": 0, "item": begun}),
            ("response.output_item.done", {"output_index": 0, "item": whole}),
            ("response.completed", {"response": {**response, "usage": usage}}),
        )

    def _gemini(self, body: dict[str, Any]) -> None:
        parts: list[Any] = [part for one in body.get("contents", []) for part in one.get("parts", [])]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        tools = [one["name"] for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
        call = self._next(tools, results)
        function = call and {"id": f"call_{len(results)}", "name": call[0], "args": call[1]}
        part = {"functionCall": function} if function else {"text": "FINISHED"}
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
        if "streamGenerateContent" in self.path:
            self._send(f"data: {json.dumps(answer)}\r\n\r\n".encode(), "text/event-stream")
        else:
            self._reply(answer)

    def _reply(self, found: dict[str, Any]) -> None:
        self._send(json.dumps(found).encode(), "application/json")

    def _stream(self, *events: tuple[str, dict[str, Any]]) -> None:
        text = "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events)
        self._send(text.encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _names(tool: dict[str, Any]) -> list[str]:
    """The tool names in one entry of a Responses request: several in a namespace, none in a built-in tool."""
    if tool.get("type") == "namespace":
        return [f"{tool['name']}.{one['name']}" for one in tool["tools"]]
    return [tool["name"]] if "name" in tool else []
