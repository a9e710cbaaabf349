"""read_file, section by section of its specification (seed 001); each test names its line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gripfast import TOOL_DEFINITIONS, ToolCatalog
from gripfast.builtin.read_file import MAX_FILE_BYTES
from gripfast.errors import ToolError
from gripfast.framework.context import ToolContext
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from searching import call, code, data, make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("secret\n")
    return make(
        tmp_path / "ws", {"src/main.ts": "one\ntwo\nthree\n", "long.txt": "".join(f"{n}\n" for n in range(1, 451))}
    )


# --- 3.1 MUST ---


def test_3_1_path_is_read_as_utf_8_text_and_its_content_returned(root: Path) -> None:
    make(root, {"j.txt": "日本語\n"})
    assert data(root, "read_file", path="j.txt")["content"] == "日本語\n"


def test_3_1_max_lines_is_200_by_default_and_the_first_lines_are_returned(root: Path) -> None:
    found = data(root, "read_file", path="long.txt")
    assert found["content"] == "\n".join(str(n) for n in range(1, 201))


def test_3_1_start_line_moves_the_window(root: Path) -> None:
    found = data(root, "read_file", path="long.txt", start_line=10, max_lines=3)
    assert found["content"] == "10\n11\n12"


@pytest.mark.parametrize("path", ["../out/secret", "/etc/passwd", "link", "dir/secret"])
def test_3_1_paths_outside_the_workspace_are_refused(root: Path, path: str) -> None:
    (root / "link").symlink_to(root.parent / "out" / "secret")
    (root / "dir").symlink_to(root.parent / "out")
    assert code(root, "read_file", path=path) == "SANDBOX_VIOLATION"


@pytest.mark.parametrize("path", ["src/main.ts", "./src/main.ts", "src/../src/main.ts", "src//main.ts", "ABSOLUTE"])
def test_3_1_the_returned_path_is_relative_to_the_workspace_never_absolute(root: Path, path: str) -> None:
    found = data(root, "read_file", path=path.replace("ABSOLUTE", f"{root}/src/main.ts"))
    assert found["path"] == "src/main.ts"


def test_3_1_in_a_second_root_the_path_is_still_relative(root: Path) -> None:
    other = make(root.parent / "other", {"x": "x\n"})
    found = data(Scope.workspace(root, other), "read_file", path=f"{other}/x")
    assert found["path"] == "../other/x"


def test_3_1_missing_directory_and_too_large_are_errors_of_their_own(root: Path) -> None:
    make(root, {"big": b"x" * (MAX_FILE_BYTES + 1)})
    assert code(root, "read_file", path="nope") == "NOT_FOUND"
    assert code(root, "read_file", path="src") == "NOT_FILE"
    assert code(root, "read_file", path="big") == "SIZE_LIMIT_EXCEEDED"


def test_3_1_binary_files_are_refused(root: Path) -> None:
    make(root, {"b": b"text\0more"})
    assert code(root, "read_file", path="b") == "BINARY_NOT_SUPPORTED"


def test_3_1_truncated_and_next_start_line_go_together(root: Path) -> None:
    cut = data(root, "read_file", path="long.txt", max_lines=100)
    assert (cut["truncated"], cut["next_start_line"]) == (True, 101)
    whole = data(root, "read_file", path="src/main.ts")
    assert (whole["truncated"], whole["next_start_line"]) == (False, None)


def test_3_1_the_same_input_gives_the_same_output(root: Path) -> None:
    assert data(root, "read_file", path="long.txt") == data(root, "read_file", path="long.txt")


# --- 3.2 SHOULD ---


def test_3_2_meta_has_lines_returned_lines_bytes_and_mtime(root: Path) -> None:
    os.utime(root / "long.txt", ns=(0, 1_700_000_000_123_456_789))
    assert data(root, "read_file", path="long.txt", max_lines=5)["meta"] == {
        "byte_length": (root / "long.txt").stat().st_size,
        "line_count": 450,
        "returned_line_count": 5,
        "mtime_ms": 1_700_000_000_123,
    }


@pytest.mark.parametrize("path", ["nope.txt", "src", "big", "bin", "fifo"])
def test_3_2_an_error_names_the_path_and_the_reason(root: Path, path: str) -> None:
    make(root, {"big": b"x" * (MAX_FILE_BYTES + 1), "bin": b"\0"})
    os.mkfifo(root / "fifo")
    message = call(root, "read_file", path=path)
    assert message.error is not None
    assert f"`{path}`" in message.error.message and len(message.error.message) > len(path) + 10


def test_3_2_the_limit_of_one_mebibyte_is_one_constant(root: Path) -> None:
    assert MAX_FILE_BYTES == 1024 * 1024
    make(root, {"just": b"x" * MAX_FILE_BYTES})
    assert data(root, "read_file", path="just")["meta"]["byte_length"] == MAX_FILE_BYTES


# --- 3.3 WON'T ---


@pytest.mark.parametrize("extra", [{"end_line": 3}, {"encoding": "shift_jis"}, {"maxlines": 3}])
def test_3_3_what_is_not_supported_is_refused_by_name(root: Path, extra: dict[str, Any]) -> None:
    message = call(root, "read_file", path="src/main.ts", **extra)
    assert message.error is not None and message.error.code == "INVALID_ARGUMENT"
    assert next(iter(extra)) in message.text


def test_3_3_other_encodings_are_not_guessed_and_the_bad_byte_is_named(root: Path) -> None:
    make(root, {"sjis": "日本".encode("shift_jis")})
    message = call(root, "read_file", path="sjis")
    assert message.error is not None and message.error.code == "BINARY_NOT_SUPPORTED"
    assert "at byte 0" in message.error.message and message.error.details["offset"] == 0


# --- 4 input, output, errors, definition ---


@pytest.mark.parametrize(
    "bad",
    [
        {"path": ""},
        {"path": 7},
        {"path": None},
        {"path": "a\0b"},
        {"path": "x" * 5000},
        {},
        {"path": "src/main.ts", "start_line": 0},
        {"path": "src/main.ts", "start_line": -1},
        {"path": "src/main.ts", "start_line": 2.5},
        {"path": "src/main.ts", "start_line": True},
        {"path": "src/main.ts", "max_lines": 0},
        {"path": "src/main.ts", "max_lines": 501},
        {"path": "src/main.ts", "max_lines": "many"},
        {"path": ["src/main.ts"]},
    ],
)
def test_4_1_input_out_of_range_or_of_another_type_is_an_invalid_argument(root: Path, bad: dict[str, Any]) -> None:
    assert code(root, "read_file", **bad) == "INVALID_ARGUMENT"


def test_4_1_out_of_range_says_the_range(root: Path) -> None:
    assert "500" in call(root, "read_file", path="src/main.ts", max_lines=501).text


@pytest.mark.parametrize("good", [2, 2.0, "2"])
def test_4_1_a_whole_number_is_an_integer_however_it_is_written(root: Path, good: Any) -> None:
    assert data(root, "read_file", path="long.txt", max_lines=good)["next_start_line"] == 3


def test_4_2_the_output_has_these_keys_in_this_order(root: Path) -> None:
    found = data(root, "read_file", path="src/main.ts")
    assert list(found) == ["path", "content", "truncated", "next_start_line", "meta"]
    assert list(found["meta"]) == ["byte_length", "line_count", "returned_line_count", "mtime_ms"]


@pytest.mark.parametrize("kind", ["directory", "fifo", "device"])
def test_4_3_directories_and_special_files_are_not_file(root: Path, kind: str) -> None:
    os.mkfifo(root / "fifo")
    path = {"directory": "src", "fifo": "fifo", "device": "/dev/null"}[kind]
    where = Scope(["/dev"]) if kind == "device" else root
    assert code(where, "read_file", path=path) == "NOT_FILE"


def test_4_3_what_nobody_expected_is_internal_and_leaks_nothing(root: Path) -> None:
    class Broken(ScopedFs):
        def within_roots(self) -> ScopedFs:
            raise RuntimeError("/very/secret/path")

    message = call(Broken(Scope.workspace(root)), "read_file", path="src/main.ts")
    assert message.error is not None and message.error.code == "INTERNAL"
    assert "secret" not in message.text


def test_4_4_the_definition_is_the_specified_one_key_for_key() -> None:
    assert TOOL_DEFINITIONS["read_file"] == {
        "name": "read_file",
        "description": "Reads a UTF-8 text file in the workspace and returns a line-limited content window.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": 'Workspace-root-relative file path to read (e.g., "src/main.ts").',
                },
                "start_line": {
                    "type": "number",
                    "default": 1,
                    "description": "1-based start line of the returned window (default: 1).",
                },
                "max_lines": {
                    "type": "number",
                    "default": 200,
                    "description": "Maximum number of lines to return (default: 200).",
                },
            },
            "required": ["path"],
        },
    }


# --- 5 the reading model ---


def test_5_kind_comes_before_size_and_size_before_binary(root: Path) -> None:
    make(root, {"big": b"\0" * (MAX_FILE_BYTES + 1)})
    assert code(root, "read_file", path="big") == "SIZE_LIMIT_EXCEEDED"


def test_5_windows_line_ends_become_plain_ones_and_count_once(root: Path) -> None:
    make(root, {"w": b"a\r\nb\r\n\r\nc"})
    found = data(root, "read_file", path="w")
    assert (found["content"], found["meta"]["line_count"]) == ("a\nb\n\nc", 4)
    assert found["meta"]["byte_length"] == 9


def test_5_only_a_nul_in_the_first_chunk_makes_a_file_binary(root: Path) -> None:
    make(root, {"late": b"x" * 10_000 + b"\0\n"})
    assert data(root, "read_file", path="late")["meta"]["line_count"] == 1


def test_5_past_the_end_is_empty_and_not_truncated(root: Path) -> None:
    found = data(root, "read_file", path="src/main.ts", start_line=4)
    assert (found["content"], found["truncated"], found["next_start_line"]) == ("", False, None)
    assert found["meta"]["line_count"] == 3 and found["meta"]["returned_line_count"] == 0


def test_an_empty_file_has_no_lines(root: Path) -> None:
    make(root, {"empty": ""})
    found = data(root, "read_file", path="empty")
    assert (found["content"], found["truncated"], found["meta"]["line_count"]) == ("", False, 0)


TEXTS = st.text(st.sampled_from("ab\n\ré日"), max_size=40)


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.integers(1, 12), st.integers(1, 12))
def test_windows_agree_with_a_naive_model(
    tmp_path_factory: pytest.TempPathFactory, body: str, start: int, size: int
) -> None:
    root = tmp_path_factory.mktemp("windows")
    make(root, {"f": body})
    found = data(root, "read_file", path="f", start_line=start, max_lines=size)
    normal = body.replace("\r\n", "\n")
    lines = normal.split("\n")[:-1] if normal.endswith("\n") else normal.split("\n") if normal else []
    shown = lines[start - 1 : start - 1 + size]
    end = start - 1 + len(shown)
    assert found["truncated"] == (bool(shown) and end < len(lines))
    last = "\n" if shown and end == len(lines) and normal.endswith("\n") else ""
    assert found["content"] == "\n".join(shown) + last
    assert found["next_start_line"] == (end + 1 if found["truncated"] else None)
    assert found["meta"]["line_count"] == len(lines)
    assert found["meta"]["byte_length"] == len(body.encode())


def test_following_next_start_line_gives_the_whole_text(root: Path) -> None:
    start, parts = 1, list[str]()
    while start is not None:
        found = data(root, "read_file", path="long.txt", start_line=start, max_lines=100)
        parts.append(found["content"])
        start = found["next_start_line"]
    assert "\n".join(parts) == (root / "long.txt").read_text()


# --- 7 filters and order of the gates ---


def test_7_unrestricted_reading_does_not_widen_read_file(root: Path) -> None:
    wide = Scope(read=None, write=[root])
    assert code(wide, "read_file", path="/etc/passwd") == "SANDBOX_VIOLATION"
    assert data(wide, "read_file", path="src/main.ts")["path"] == "src/main.ts"


def test_a_denied_place_is_a_sandbox_violation(root: Path) -> None:
    assert code(Scope.workspace(root, deny=["*.ts"]), "read_file", path="src/main.ts") == "SANDBOX_VIOLATION"


def test_a_link_inside_the_workspace_to_a_file_inside_it_is_read(root: Path) -> None:
    (root / "alias").symlink_to("src/main.ts")
    assert data(root, "read_file", path="alias")["content"] == "one\ntwo\nthree\n"


# --- 11 acceptance ---


def test_11_an_existing_text_file_gives_content_and_meta(root: Path) -> None:
    found = data(root, "read_file", path="src/main.ts")
    assert found["content"] and found["meta"]


def test_11_without_max_lines_200_lines_and_then_next_start_line_201(root: Path) -> None:
    found = data(root, "read_file", path="long.txt")
    assert (found["truncated"], found["next_start_line"]) == (True, 201)
    assert found["meta"]["returned_line_count"] == 200


@pytest.mark.parametrize(("start", "size"), [(1, 1), (440, 20), (450, 500), (449, 1)])
def test_11_never_more_lines_than_max_lines(root: Path, start: int, size: int) -> None:
    found = data(root, "read_file", path="long.txt", start_line=start, max_lines=size)
    assert found["meta"]["returned_line_count"] == min(size, 451 - start)


def test_11_counts_agree_with_the_real_file(root: Path) -> None:
    raw = (root / "long.txt").read_bytes()
    meta = data(root, "read_file", path="long.txt", max_lines=500)["meta"]
    assert (meta["line_count"], meta["returned_line_count"]) == (raw.count(b"\n"), raw.count(b"\n"))
    assert meta["byte_length"] == len(raw)


def test_11_catalog_and_definitions_hold_read_file() -> None:
    assert ToolCatalog["read_file"] is ToolCatalog.read_file
    assert "read_file" in TOOL_DEFINITIONS


@pytest.mark.anyio
async def test_the_tool_raises_its_error_where_it_is_executed_raw(root: Path) -> None:
    fs = ScopedFs(Scope.workspace(root))
    with pytest.raises(ToolError, match="nope"):
        await ToolCatalog.read_file.execute_raw('{"path": "nope"}', ToolContext(overrides={"fs": lambda: fs}))
