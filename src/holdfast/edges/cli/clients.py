"""The clients people use, and what each wants in its configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Server: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers: a file (`~` is the user's own), and the keys down to the server's name."""

    title: str
    file: str
    keys: tuple[str, ...]
    form: Literal["json", "toml"]
    notes: str = ""

    def on_stdio(self, command: list[str]) -> Server:
        entry: Server = {"command": command[0], "args": command[1:]}
        match self.title:
            case "Claude Code" | "VS Code":
                return {"type": "stdio", **entry}
            case "Codex":  # it waits a second for a server, then begins without its tools and says nothing
                return {**entry, "required": True}
            case _:
                return entry

    def over_http(self, url: str, token: str | None) -> Server:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        match self.title:
            case "Codex":
                return {"url": url, **({"http_headers": headers} if headers else {})}
            case "Gemini CLI":
                return {"httpUrl": url, **({"headers": headers} if headers else {})}
            case "Cursor":
                return {"url": url, **({"headers": headers} if headers else {})}
            case _:
                return {"type": "http", "url": url, **({"headers": headers} if headers else {})}


CLIENTS: dict[str, Client] = {
    "claude": Client("Claude Code", ".mcp.json", ("mcpServers",), "json", "Claude Code asks once whether to use it."),
    "codex": Client("Codex", "~/.codex/config.toml", ("mcp_servers",), "toml"),
    "cursor": Client("Cursor", ".cursor/mcp.json", ("mcpServers",), "json"),
    "gemini": Client("Gemini CLI", ".gemini/settings.json", ("mcpServers",), "json"),
    "vscode": Client("VS Code", ".vscode/mcp.json", ("servers",), "json"),
}


def snippet(client: Client, name: str, entry: Server) -> str:
    """The whole of a file that holds this server and nothing else."""
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


def pasted(url: str, token: str | None) -> list[str]:
    """What to paste where, for a server that is running at `url`."""
    header = f' --header "Authorization: Bearer {token}"' if token else ""
    lines = [f"Claude Code   claude mcp add --transport http holdfast {url}{header}"]
    for key in ("codex", "cursor", "gemini"):
        client = CLIENTS[key]
        entry = client.over_http(url, token)
        shown = toml_table(client, "holdfast", entry) if client.form == "toml" else json.dumps({"holdfast": entry})
        where = f"{client.file}, in {'.'.join(client.keys)}" if client.form == "json" else client.file
        lines += [f"{client.title:<13} {where}:", *(f"              {line}" for line in shown.splitlines())]
    return lines
