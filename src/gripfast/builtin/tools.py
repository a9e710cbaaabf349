"""The built-in tools, and sets of them. A new tool is a file beside this one and its line here.

What else is said about a tool (profiles, hints, what it touches) is said in its own `@tool(...)`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from gripfast.framework.definition import Tool

if TYPE_CHECKING:
    from gripfast.builtin.apply_patch import apply_patch as apply_patch
    from gripfast.builtin.bash import bash as bash
    from gripfast.builtin.bash_input import bash_input as bash_input
    from gripfast.builtin.bash_output import bash_output as bash_output
    from gripfast.builtin.done import done as done
    from gripfast.builtin.edit import edit as edit
    from gripfast.builtin.glob import glob as glob
    from gripfast.builtin.grep import grep as grep
    from gripfast.builtin.kill_bash import kill_bash as kill_bash
    from gripfast.builtin.lisp_read_file import lisp_read_file as lisp_read_file
    from gripfast.builtin.notebook_edit import notebook_edit as notebook_edit
    from gripfast.builtin.outline import outline as outline
    from gripfast.builtin.read import read as read
    from gripfast.builtin.read_file import read_file as read_file
    from gripfast.builtin.tool_output_cache import tool_output_cache as tool_output_cache
    from gripfast.builtin.tool_output_cache_grep import tool_output_cache_grep as tool_output_cache_grep
    from gripfast.builtin.tree import tree as tree
    from gripfast.builtin.undo import undo as undo
    from gripfast.builtin.write import write as write
    from gripfast.builtin.write_todos import write_todos as write_todos

    TOOLS: tuple[Tool, ...]
    EXTRA_TOOLS: tuple[Tool, ...]
    CODING_TOOLS: tuple[Tool, ...]
    OUTPUT_CACHE_TOOLS: tuple[Tool, ...]
    READ_FILE_TOOLS: tuple[Tool, ...]
    TREE_TOOLS: tuple[Tool, ...]
    LISP_TOOLS: tuple[Tool, ...]

# Each tool is a file of this name. They are loaded when the list is first used: `from gripfast.builtin import tools`,
# then `tools.TOOLS`.
_SETS: dict[str, tuple[str, ...]] = {
    # In the order a model reads them.
    "TOOLS": (
        "read",
        "write",
        "edit",
        "notebook_edit",
        "apply_patch",
        "glob",
        "grep",
        "bash",
        "bash_output",
        "bash_input",
        "kill_bash",
        "read_file",
        "tree",
        "outline",
        "lisp_read_file",
        "tool_output_cache",
        "tool_output_cache_grep",
        "write_todos",
        "done",
    ),
    # Offered when named (`--tools`, `builtin=`), in no profile.
    "EXTRA_TOOLS": ("undo",),
    # Fixed sets for programs that bind to exactly these tools: `open_session(scope, builtin=CODING_TOOLS)`.
    "CODING_TOOLS": (
        "read",
        "write",
        "edit",
        "glob",
        "grep",
        "bash",
        "bash_output",
        "kill_bash",
    ),
    "OUTPUT_CACHE_TOOLS": (
        "tool_output_cache",
        "tool_output_cache_grep",
    ),
    "READ_FILE_TOOLS": ("read_file",),
    "TREE_TOOLS": ("tree",),
    "LISP_TOOLS": ("lisp_read_file",),
}


def __getattr__(name: str) -> Tool | tuple[Tool, ...]:
    if name in _SETS:
        value: Tool | tuple[Tool, ...] = tuple(map(load, _SETS[name]))
    elif name in (*_SETS["TOOLS"], *_SETS["EXTRA_TOOLS"]):
        value = load(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def load(file: str) -> Tool:
    """The tool in the file of this name."""
    return getattr(importlib.import_module(f"gripfast.builtin.{file}"), file)


def files() -> dict[str, tuple[str, ...]]:
    """The files of all tools: those of `TOOLS` and of `EXTRA_TOOLS`."""
    return {name: _SETS[name] for name in ("TOOLS", "EXTRA_TOOLS")}


def use(sets: dict[str, tuple[Tool, ...]]) -> None:
    """Lists these tools, which stand for those of the same names; see `kept.py`."""
    globals().update(sets)
