"""What ARCHITECTURE.md promises, held: its tables, its file names, and each sentence with "only", "never" or "no"."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gripfast.builtin.tools import TOOLS
from gripfast.builtin.tools import files as tool_files
from gripfast.host.files.fs import ScopedFs

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "gripfast"

# Lowest first. A room may import rooms on lower lines only; rooms on one line don't know each other.
FLOORS: list[set[str]] = [
    {"records"},
    {"errors", "clock"},
    {"messages", "text"},
    {"framework", "host", "lisp", "patch"},
    {"call", "outline"},
    {"builtin"},
    {"edges"},
    {"adapters"},
]
HEIGHT = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}

# Narrower than height alone: what a room may know, where that is less than everything below it.
MAY_IMPORT = {
    "records": set[str](),
    "errors": set[str](),
    "clock": set[str](),
    "messages": {"errors", "records"},
    "text": {"errors", "records"},
    "framework": {"errors", "records", "clock", "messages", "text"},
    "host": {"errors", "records", "text"},
    "lisp": set[str](),
    "patch": {"errors", "records", "text"},
    "outline": {"errors", "records", "lisp", "text"},
    "call": {"errors", "records", "messages", "text", "framework"},
}

# What the adapters may know of the edges: how a message looks in MCP, for the framework that takes an MCP server.
OF_EDGES_TO_ADAPTERS = "gripfast.edges.mcp.results"

# The folders of host/, and which of the others each may import.
HOST_MAY_IMPORT = {
    "kernel": set[str](),
    "program": {"kernel"},
    "search": {"kernel", "program"},
    "files": {"kernel", "program", "search"},
    "stores": {"kernel", "program", "search"},
    "questions": {"kernel", "program", "stores"},
    "record": {"kernel", "program", "files"},
    "shell": {"kernel", "program", "files"},
}


def rows_of_the_page() -> Iterator[tuple[str, set[str]]]:
    """The rows of both tables of rooms: what each is about, and what it may import."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## The steps of one call")[0]
    for row in re.findall(r"^\| `(\w+)(?:/|\.py)` \|.*\| (.*) \|$", page, re.MULTILINE):
        yield row[0], set(re.findall(r"`(\w+)`", row[1])) | {word for word in row[1].split() if word == "everything"}


def test_the_tables_of_the_page_say_what_each_room_may_import() -> None:
    page = dict(rows_of_the_page())
    everything = {room: {"everything"} for room in ("builtin", "edges", "adapters")}
    assert page == MAY_IMPORT | HOST_MAY_IMPORT | everything


def test_every_file_that_the_page_names_exists() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w]+/)*\w+\.py)`", page))
    places = ["/" + path.relative_to(ROOT).as_posix() for path in [*modules(), *(ROOT / "tests").glob("*.py")]]
    assert len(named) > 80
    assert sorted(name for name in named if not any(place.endswith(f"/{name}") for place in places)) == []


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
    "mmap",
    "multiprocessing",
    "pty",
    "pwd",
    "resource",
    "select",
    "selectors",
    "termios",
}
MACHINE_CALLS = {
    "create_subprocess_exec",
    "create_subprocess_shell",
    "open_file",
    "open_process",
    "run_process",
}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py"))


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def of_each(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test for all the modules, with every fault in its message: a test for each is slow."""

    def of(rule: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            found = [f"{path}: {fault}" for path in paths for fault in faults(rule, path)]
            assert paths and not found, "\n".join(found)

        test.__name__ = rule.__name__
        return test

    return of


def faults(rule: Callable[[Path], None], path: Path) -> list[str]:
    try:
        rule(path)
    except AssertionError as fault:
        return [str(fault)]
    return []


def test_every_module_that_breaks_a_rule_is_named() -> None:
    def no_room(path: Path) -> None:
        assert path.stem == "records", "not this one"

    of_each([SOURCE / "records.py"])(no_room)()
    with pytest.raises(AssertionError, match=r"(?s)clock\.py: not this one.*errors\.py: not this one"):
        of_each([SOURCE / "clock.py", SOURCE / "records.py", SOURCE / "errors.py"])(no_room)()


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


@of_each(modules())
def test_imports_go_down_only(path: Path) -> None:
    room = room_of(path)
    if room == "__init__" or room == "__main__":
        return
    allowed = MAY_IMPORT.get(room, {lower for lower, height in HEIGHT.items() if height < HEIGHT[room]})
    for line, name in imports(parsed(path)):
        parts = name.split(".")
        if parts[0] != "gripfast" or len(parts) < 2:
            assert name != "gripfast", f"{path}:{line} imports the front door from inside the house"
            continue
        assert parts[1] in allowed | {room}, f"{path}:{line}: {room} may not import {parts[1]}"
        if room == "adapters" and parts[1] == "edges":
            assert name.startswith(OF_EDGES_TO_ADAPTERS), f"{path}:{line}: adapters may not import {name}"


def host_modules() -> list[Path]:
    return [path for path in modules() if room_of(path) == "host" and path.name != "__init__.py"]


@of_each(host_modules())
def test_imports_between_the_folders_of_host_go_down_only(path: Path) -> None:
    folder = path.relative_to(SOURCE).parts[1]
    allowed = HOST_MAY_IMPORT[folder] | {folder}
    for line, name in imports(parsed(path)):
        parts = name.split(".")
        if parts[:2] == ["gripfast", "host"] and len(parts) > 2:
            assert parts[2] in allowed, f"{path}:{line}: host/{folder} may not import host/{parts[2]}"


@of_each(modules())
def test_only_host_touches_the_machine(path: Path) -> None:
    if room_of(path) == "host":
        return
    tree = parsed(path)
    for line, name in imports(tree):
        assert name.split(".")[0] not in MACHINE, f"{path}:{line}: {name} belongs in host/"
        assert name != "pathlib.Path", f"{path}:{line}: pathlib.Path belongs in host/ (PurePosixPath is fine)"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input"}, f"{path}:{node.lineno}: {node.func.id}()"
        if isinstance(node, ast.Attribute):
            assert node.attr not in MACHINE_CALLS, f"{path}:{node.lineno}: {node.attr} belongs in host/"


@of_each(modules())
def test_only_host_and_the_clock_read_the_time(path: Path) -> None:
    """Timers of the event loop (`loop.time()`, `anyio.sleep`) are not the clock: tests can drive them."""
    if room_of(path) in ("host", "clock"):
        return
    tree = parsed(path)
    for line, name in imports(tree):
        assert name.split(".")[0] not in {"time", "sched"}, f"{path}:{line}: take a clock as an argument"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            read = node.value.id in ("datetime", "date") and node.attr in ("now", "utcnow", "today")
            assert not read, f"{path}:{node.lineno}: take a clock as an argument"


@of_each(modules())
def test_protocols_and_terminals_are_known_at_the_edge_only(path: Path) -> None:
    if room_of(path) in {"edges", "adapters"}:
        return
    for line, name in imports(parsed(path)):
        outer = {"click", "rich", "mcp", "mcp_types", "starlette", "uvicorn"}
        assert name.split(".")[0] not in outer, f"{path}:{line}: {name} belongs in edges/"


def calls_of(name: str) -> Iterator[str]:
    """Where a name is called, as file and function (or `-` for the top of a module)."""
    for path in modules():
        tree = parsed(path) if name in path.read_text(encoding="utf-8") else ast.Module([], [])
        inside = {
            id(node): function.name
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield f"{path.relative_to(SOURCE).as_posix()} {inside.get(id(node), '-')}"


def test_a_work_path_is_made_only_by_validation() -> None:
    assert set(calls_of("WorkPath")) == {"host/files/paths.py _validated", "host/files/paths.py -"}
    opens = re.compile(r"\bWorkPath\.__new__|object\.__new__\(WorkPath")
    assert not [path for path in modules() if opens.search(path.read_text(encoding="utf-8"))]


def test_the_files_take_no_path_but_a_work_path() -> None:
    doors = {name: door for name, door in inspect.getmembers(ScopedFs, inspect.isfunction) if name[0] != "_"}
    paths = {
        name: found.annotation
        for name, door in doors.items()
        for key, found in inspect.signature(door).parameters.items()
        if key in ("path", "base")
    }
    assert set(paths.values()) == {"WorkPath"}
    assert {"open_read", "open_dir", "read", "write", "change", "tree", "glob", "grep"} <= set(paths)


def broad_handlers() -> Iterator[str]:
    """Handlers outside host/ that take any exception and don't pass it on as it is."""
    for path in modules():
        if room_of(path) == "host":
            continue
        for function in ast.walk(parsed(path)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                if not isinstance(node, ast.ExceptHandler):
                    continue
                broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
                if broad and ast.unparse(node.body[-1]) != "raise":
                    yield f"{path.relative_to(SOURCE).as_posix()} {function.name}"


def test_there_are_two_catchers_and_no_third() -> None:
    assert set(broad_handlers()) == {"framework/definition.py only_tool_errors"}
    assert set(calls_of("refusal")) == {"call/run.py _answer"}


# Names of tools that are also ordinary words: a pattern, a program of the shell, a state.
ORDINARY_WORDS = {"Glob", "tree", "done"}
# A language is called as a tool is, and a package has the name of the tool it serves.
NOT_TOOLS = {
    ("outline/languages.py", "Bash"),
    ("outline/grammar.py", "gripfast.outline"),
    ("adapters/openai_agents/editor.py", "apply_patch"),  # the framework's own names
    ("adapters/inspect.py", "read_file"),
}


def code_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string in the code but docstrings, and every name."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value
        for name in (getattr(node, field, None) for field in ("id", "attr", "name", "arg")):
            if isinstance(name, str) and name not in ORDINARY_WORDS:
                yield getattr(node, "lineno", 0), name


@of_each(modules())
def test_no_room_below_builtin_and_no_adapter_knows_a_tool_by_name(path: Path) -> None:
    if HEIGHT.get(room_of(path), HEIGHT["builtin"]) >= HEIGHT["builtin"] and room_of(path) != "adapters":
        return
    plain = "|".join(re.escape(tool.name) for tool in TOOLS if tool.name not in {"tree", "done"})
    named = re.compile(rf"(?<![\w-])(?:{plain})(?![\w-])|`(?:tree|done)`|(?<![\w-])(?:tree|done)\(")
    for line, text in code_texts(parsed(path)):
        found = None if (path.relative_to(SOURCE).as_posix(), text) in NOT_TOOLS else named.search(text)
        assert not found, f"{path}:{line} knows the tool {found and found[0]}; let the tool declare it"


def test_no_tool_but_undo_knows_the_record() -> None:
    files = {f"{file}.py" for listed in tool_files().values() for file in listed} - {"undo.py"}
    assert len(files) > 10
    for file in files:
        names = {name for _, name in imports(parsed(SOURCE / "builtin" / file))}
        assert not {name for name in names if name.startswith("gripfast.host.record.record")}, file


# Each sentence of ARCHITECTURE.md that says "only", "never" or the like, and the test that holds it.
HELD_BY = {
    "Imports only go down this table": "tests/test_architecture.py::test_imports_go_down_only",
    "the only room that touches disk and processes": "tests/test_architecture.py::test_only_host_touches_the_machine",
    "the only module that does": "tests/test_architecture.py::test_only_host_and_the_clock_read_the_time",
    "Inside `host/`, imports also only go down": (
        "tests/test_architecture.py::test_imports_between_the_folders_of_host_go_down_only"
    ),
    "It never raises": "tests/call/test_run.py::test_a_call_never_raises_whatever_breaks_on_its_way",
    "a protocol error, at the edge only": (
        "tests/test_architecture.py::test_protocols_and_terminals_are_known_at_the_edge_only"
    ),
    "a failing cache never loses the answer": (
        "tests/call/cache/test_broken_stores.py::test_a_disk_that_fills_up_while_writing"
    ),
    "Only validation makes a `WorkPath`": "tests/test_architecture.py::test_a_work_path_is_made_only_by_validation",
    "No other folder uses `ctypes`": "tests/test_architecture.py::test_only_the_kernel_folder_calls_the_c_library",
    "`framework` and `host` don't know each other": "tests/test_architecture.py::test_imports_go_down_only",
    "does not know `host` either": "tests/test_architecture.py::test_imports_go_down_only",
    "since `host` does not know `call`": "tests/test_architecture.py::test_imports_go_down_only",
    "so tools don't know whether they are recorded": (
        "tests/test_architecture.py::test_no_tool_but_undo_knows_the_record"
    ),
    "also if there is nobody to ask": "tests/call/test_hooks.py::test_a_question_with_nobody_to_ask_is_a_no",
    "Read returns no more than fits into a message": (
        "tests/builtin/test_read.py::test_an_answer_is_at_most_64_kib_and_the_rest_can_be_read_on"
    ),
    "`ScopedFs` opens nothing else": "tests/test_architecture.py::test_the_files_take_no_path_but_a_work_path",
    "if it leads elsewhere when": (
        "tests/builtin/test_judged_places.py::test_a_link_that_is_turned_while_somebody_reads_the_question_is_a_conflict"
    ),
    "so they agree on every name": "tests/text/test_gates_agree.py::test_both_gates_agree_on_every_pattern_and_path",
    "No room below `builtin` knows a tool by name": (
        "tests/test_architecture.py::test_no_room_below_builtin_and_no_adapter_knows_a_tool_by_name"
    ),
    "two places catch exceptions": "tests/test_architecture.py::test_there_are_two_catchers_and_no_third",
    "a call must not": (
        "tests/builtin/test_record_bad_days.py::test_on_a_full_disk_every_call_works_and_says_that_it_is_not_recorded"
    ),
    "If something fits in no room": "tests/test_architecture.py::test_imports_go_down_only",
    "and knows no tool by name": (
        "tests/test_architecture.py::test_no_room_below_builtin_and_no_adapter_knows_a_tool_by_name"
    ),
}
CLAIMS = re.compile(
    r"\b(?:only|never|no other|no more|no room|no tool|nobody|nothing else|don't|not know|must not|every name)\b",
    re.IGNORECASE,
)


def test_every_claim_of_the_page_is_held_by_a_test() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if CLAIMS.search(line)]
    assert not [line for line in lines if not any(held in line for held in HELD_BY)], "write its test, or drop it"
    for sentence, test in HELD_BY.items():
        file, name = test.split("::")
        assert sentence in page
        assert re.search(rf"def {name}\b", (ROOT / file).read_text(encoding="utf-8")), test


# What the pure rooms may use of the standard library: nothing that knows the machine, the clock or chance.
PURE = {
    "__future__",
    "bisect",
    "codecs",
    "base64",
    "collections",
    "dataclasses",
    "difflib",
    "functools",
    "heapq",
    "itertools",
    "json",
    "re",
    "typing",
    "unicodedata",
}


PURE_MODULES = [path for path in modules() if room_of(path) in ("text", "patch")]


@of_each(PURE_MODULES)
def test_the_rooms_of_text_and_patches_are_pure(path: Path) -> None:
    for line, name in imports(parsed(path)):
        parts = name.split(".")
        ours = parts[0] == "gripfast" and parts[1] in ("text", "errors", "records", room_of(path))
        known = parts[0] in PURE or parts[:2] == ["urllib", "parse"] or ours
        assert known, f"{path}:{line}: {name} is not for pure functions on text"


@of_each(modules())
def test_no_function_is_longer_than_a_screen(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, f"{node.name} has more than 60 lines"


@of_each(modules())
def test_every_module_says_what_lives_in_it(path: Path) -> None:
    assert ast.get_docstring(parsed(path)), f"{path} has no docstring"


def at_run_time(tree: ast.Module) -> Iterator[str]:
    """What a module imports when it is imported itself: not for the type checker, not inside a function."""
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif isinstance(node, ast.If | ast.Try):
            todo += [*node.body, *node.orelse]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (name for _, name in imports(node))


def folders_imported(depth: int) -> dict[str, set[str]]:
    """Each room (depth 1), or each folder and loose module of a room (depth 2), and which others it imports."""
    graph: dict[str, set[str]] = {}
    for path in modules():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0] in ("__init__", "__main__"):
            continue
        mine = "/".join(parts[:depth])
        theirs = graph.setdefault(mine, set())
        for name in at_run_time(parsed(path)):
            target = name.split(".")[1:]
            if name.startswith("gripfast.") and target:
                theirs.add(folder_of(target, depth))
        theirs.discard(mine)
    return graph


def folder_of(target: list[str], depth: int) -> str:
    """The room, folder or loose module an imported name belongs to."""
    found = [target[0]]
    for part in target[1:depth]:
        inside = SOURCE.joinpath(*found, part)
        if inside.is_dir() or inside.with_suffix(".py").is_file():
            found.append(part)
    return "/".join(found)


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """What is left when everything that imports nothing of the rest is taken away, again and again."""
    left = dict(graph)
    while free := [name for name, theirs in left.items() if not theirs & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


@pytest.mark.parametrize("depth", [1, 2], ids=["rooms", "folders"])
def test_no_two_rooms_or_folders_import_each_other(depth: int) -> None:
    graph = folders_imported(depth)
    assert len(graph) > 5
    assert cycle_in(graph) == []


def test_a_cycle_would_be_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c", "d"]


def test_a_class_name_means_one_thing_in_the_whole_package() -> None:
    found: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(path.relative_to(SOURCE).as_posix())
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


@of_each(modules())
def test_only_the_kernel_folder_calls_the_c_library(path: Path) -> None:
    """Except the broker, which runs alone from its own file and can't import."""
    place = path.relative_to(SOURCE).as_posix()
    if place.startswith("host/kernel/") or place == "host/shell/broker.py":
        return
    names = [name for _, name in imports(parsed(path))]
    assert [name for name in names if name.split(".")[0] == "ctypes"] == []
