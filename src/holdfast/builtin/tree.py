"""tree: directories, files and links beneath a directory of the workspace, in a fixed order and bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from holdfast.builtin.keys import FS
from holdfast.host.fs import ScopedFs
from holdfast.host.globs import Glob, compile_glob
from holdfast.host.paths import WorkPath, escaped
from holdfast.host.walk import Kind, Node
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends

MAX_DEPTH = 12
MAX_ENTRIES = 1000
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
    },
    "required": ["root", "limit_reached", "scanned_entries", "total_dirs", "total_files", "total_symlinks"],
}


@tool(
    name="tree",
    title="Show the tree",
    description="Returns a workspace tree: directories only or directories with files.",
    parameters=PARAMETERS,
    effect="read",
    subject="path",
    output="bounded",
    idempotent=True,
    output_schema=OUTPUT,
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
    """Check, list, filter, sort, go down: in this order."""
    accept = _filter(entry_kind, include_hidden, [compile_glob(pattern) for pattern in exclude])
    found = fs.within_roots().tree(path, max_depth=max_depth, max_entries=max_entries, accept=accept)
    return {
        "root": _shaped(found.root),
        "limit_reached": found.limit_reached,
        "scanned_entries": found.total,
        "total_dirs": found.counts["directory"],
        "total_files": found.counts["file"],
        "total_symlinks": found.counts["symlink"],
    }


def _filter(entry_kind: str, include_hidden: bool, exclude: list[Glob]) -> Callable[[str, str, Kind], bool]:
    files_too = entry_kind == "all"

    def accept(path: str, name: str, kind: Kind) -> bool:
        if name in EXCLUDED or (exclude and _is_excluded(path, exclude)):
            return False
        if name[0] == "." and not include_hidden:
            return False
        return files_too or kind == "directory"

    return accept


def _is_excluded(path: str, exclude: list[Glob]) -> bool:
    return any(glob.matches(path) or glob.matches(f"{path}/") for glob in exclude)


def _shaped(node: Node) -> dict[str, Any]:
    shaped: dict[str, Any] = {
        "name": _sayable(node.name),
        "path": _sayable(node.path),
        "depth": node.depth,
        "kind": node.kind,
    }
    if node.truncated:
        shaped["truncated"] = True
    if node.children:
        shaped["children"] = [_shaped(child) for child in node.children]
    return shaped


def _sayable(name: str) -> str:
    """A name as JSON can hold it: bytes that are no UTF-8 are written out."""
    return escaped(name) if any("\ud800" <= char <= "\udfff" for char in name) else name
