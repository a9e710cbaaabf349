"""The built-in tools, and sets of them. A new tool is a file beside this one and its line here.

What else is said about a tool (profiles, hints, what it touches) is said in its own `@tool(...)`.
"""

from __future__ import annotations

from gripfast.builtin.apply_patch import apply_patch
from gripfast.builtin.bash import bash
from gripfast.builtin.bash_input import bash_input
from gripfast.builtin.bash_output import bash_output
from gripfast.builtin.done import done
from gripfast.builtin.edit import edit
from gripfast.builtin.glob import glob
from gripfast.builtin.grep import grep
from gripfast.builtin.kill_bash import kill_bash
from gripfast.builtin.lisp_read_file import lisp_read_file
from gripfast.builtin.notebook_edit import notebook_edit
from gripfast.builtin.outline import outline
from gripfast.builtin.read import read
from gripfast.builtin.read_file import read_file
from gripfast.builtin.tool_output_cache import tool_output_cache
from gripfast.builtin.tool_output_cache_grep import tool_output_cache_grep
from gripfast.builtin.tree import tree
from gripfast.builtin.undo import undo
from gripfast.builtin.write import write
from gripfast.builtin.write_todos import write_todos
from gripfast.framework.definition import Tool

# In the order a model reads them.
TOOLS: tuple[Tool, ...] = (
    read,
    write,
    edit,
    notebook_edit,
    apply_patch,
    glob,
    grep,
    bash,
    bash_output,
    bash_input,
    kill_bash,
    read_file,
    tree,
    outline,
    lisp_read_file,
    tool_output_cache,
    tool_output_cache_grep,
    write_todos,
    done,
)

# Offered when named (`--tools`, `builtin=`), in no profile.
EXTRA_TOOLS: tuple[Tool, ...] = (undo,)

# Fixed sets for programs that bind to exactly these tools: `open_session(scope, builtin=CODING_TOOLS)`.
CODING_TOOLS: tuple[Tool, ...] = (read, write, edit, glob, grep, bash, bash_output, kill_bash)
OUTPUT_CACHE_TOOLS: tuple[Tool, ...] = (tool_output_cache, tool_output_cache_grep)
READ_FILE_TOOLS: tuple[Tool, ...] = (read_file,)
TREE_TOOLS: tuple[Tool, ...] = (tree,)
LISP_TOOLS: tuple[Tool, ...] = (lisp_read_file,)
