"""tree: the directories, files and links below a directory of the workspace, in a fixed order and bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from gripfast.builtin.keys import FS
from gripfast.builtin.other_roots import other_roots
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.walk import Kind, Node
from gripfast.text.escape import escaped
from gripfast.text.globs import compile_glob

MAX_DEPTH = 12
MAX_ENTRIES = 1000
MOST_LEFT_OUT = 20
EXCLUDED = frozenset({".git", "node_modules", "dist", "build", "target", ".vscode", ".DS_Store"})

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Directory path in workspace."},
        "entry_kind": {
            "type": "string",
            "enum": ["directory", "all"],
            "default": "directory",
            "description": "Node types to include (default: directory).",
        },
        "max_depth": {
            "type": "number",
            "default": 3,
            "description": "Maximum traversal depth (default: 3).",
        },
        "max_entries": {
            "type": "number",
            "default": 100,
            "description": "Maximum node count (default: 100).",
        },
        "include_hidden": {
            "type": "boolean",
            "default": False,
            "description": "Include dot-prefixed entries (default: false).",
        },
        "exclude": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Glob patterns to exclude paths.",
        },
    },
    "required": ["path"],
}

_NODE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "path": {"type": "string"},
        "depth": {"type": "integer"},
        "kind": {"enum": ["directory", "file", "symlink"]},
        "truncated": {"type": "boolean"},
        "children": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["name", "path", "depth", "kind"],
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "root": _NODE,
        "limit_reached": {"type": "boolean"},
        "scanned_entries": {"type": "integer"},
        "total_dirs": {"type": "integer"},
        "total_files": {"type": "integer"},
        "total_symlinks": {"type": "integer"},
        "left_out": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["root", "limit_reached", "scanned_entries", "total_dirs", "total_files", "total_symlinks"],
}


@tool(
    later=True,
    name="tree",
    title="Show the tree",
    description="Returns a workspace tree: directories only or directories with files.",
    parameters=PARAMETERS,
    effect="read",
    subject="path",
    output="bounded",
    idempotent=True,
    output_schema=OUTPUT,
    display_field="root",
    profiles=("read-only", "codex", "lisp"),
)
def tree(
    path: WorkPath,
    entry_kind: Literal["directory", "all"] = "directory",
    max_depth: Annotated[int, Field(ge=0, le=MAX_DEPTH)] = 3,
    max_entries: Annotated[int, Field(ge=1, le=MAX_ENTRIES)] = 100,
    include_hidden: bool = False,
    exclude: Sequence[str] = (),
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
) -> dict[str, Any]:
    """Compiles the filters, walks the tree, and shapes the answer."""
    left_out: list[str] = []
    excluded = _Excluded(exclude)
    accept = _filter(entry_kind, include_hidden, excluded, left_out)
    found = fs.within_roots().tree(path, max_depth=max_depth, max_entries=max_entries, accept=accept)
    answer: dict[str, Any] = {
        "root": _shaped(found.root),
        "limit_reached": found.limit_reached,
        "scanned_entries": found.total,
        "total_dirs": found.counts["directory"],
        "total_files": found.counts["file"],
        "total_symlinks": found.counts["symlink"],
    }
    if left_out:
        answer["left_out"] = sorted(map(escaped, left_out))[:MOST_LEFT_OUT]
    notes = other_roots(fs, path)
    unused = [] if found.limit_reached else excluded.unused_names()
    if unused:
        shown = " and ".join(f"`{escaped(name)}`" for name in unused[:MOST_LEFT_OUT])
        notes.append(f"exclude: {shown} matched no path from the workspace; `**/{escaped(unused[0])}` is any depth")
    if notes:
        answer["note"] = "; ".join(notes)
    return answer


def _filter(
    entry_kind: str, include_hidden: bool, excluded: _Excluded, left_out: list[str]
) -> Callable[[str, str, Kind], bool]:
    """Says which entries count. Paths that are excluded by default, and would count otherwise, go to `left_out`."""
    files_too = entry_kind == "all"

    def accept(path: str, name: str, kind: Kind) -> bool:
        if excluded.has(path):
            return False
        if name[0] == "." and not include_hidden:
            return False
        wanted = files_too or kind == "directory"
        if name in EXCLUDED:
            if wanted:
                left_out.append(path)
            return False
        return wanted

    return accept


class _Excluded:
    """The patterns of one call, and which of them matched something."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._globs = [(pattern, compile_glob(pattern)) for pattern in patterns]
        self._used: set[str] = set()

    def has(self, path: str) -> bool:
        used = next((text for text, glob in self._globs if glob.matches(path) or glob.matches(f"{path}/")), None)
        if used is not None:
            self._used.add(used)
        return used is not None

    def unused_names(self) -> list[str]:
        """Patterns without a slash that matched nothing: they were perhaps meant for any depth."""
        return [text for text, _ in self._globs if text not in self._used and "/" not in text]


def _shaped(node: Node) -> dict[str, Any]:
    shaped: dict[str, Any] = {
        "name": escaped(node.name),
        "path": escaped(node.path),
        "depth": node.depth,
        "kind": node.kind,
    }
    if node.truncated:
        shaped["truncated"] = True
    if node.children:
        shaped["children"] = [_shaped(child) for child in node.children]
    return shaped
