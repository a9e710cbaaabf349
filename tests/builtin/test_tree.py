"""tree, section by section of its specification (seed 002); each test names its line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gripfast import TOOL_DEFINITIONS, ToolCatalog
from gripfast.host.files.fs import HERE, ScopedFs
from gripfast.host.files.scope import Scope
from searching import call, code, data, make, powerless


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(
        tmp_path / "ws",
        {
            "b.txt": "",
            "a.txt": "",
            ".env": "",
            "src/x/y/z/deep.txt": "",
            "src/m.ts": "",
            "lib/n.ts": "",
            ".hid/q": "",
        },
    )
    make(root, {"node_modules/m/index.js": "", ".git/config": "", "dist/o.js": "", "build/b": "", "target/t": ""})
    make(root, {".vscode/s.json": "", ".DS_Store": "", "src/node_modules/x": "", "src/debug.log": ""})
    (root / "link").symlink_to("src")
    make(tmp_path / "out", {"secret": ""})
    return root


def nodes(found: dict[str, Any]) -> list[dict[str, Any]]:
    def below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for child in node.get("children", ()):
            yield from below(child)

    return list(below(found["root"]))


def paths(where: Path | Scope, **arguments: Any) -> list[str]:
    return [node["path"] for node in nodes(data(where, "tree", path=arguments.pop("path", "."), **arguments))]


# --- 3.1 MUST ---


def test_3_1_directories_only_or_files_and_links_too(root: Path) -> None:
    assert paths(root) == [".", "lib", "src", "src/x", "src/x/y"]
    everything = data(root, "tree", path=".", entry_kind="all")
    assert {node["kind"] for node in nodes(everything)} == {"directory", "file", "symlink"}


def test_3_1_depth_is_3_by_default_and_what_is_beyond_is_truncated(root: Path) -> None:
    found = {node["path"]: node for node in nodes(data(root, "tree", path="."))}
    assert found["src/x/y"] == {"name": "y", "path": "src/x/y", "depth": 3, "kind": "directory", "truncated": True}
    assert "truncated" not in found["src/x"]


def test_3_1_a_hundred_entries_by_default_and_then_limit_reached(tmp_path: Path) -> None:
    make(tmp_path, {f"d{n:03d}/f": "" for n in range(120)})
    found = data(tmp_path, "tree", path=".")
    assert len(nodes(found)) == 100
    assert found["limit_reached"] is True


def test_3_1_files_come_only_when_asked_for(root: Path) -> None:
    assert all(node["kind"] == "directory" for node in nodes(data(root, "tree", path=".")))


def test_3_1_directories_first_then_names_by_utf_16_code_unit(tmp_path: Path) -> None:
    make(tmp_path, dict.fromkeys(["b", "a", "B", "é", "\U0001f600", "\uff5e", "z/x", "A/x"], ""))
    assert paths(tmp_path, entry_kind="all", max_depth=1) == [
        ".", "A", "z", "B", "a", "b", "é", "\U0001f600", "\uff5e",
    ]  # fmt: skip


def test_3_1_paths_are_from_the_workspace_root_wherever_the_walk_starts(root: Path) -> None:
    assert paths(root, path="src/x", entry_kind="all", max_depth=9) == [
        "src/x",
        "src/x/y",
        "src/x/y/z",
        "src/x/y/z/deep.txt",
    ]
    assert paths(root, path=str(root / "lib"), entry_kind="all") == ["lib", "lib/n.ts"]


@pytest.mark.parametrize("path", ["..", "/etc", "escape", "../out"])
def test_3_1_paths_outside_the_workspace_are_refused(root: Path, path: str) -> None:
    (root / "escape").symlink_to(root.parent / "out")
    assert code(root, "tree", path=path) == "SANDBOX_VIOLATION"


@pytest.mark.parametrize(
    ("exclude", "gone"),
    [
        (["**/*.log"], {"src/debug.log"}),
        (["src"], {"src", "src/m.ts", "src/debug.log", "src/x"}),
        (["src/"], {"src", "src/m.ts", "src/debug.log", "src/x"}),
        (["**/x/**"], {"src/x"}),
        (["*.txt", "l*"], {"a.txt", "b.txt", "lib", "lib/n.ts", "link"}),
        (["*.log"], set[str]()),
        (["src/{m.ts,x}"], {"src/m.ts", "src/x"}),
    ],
)
def test_3_1_exclude_is_a_glob_on_the_path_from_the_workspace(root: Path, exclude: list[str], gone: set[str]) -> None:
    everything = set(paths(root, entry_kind="all", max_depth=2))
    assert everything - set(paths(root, entry_kind="all", max_depth=2, exclude=exclude)) == gone


def test_3_1_links_are_nodes_and_are_not_followed(root: Path) -> None:
    found = {node["path"]: node for node in nodes(data(root, "tree", path=".", entry_kind="all"))}
    assert found["link"] == {"name": "link", "path": "link", "depth": 1, "kind": "symlink"}
    assert not [path for path in found if path.startswith("link/")]


def test_3_1_dot_names_are_left_out_unless_asked_for(root: Path) -> None:
    assert not [path for path in paths(root, entry_kind="all") if "/." in f"/{path}" and path != "."]
    hidden = paths(root, entry_kind="all", include_hidden=True)
    assert {".env", ".hid", ".hid/q"} <= set(hidden)


def test_3_1_missing_or_a_file_is_an_error(root: Path) -> None:
    assert code(root, "tree", path="nope") == "NOT_FOUND"
    assert code(root, "tree", path="a.txt") == "NOT_DIRECTORY"


# --- 3.2 SHOULD ---


def test_3_2_every_node_has_its_depth_and_path(root: Path) -> None:
    for node in nodes(data(root, "tree", path=".", entry_kind="all", max_depth=12)):
        assert node["depth"] == (0 if node["path"] == "." else node["path"].count("/") + 1)
        assert node["name"] == node["path"].rpartition("/")[2]


def test_3_2_totals_by_kind_add_up_to_what_was_scanned(root: Path) -> None:
    found = data(root, "tree", path=".", entry_kind="all", max_depth=12)
    kinds = [node["kind"] for node in nodes(found)]
    assert found["total_dirs"] == kinds.count("directory")
    assert found["total_files"] == kinds.count("file")
    assert found["total_symlinks"] == kinds.count("symlink") == 1
    assert found["scanned_entries"] == len(kinds)


def test_3_2_the_default_exclusions_stay_even_with_hidden_ones_and_at_any_depth(root: Path) -> None:
    found = set(paths(root, entry_kind="all", include_hidden=True, max_depth=12))
    names = {name for path in found for name in path.split("/")}
    assert not names & {".git", "node_modules", "dist", "build", "target", ".vscode", ".DS_Store"}


def test_an_excluded_directory_that_is_named_is_shown(root: Path) -> None:
    assert paths(root, path="node_modules", entry_kind="all") == [
        "node_modules",
        "node_modules/m",
        "node_modules/m/index.js",
    ]


# --- 4 input, output, errors, definition ---


@pytest.mark.parametrize(
    "bad",
    [
        {"path": ""},
        {},
        {"path": 3},
        {"path": "a\0"},
        {"path": ".", "entry_kind": "file"},
        {"path": ".", "max_depth": -1},
        {"path": ".", "max_depth": 13},
        {"path": ".", "max_depth": 1.5},
        {"path": ".", "max_depth": True},
        {"path": ".", "max_entries": 0},
        {"path": ".", "max_entries": 1001},
        {"path": ".", "exclude": "src"},
        {"path": ".", "exclude": [1]},
        {"path": ".", "exclude": ["[a"]},
        {"path": ".", "exclude": ["{a"]},
        {"path": ".", "exclude": [""]},
        {"path": ".", "exclude": ["a\0b"]},
        {"path": ".", "include_hidden": "perhaps"},
        {"path": ".", "gitignore": True},
    ],
)
def test_4_3_invalid_arguments(root: Path, bad: dict[str, Any]) -> None:
    assert code(root, "tree", **bad) == "INVALID_ARGUMENT"


def test_4_1_out_of_range_says_the_range(root: Path) -> None:
    assert "12" in call(root, "tree", path=".", max_depth=13).text
    assert "1000" in call(root, "tree", path=".", max_entries=1001).text


def test_4_2_the_output_has_these_keys_and_children_only_where_there_are_some(root: Path) -> None:
    found = data(root, "tree", path="lib")
    assert found == {
        "root": {"name": "lib", "path": "lib", "depth": 0, "kind": "directory"},
        "limit_reached": False,
        "scanned_entries": 1,
        "total_dirs": 1,
        "total_files": 0,
        "total_symlinks": 0,
    }
    assert list(found) == [
        "root",
        "limit_reached",
        "scanned_entries",
        "total_dirs",
        "total_files",
        "total_symlinks",
    ]


def test_4_3_special_files_are_not_directories(root: Path) -> None:
    os.mkfifo(root / "fifo")
    assert code(root, "tree", path="fifo") == "NOT_DIRECTORY"


def test_4_4_the_definition_is_the_specified_one_key_for_key() -> None:
    assert TOOL_DEFINITIONS["tree"] == {
        "name": "tree",
        "description": "Returns a workspace tree: directories only or directories with files.",
        "parameters": {
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
        },
    }


# --- 5 the walk ---


def test_5_depth_first_in_the_order_of_the_answer(tmp_path: Path) -> None:
    make(tmp_path, {"a/b/c": "", "a/d": "", "e/f": "", "g": ""})
    assert paths(tmp_path, entry_kind="all", max_entries=5) == [".", "a", "a/b", "a/b/c", "a/d"]


def test_5_a_directory_at_max_depth_is_truncated_and_not_opened_even_when_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "closed").mkdir(0o000)
    found = data(tmp_path, "tree", path=".", max_depth=1)
    assert [node.get("truncated") for node in nodes(found)] == [None, True, True]


def test_5_the_root_counts_among_the_entries(root: Path) -> None:
    found = data(root, "tree", path=".", max_entries=1)
    assert (paths(root, max_entries=1), found["limit_reached"], found["scanned_entries"]) == (["."], True, 1)


def test_5_reaching_the_limit_exactly_sets_limit_reached(tmp_path: Path) -> None:
    make(tmp_path, {"a": "", "b": ""})
    assert data(tmp_path, "tree", path=".", entry_kind="all", max_entries=3)["limit_reached"] is True
    assert data(tmp_path, "tree", path=".", entry_kind="all", max_entries=4)["limit_reached"] is False


def test_an_unreadable_directory_is_a_node_not_a_failure(tmp_path: Path) -> None:
    make(tmp_path, {"closed/x": "", "open/y": ""})
    tmp_path.chmod(0o755)
    (tmp_path / "closed").chmod(0)
    fs = ScopedFs(Scope.workspace(tmp_path))
    try:
        with powerless():
            found = fs.tree(HERE, max_depth=3, max_entries=9, accept=lambda path, name, kind: True)
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert [(node.name, node.truncated) for node in found.root.children] == [("closed", True), ("open", False)]


# --- 7 filters ---


def test_7_a_hidden_root_that_is_named_is_not_excluded(root: Path) -> None:
    assert paths(root, path=".hid", entry_kind="all") == [".hid", ".hid/q"]


def test_7_with_directories_only_files_and_links_count_zero(root: Path) -> None:
    found = data(root, "tree", path=".")
    assert (found["total_files"], found["total_symlinks"]) == (0, 0)


def test_denied_places_are_left_out(root: Path) -> None:
    found = paths(Scope.workspace(root, deny=["lib", "*.log", "src/x"]), entry_kind="all", max_depth=12)
    assert not {"lib", "src/debug.log", "src/x"} & set(found)
    assert "src/m.ts" in found


def test_denied_places_are_left_out_also_through_a_link(root: Path) -> None:
    found = paths(Scope.workspace(root, deny=["src/x"]), path="link", entry_kind="all", max_depth=12)
    assert "link/m.ts" in found and "link/x" not in found


def test_unrestricted_reading_does_not_widen_tree(root: Path) -> None:
    assert code(Scope(read=None, write=[root]), "tree", path="/etc") == "SANDBOX_VIOLATION"


def test_odd_names_are_written_out(tmp_path: Path) -> None:
    for name in (b"new\nline", b"odd\xff", "é\U0001f600".encode()):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text("")
    assert paths(tmp_path, entry_kind="all") == [".", "new\\nline", "odd\\xff", "é\U0001f600"]


# --- 11 acceptance ---


def test_11_an_existing_directory_gives_a_root_and_at_least_one_scanned_entry(root: Path) -> None:
    assert data(root, "tree", path="src")["scanned_entries"] >= 1


def test_11_without_entry_kind_it_is_directory(root: Path) -> None:
    assert data(root, "tree", path=".") == data(root, "tree", path=".", entry_kind="directory")


def test_11_depth_zero_is_the_root_alone(root: Path) -> None:
    found = data(root, "tree", path=".", entry_kind="all", max_depth=0)
    assert found["root"] == {"name": ".", "path": ".", "depth": 0, "kind": "directory", "truncated": True}


def test_11_the_order_is_always_the_same(tmp_path: Path) -> None:
    for turn, names in enumerate((["x", "y", "z"], ["z", "x", "y"])):
        make(tmp_path / str(turn), {f"{name}/{name}": "" for name in names})
    first, second = (paths(tmp_path / str(turn), entry_kind="all") for turn in (0, 1))
    assert first == second == [".", "x", "x/x", "y", "y/y", "z", "z/z"]


def test_11_no_path_is_absolute(root: Path) -> None:
    assert not [path for path in paths(root, path=str(root), entry_kind="all") if path.startswith("/")]


def test_11_catalog_and_definitions_hold_tree() -> None:
    assert ToolCatalog["tree"] is ToolCatalog.tree
    assert "tree" in TOOL_DEFINITIONS


def test_what_is_left_out_by_default_is_named(root: Path) -> None:
    found = data(root, "tree", path=".")
    assert found["left_out"] == ["build", "dist", "node_modules", "src/node_modules", "target"]
    assert "left_out" not in data(root, "tree", path="lib")
    hidden = data(root, "tree", path=".", include_hidden=True, entry_kind="all", max_entries=1000)
    assert {".git", ".vscode", ".DS_Store"} < set(hidden["left_out"])
    chosen = data(root, "tree", path=".", exclude=["**/node_modules", "dist"])
    assert chosen["left_out"] == ["build", "target"]


def test_a_name_that_excluded_nothing_is_told_with_the_pattern_for_any_depth(root: Path) -> None:
    told = data(root, "tree", path=".", entry_kind="all", exclude=["*.log", "lib"])["note"]
    assert told == "exclude: `*.log` matched no path from the workspace; `**/*.log` is any depth"
    for exclude in (["lib"], ["**/*.log"], ["src/*.nothing"]):
        assert "note" not in data(root, "tree", path=".", entry_kind="all", exclude=exclude)
    assert "note" not in data(
        root, "tree", path=".", max_entries=1, exclude=["*.log"]
    )  # not everything was looked at


def test_a_root_that_can_not_be_read_is_an_error_with_a_code(root: Path) -> None:
    (root / "lib").chmod(0)
    with powerless():
        assert code(root, "tree", path="lib") == "UNAUTHORIZED"


def test_a_bracket_that_nothing_opens_is_refused_as_a_brace_is(root: Path) -> None:
    for pattern in ("a]", "a}", "[a", "{a"):
        assert code(root, "tree", path=".", exclude=[pattern]) == "INVALID_ARGUMENT"


def test_out_of_range_tells_the_whole_range(root: Path) -> None:
    message = call(root, "tree", path=".", max_depth=13).text
    assert "`max_depth`: must be from 0 to 12, not 13" in message
