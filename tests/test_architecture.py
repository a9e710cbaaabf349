"""The house of ARCHITECTURE.md, held: imports go down only, and only host/ touches the machine."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "holdfast"

# Lowest first. A room may import rooms on lower lines only; rooms on one line don't know each other.
FLOORS: list[set[str]] = [
    {"errors"},
    {"messages"},
    {"tool", "host", "lisp"},
    {"call"},
    {"builtin"},
    {"edges"},
]
HEIGHT = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}

# Narrower than height alone: what a room may know, where that is less than everything below it.
MAY_IMPORT = {
    "errors": set[str](),
    "messages": {"errors"},
    "tool": {"errors", "messages"},
    "host": {"errors"},
    "lisp": set[str](),
    "call": {"errors", "messages", "tool"},
}

# What reaches the machine, and so stays in host/.
MACHINE = {
    "os",
    "io",
    "subprocess",
    "shutil",
    "tempfile",
    "sqlite3",
    "fcntl",
    "ctypes",
    "glob",
    "socket",
    "signal",
}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import; name the room"
            assert node.module is not None
            yield node.lineno, node.module
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_go_down_only(path: Path) -> None:
    room = room_of(path)
    if room == "__init__" or room == "__main__":
        return
    allowed = MAY_IMPORT.get(room, {lower for lower, height in HEIGHT.items() if height < HEIGHT[room]})
    for line, name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        parts = name.split(".")
        if parts[0] != "holdfast" or len(parts) < 2:
            assert name != "holdfast", f"{path}:{line} imports the front door from inside the house"
            continue
        assert parts[1] in allowed | {room}, f"{path}:{line}: {room} may not import {parts[1]}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_only_host_touches_the_machine(path: Path) -> None:
    if room_of(path) == "host":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for line, name in imports(tree):
        assert name.split(".")[0] not in MACHINE, f"{path}:{line}: {name} belongs in host/"
        assert name != "pathlib.Path", f"{path}:{line}: pathlib.Path belongs in host/ (PurePosixPath is fine)"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input"}, f"{path}:{node.lineno}: {node.func.id}()"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_every_module_says_what_lives_in_it(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{path} has no docstring"
