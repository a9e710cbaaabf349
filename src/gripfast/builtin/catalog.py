"""The built-in tools by name, and their definitions.

The names are spelled out for editors and type checkers; a test compares them with the tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Literal, TypeAlias

from gripfast.builtin.tools import TOOLS
from gripfast.framework.definition import Tool

ToolName: TypeAlias = Literal[
    "Read",
    "Write",
    "Edit",
    "NotebookEdit",
    "apply_patch",
    "Glob",
    "Grep",
    "Bash",
    "BashOutput",
    "BashInput",
    "KillBash",
    "read_file",
    "tree",
    "outline",
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
    NotebookEdit: Tool
    apply_patch: Tool
    Glob: Tool
    Grep: Tool
    Bash: Tool
    BashOutput: Tool
    BashInput: Tool
    KillBash: Tool
    read_file: Tool
    tree: Tool
    outline: Tool
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


class DefinitionCatalog(Mapping[str, dict[str, Any]]):
    """The definitions of tools by name. Each is a copy: changing it changes no tool."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def __getitem__(self, name: str) -> dict[str, Any]:
        it = self._tools[name].definition
        return {"name": it.name, "description": it.description, "parameters": deepcopy(it.parameters)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


TOOL_DEFINITIONS = DefinitionCatalog(TOOLS)
