"""One factory for each built-in tool: `read_tool(fs)` and so on. Tools over one file system share their state."""

from __future__ import annotations

from gripfast.builtin import tools
from gripfast.builtin.session import bound_tool
from gripfast.framework.definition import Tool
from gripfast.host.files.fs import ScopedFs


def read_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.read)


def write_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.write)


def edit_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.edit)


def notebook_edit_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.notebook_edit)


def apply_patch_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.apply_patch)


def glob_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.glob)


def grep_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.grep)


def bash_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.bash)


def bash_output_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.bash_output)


def bash_input_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.bash_input)


def kill_bash_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.kill_bash)


def read_file_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.read_file)


def tree_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.tree)


def outline_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.outline)


def lisp_read_file_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.lisp_read_file)


def write_todos_tool(fs: ScopedFs) -> Tool:
    return bound_tool(fs, tools.write_todos)
