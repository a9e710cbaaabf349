"""The MCP clients that `gripfast init` knows, and what each wants in its configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from gripfast.records import dataclass

Server: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers: a file (`~` for the home directory), and the keys down to a server's name.

    The other fields say what an entry holds besides the command or the URL, and how it names those.
    """

    title: str
    file: str
    keys: tuple[str, ...]
    form: Literal["json", "toml"]
    notes: str = ""
    profile: str | None = None  # the tools it gets unless --profile names others
    stdio_first: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stdio_last: Mapping[str, Any] = field(default_factory=dict[str, Any])
    http_first: Mapping[str, Any] = field(default_factory=dict[str, Any])
    url_key: str = "url"
    headers_key: str = "headers"
    one_command: bool = False  # `command` is a list that includes the arguments

    def on_stdio(self, command: list[str]) -> Server:
        if self.one_command:
            return {**self.stdio_first, "command": command, **self.stdio_last}
        return {**self.stdio_first, "command": command[0], "args": command[1:], **self.stdio_last}

    def over_http(self, url: str, token: str | None) -> Server:
        entry: Server = {**self.http_first, self.url_key: url}
        if token:
            entry[self.headers_key] = {"Authorization": f"Bearer {token}"}
        return entry


_HTTP = {"type": "http"}
_STDIO = {"type": "stdio"}
_MCP_SERVERS = ("mcpServers",)

CLIENTS: dict[str, Client] = {
    "claude": Client(
        "Claude Code",
        ".mcp.json",
        _MCP_SERVERS,
        "json",
        "Claude Code asks once whether to use it.",
        stdio_first=_STDIO,
        http_first=_HTTP,
    ),
    "codex": Client(
        "Codex",
        "~/.codex/config.toml",
        ("mcp_servers",),
        "toml",
        profile="codex",
        stdio_last={"required": True},  # otherwise it waits one second for a server, then starts without its tools
        headers_key="http_headers",
    ),
    "cursor": Client("Cursor", ".cursor/mcp.json", _MCP_SERVERS, "json"),
    "gemini": Client(
        "Gemini CLI",
        ".gemini/settings.json",
        _MCP_SERVERS,
        "json",
        "Gemini CLI reads this file only if you trust the folder (`/permissions trust`).",
        url_key="httpUrl",
    ),
    "opencode": Client(
        "opencode",
        "opencode.json",
        ("mcp",),
        "json",
        stdio_first={"type": "local"},
        http_first={"type": "remote"},
        one_command=True,
    ),
    "vscode": Client("VS Code", ".vscode/mcp.json", ("servers",), "json", stdio_first=_STDIO, http_first=_HTTP),
    "windsurf": Client("Windsurf", "~/.codeium/windsurf/mcp_config.json", _MCP_SERVERS, "json", url_key="serverUrl"),
    "zed": Client("Zed", "~/.config/zed/settings.json", ("context_servers",), "json"),
}


def snippet(client: Client, name: str, entry: Server) -> str:
    """The text of a configuration file that has this server and nothing else."""
    if client.form == "toml":
        return toml_table(client, name, entry)
    whole: Any = {name: entry}
    for key in reversed(client.keys):
        whole = {key: whole}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def toml_table(client: Client, name: str, entry: Server) -> str:
    lines = [f"[{'.'.join((*client.keys, name))}]"]
    lines += [f"{key} = {_toml(value)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs: Any = value.items()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any JSON
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"  # pyright: ignore[reportUnknownVariableType] - as above
    return json.dumps(value, ensure_ascii=False)


def paste_instructions(url: str, token: str | None) -> list[str]:
    """What to paste into which file, for a server that is running at `url`. `token` may be a word that stands
    for it."""
    header = f' --header "Authorization: Bearer {token}"' if token else ""
    lines = [f"Claude Code   claude mcp add --transport http gripfast {url}{header}"]
    for key in ("codex", "cursor", "gemini"):
        client = CLIENTS[key]
        entry = client.over_http(url, token)
        shown = toml_table(client, "gripfast", entry) if client.form == "toml" else json.dumps({"gripfast": entry})
        where = f"{client.file}, in {'.'.join(client.keys)}" if client.form == "json" else client.file
        lines += [f"{client.title:<13} {where}:", *(f"              {line}" for line in shown.splitlines())]
    given = f" --token {token}" if token else ""
    return [*lines, f"Others        gripfast init opencode --http {url}{given}  (or vscode, windsurf, zed)"]
