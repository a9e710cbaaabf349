"""The first answers of a server on stdio, given before the MCP SDK is loaded.

What a client asks first (`initialize`, `tools/list` and their like) has the same answer at every start in the same
circumstances (`host/program/ready.py`). So the SDK's own answers are kept, and at the next start given again to a
client that begins in the same way. The messages are then passed on to the SDK as if nothing had been answered, and
its answers to them are compared with those that were given and left out.

Importing this module is cheap: it runs before anything else is loaded.
"""

from __future__ import annotations

import json
import sys
from hashlib import blake2b

from gripfast.host.program import ready
from gripfast.host.program.first_lines import FirstLines

TYPE_CHECKING = False  # importing `typing` would take a quarter of the time until the first answer
if TYPE_CHECKING:
    from typing import Any

# Their answers depend on nothing that calls change, so they are the same at every start.
_METHODS = frozenset({"initialize", "server/discover", "tools/list", "resources/list", "resources/templates/list"})
_MEMBERS = {"jsonrpc", "id", "method", "params"}
_CLIENT = ("clientInfo", "io.modelcontextprotocol/clientInfo")
_NAMES = ("name", "title", "version")


class Opening:
    """How a connection begins: each message has a key that depends on it and on all before it."""

    def __init__(self) -> None:
        self._so_far = b""
        self._handshake = False
        self.is_over = False

    def key_of(self, line: bytes) -> tuple[str, Any] | None:
        """The key of the answer to this message, and its id. The key is empty for what is not answered. None: the
        opening is over, because its answer may differ from start to start."""
        found = None if self.is_over else self._key(line)
        self.is_over = found is None
        return found

    def _key(self, line: bytes) -> tuple[str, Any] | None:
        message = _object(_parsed(line))
        if message is None or not message.keys() <= _MEMBERS or message.get("jsonrpc") != "2.0":
            return None
        method, id = message.get("method"), message.pop("id", None)
        if method == "notifications/initialized" and id is None:
            return self._chained(message), None
        if type(id) not in (int, str) or not isinstance(method, str):
            return None
        if method == "ping" and self._handshake and not message.get("params"):
            return "ping", id
        if method not in _METHODS:
            return None
        self._handshake = self._handshake or method == "initialize"
        return self._chained(message), id

    def _chained(self, message: dict[str, Any]) -> str:
        text = json.dumps(_without_names(message), sort_keys=True, separators=(",", ":"))
        self._so_far = blake2b(self._so_far + text.encode(), digest_size=18).digest()
        return "" if message["method"] == "notifications/initialized" else self._so_far.hex()


def _without_names(message: dict[str, Any]) -> dict[str, Any]:
    """The message without what differs from start to start and changes no answer: progress tokens, and the name and
    version of the client."""
    params = _object(message.get("params"))
    if params is None:
        return message
    meta = _object(params.get("_meta"))
    if meta is not None:
        token = meta.get("progressToken")
        kept = {
            name: value for name, value in meta.items() if name != "progressToken" or type(token) not in (int, str)
        }
        params = {**params, "_meta": _client_named(kept)}
    return {**message, "params": _client_named(params)}


def _client_named(params: dict[str, Any]) -> dict[str, Any]:
    for place in _CLIENT:
        client = _object(params.get(place))
        if client is not None:
            named = {
                name: "" if name in _NAMES and isinstance(value, str) else value for name, value in client.items()
            }
            params = {**params, place: named}
    return params


class EarlyAnswers:
    """The answers kept for these circumstances, those given at this start, and those learned for the next."""

    def __init__(self, key: bytes, answers: dict[str, str]) -> None:
        self._key = key
        self._answers = answers
        self._seen = Opening()
        self._given: dict[str | int, str] = {}
        self._replayed: list[bytes] = []
        self._front: FirstLines | None = None
        self._opening = Opening()
        self._waiting: dict[str | int, str] = {}

    def start(self, source: int = 0, sink: int = 1) -> None:
        """Answers in the background until `pass_on`."""
        if self._answers:
            self._front = FirstLines(self._answer, source, sink)
            self._front.start()

    def _answer(self, line: bytes) -> bytes | None:
        if not line.strip():
            return b""
        found = self._seen.key_of(line)
        if found is None:
            return None
        key, id = found
        if key and (id in self._given or key not in self._answers):
            return None
        if key != "ping":
            self._replayed.append(line + b"\n")
        if not key:
            return b""
        if key != "ping":
            self._given[id] = self._answers[key]
        return f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":{self._answers[key]}}}\n'.encode()

    def pass_on(self) -> bytes:
        """Stops answering, and returns what the SDK is to read first: all messages so far, answered or not."""
        front, self._front = self._front, None
        return b"" if front is None else b"".join([*self._replayed, front.end()])

    def received(self, line: bytes) -> None:
        """A message on its way to the SDK: if it belongs to the opening, its answer is learned."""
        if self._opening.is_over:
            return
        found = self._opening.key_of(line)
        if found is not None and found[0] and found[0] not in self._answers:
            self._waiting[found[1]] = found[0]

    def was_sent(self, id: str | int, result: str | None) -> bool:
        """Whether this request was answered early, so that the SDK's answer (None: an error) is left out."""
        given = self._given.pop(id, None)
        if given is None:
            self._learn(id, result)
            return False
        if result is None or json.loads(result) != json.loads(given):
            ready.drop(self._key)
            sys.stderr.write("gripfast: an early answer was out of date; the next start is right again\n")
        return True

    def _learn(self, id: str | int, result: str | None) -> None:
        key = self._waiting.pop(id, None)
        if key is not None and result is not None:
            self._answers[key] = result
            if not self._waiting:
                ready.save(self._key, json.dumps(self._answers).encode())

    @property
    def is_busy(self) -> bool:
        """Whether answers may still have to be left out or learned."""
        return bool(self._given or self._waiting or not self._opening.is_over)


_begun: EarlyAnswers | None = None


def early_answers() -> EarlyAnswers | None:
    """The early answers of this process, if it is a server on stdio whose answers can be kept."""
    return _begun


def answer(arguments: list[str]) -> None:
    """Begins to answer a client on standard input, if these are the arguments of a server there."""
    if arguments[:1] != ["serve"] or any(word.startswith(("--http", "--with")) for word in arguments):
        return
    if sys.stdin is None or sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] - started without one
        return
    key = ready.circumstances(arguments)
    global _begun  # it begins to answer before there is anybody to pass it to
    _begun = EarlyAnswers(key, _answers_in(ready.load(key)))
    _begun.start()


def _answers_in(body: bytes | None) -> dict[str, str]:
    found = _object(_parsed(body or b"{}")) or {}
    return {key: text for key, text in found.items() if isinstance(text, str)}


def _parsed(text: bytes) -> Any:
    """The value of a JSON text; None if the text is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType] - of JSON
