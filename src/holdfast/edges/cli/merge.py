"""Puts one server into a client's file and changes nothing else there: comments, order and spacing stay."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from holdfast.edges.cli.clients import Client, Server, snippet, toml_table


class AlreadyThere(Exception):
    """The file has a server of that name."""


def merged(text: str, client: Client, name: str, entry: Server) -> str:
    """The text with the server in it. Raises ValueError where it can't be read, AlreadyThere for a taken name."""
    if not text.strip():
        return snippet(client, name, entry)
    after = _into_toml(text, client, name, entry) if client.form == "toml" else _into_json(text, client, name, entry)
    _check(text, after, client, name, entry)
    return after


def _check(before: str, after: str, client: Client, name: str, entry: Server) -> None:
    """What was merged must read as what was there and the server, or it is not written."""
    wanted = _read(before, client)
    _servers(wanted, client)[name] = entry
    if _read(after, client) != wanted:
        raise ValueError("it is laid out in a way that can't be added to safely; add the lines by hand")


def _read(text: str, client: Client) -> dict[str, Any]:
    found: Any = tomllib.loads(text) if client.form == "toml" else json.loads(_without_comments(text))
    if not isinstance(found, dict):
        raise ValueError("it is not a table of settings")
    return found  # pyright: ignore[reportUnknownVariableType] - any JSON object


def _servers(found: dict[str, Any], client: Client) -> dict[str, Any]:
    for key in client.keys:
        found = found.setdefault(key, {})
        if not isinstance(found, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - it is a stranger's file
            raise ValueError(f"its `{key}` is not a table")
    return found


def _into_toml(text: str, client: Client, name: str, entry: Server) -> str:
    if name in _servers(_read(text, client), client):
        raise AlreadyThere
    gap = "" if text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + toml_table(client, name, entry)


# Strings, comments, and the marks that make up the structure of JSON, in one pass.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\]:,]', re.DOTALL)


def _without_comments(text: str) -> str:
    """JSON of what clients take for JSON: without comments, and without a comma before an end."""
    out: list[str] = []
    last = 0
    for found in _TOKEN.finditer(text):
        out.append(text[last : found.start()])
        last = found.end()
        token = found[0]
        if token in "}]":
            while out and (not out[-1].strip() or out[-1] == ","):
                if out.pop() == ",":
                    break
        out.append(" " if token.startswith(("//", "/*")) else token)
    return "".join([*out, text[last:]])


def _into_json(text: str, client: Client, name: str, entry: Server) -> str:
    if name in _servers(_read(text, client), client):
        raise AlreadyThere
    depth, addition = 0, {name: entry}
    at = _object_at(text, ())
    for key in client.keys:
        inner = _object_at(text, client.keys[: depth + 1])
        if inner is None:
            whole: Any = addition
            for missing in reversed(client.keys[depth + 1 :]):
                whole = {missing: whole}
            return _with_member(text, at, key, whole, depth + 1)
        at, depth = inner, depth + 1
    return _with_member(text, at, name, entry, depth + 1)


def _object_at(text: str, keys: tuple[str, ...]) -> Any:
    """Where the object at these keys opens: the place after its brace. None if it is not there."""
    path: list[str | None] = []
    key: str | None = None
    waiting: str | None = None
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token == "{":
            path.append(waiting)
            if tuple(path[1:]) == keys:
                return found.end()
            waiting = None
        elif token == "[":
            path.append(None)
            waiting = None
        elif token in "}]" and path:
            path.pop()
        elif token == ":":
            waiting = key
        elif token.startswith('"'):
            key = json.loads(token)
    return None


def _with_member(text: str, at: int, name: str, value: Any, depth: int) -> str:
    """The member as the first one of the object that opens before `at`."""
    unit = _indent(text)
    body = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", "\n" + unit * depth)
    rest = text[at:]
    first = next((found for found in _TOKEN.finditer(rest) if not found[0].startswith(("//", "/*"))), None)
    empty = first is not None and first[0] == "}"
    member = f"\n{unit * depth}{json.dumps(name, ensure_ascii=False)}: {body}"
    if not empty:
        glue = "" if rest[:1] in "\r\n" else f"\n{unit * depth}"
        return text[:at] + member + "," + glue + rest
    tail = rest if "\n" in rest[: first.start()] else f"\n{unit * (depth - 1)}{rest.lstrip(' ')}"  # pyright: ignore[reportOptionalMemberAccess] - empty means there is one
    return text[:at] + member + tail


def _indent(text: str) -> str:
    found = re.search(r'\n([ \t]+)"', text)
    return found[1] if found else "  "
