"""Adds one server to a client's configuration file and changes nothing else: comments, order and spacing stay."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from gripfast.edges.cli.clients import Client, Server, snippet, toml_table


class AlreadyThere(Exception):
    """The file already has a server of that name; `same` if it is the one to add."""

    def __init__(self, same: bool) -> None:
        super().__init__()
        self.same = same


def merged(text: str, client: Client, name: str, entry: Server) -> str:
    """The text with the server added. Raises ValueError if it can't be parsed, AlreadyThere if the name is taken."""
    if not text.strip():
        return snippet(client, name, entry)
    after = _into_toml(text, client, name, entry) if client.form == "toml" else _into_json(text, client, name, entry)
    _check(text, after, client, name, entry)
    return after


def _check(before: str, after: str, client: Client, name: str, entry: Server) -> None:
    """Makes sure that the new text parses as the old one plus the server; otherwise nothing is written."""
    wanted = _read(before, client)
    _servers(wanted, client)[name] = entry
    if _read(after, client) != wanted:
        raise ValueError("its layout can't be changed safely; add the lines by hand")


def _read(text: str, client: Client) -> dict[str, Any]:
    found: Any = tomllib.loads(text) if client.form == "toml" else json.loads(_without_comments(text))
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object or TOML table")
    return found  # pyright: ignore[reportUnknownVariableType] - any JSON object


def _servers(found: dict[str, Any], client: Client) -> dict[str, Any]:
    for key in client.keys:
        found = found.setdefault(key, {})
        if not isinstance(found, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - the file may hold anything
            raise ValueError(f"its `{key}` is not a table")
    return found


def _refuse_second(text: str, client: Client, name: str, entry: Server) -> None:
    servers = _servers(_read(text, client), client)
    if name in servers:
        raise AlreadyThere(same=servers[name] == entry)


def _into_toml(text: str, client: Client, name: str, entry: Server) -> str:
    _refuse_second(text, client, name, entry)
    gap = "" if text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + toml_table(client, name, entry)


# Strings, comments, and the marks that make up the structure of JSON, in one pass.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\]:,]', re.DOTALL)


def _without_comments(text: str) -> str:
    """Strict JSON from the relaxed JSON that clients accept: comments and trailing commas removed."""
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
    _refuse_second(text, client, name, entry)
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
    """The offset after the opening brace of the object at these keys; None if there is no such object."""
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
    """Adds a member at the start of the object that opens before `at`."""
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
