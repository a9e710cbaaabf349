"""The built-in tools by name, and what a model is told of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from holdfast.builtin.session import TOOLS
from holdfast.tool.definition import Tool

ToolName: TypeAlias = Literal[
    "Read",
    "Write",
    "Edit",
    "Glob",
    "Grep",
    "Bash",
    "BashOutput",
    "KillBash",
    "read_file",
    "tree",
    "lisp-read-file",
    "tool_output_cache",
    "tool_output_cache_grep",
    "write_todos",
    "done",
]


class Catalog(Mapping[str, Tool]):
    """Tools by name, as keys and as attributes; a `-` in a name is a `_` in its attribute."""

    Read: Tool
    Write: Tool
    Edit: Tool
    Glob: Tool
    Grep: Tool
    Bash: Tool
    BashOutput: Tool
    KillBash: Tool
    read_file: Tool
    tree: Tool
    lisp_read_file: Tool
    tool_output_cache: Tool
    tool_output_cache_grep: Tool
    write_todos: Tool
    done: Tool

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        for tool in tools:
            setattr(self, tool.name.replace("-", "_"), tool)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


ToolCatalog = Catalog(TOOLS)

TOOL_DEFINITIONS: Mapping[str, dict[str, Any]] = {
    tool.name: {"name": tool.name, "description": tool.description, "parameters": tool.definition.parameters}
    for tool in TOOLS
}
