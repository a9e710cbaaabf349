"""lisp-read-file through a session, on real files."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from gripfast.builtin.lisp_read_file import lisp_read_file
from gripfast.builtin.session import open_session
from gripfast.edges.mcp.results import result_of
from gripfast.host.files.scope import Scope
from gripfast.messages import ImagePart, ToolMessage

SOURCE = """\
(in-package :demo)

(defun my-func (a b)
  "First line of the docstring.
Second line."
  (+ a b))

(defun other (x)
  (declare (ignore x))
  (error "boom"))

(progn
  (print :hello))
"""

Call = Callable[..., ToolMessage]
Read = Callable[..., dict[str, Any]]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    def call(path: str = "demo.lisp", scope: Scope | None = None, **arguments: Any) -> ToolMessage:
        async def run() -> ToolMessage:
            async with open_session(scope or Scope.workspace(str(tmp_path))) as session:
                return await session.call("lisp-read-file", {"path": path, **arguments})

        return anyio.run(run)

    (tmp_path / "demo.lisp").write_text(SOURCE, encoding="utf-8")
    return call


@pytest.fixture
def read(call: Call) -> Read:
    def read(path: str = "demo.lisp", **arguments: Any) -> dict[str, Any]:
        message = call(path, **arguments)
        assert not message.is_error, message.text
        return json.loads(message.text)

    return read


def test_a_lisp_file_is_collapsed_by_default(read: Read, tmp_path: Path) -> None:
    assert read() == {
        "content": "     1\t(in-package :demo)\n"
        '     3\t(defun my-func (a b) "First line of the docstring. ..." ...)\n'
        "     8\t(defun other (x) ...)\n"
        "    12\t(progn ...)",
        "path": str(tmp_path.resolve() / "demo.lisp"),
        "mode": "lisp-collapsed",
        "meta": {"total_forms": 4, "expanded_forms": 0, "truncated": False},
    }


def test_the_path_in_the_answer_is_absolute_and_normal(read: Read, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert read("sub/../demo.lisp")["path"] == str(tmp_path.resolve() / "demo.lisp")
    assert read(str(tmp_path / "demo.lisp"))["path"] == str(tmp_path.resolve() / "demo.lisp")


@pytest.mark.parametrize(
    ("arguments", "expanded"),
    [
        ({"name_pattern": "^my-"}, ["my-func"]),
        ({"name_pattern": "(?i)OTHER"}, ["other"]),
        ({"content_pattern": "boom"}, ["other"]),
        ({"content_pattern": r'"First line'}, ["my-func"]),
        ({"name_pattern": "my-func", "content_pattern": "boom"}, ["my-func", "other"]),
        ({"content_pattern": ":hello"}, ["progn"]),
        ({"name_pattern": ""}, []),
        ({"name_pattern": "nothing-like-it"}, []),
    ],
)
def test_forms_whose_name_or_source_matches_are_shown_in_full(
    read: Read, arguments: dict[str, str], expanded: list[str]
) -> None:
    answer = read(**arguments)
    bodies = {
        "my-func": "     6\t  (+ a b))",
        "other": '    10\t  (error "boom"))',
        "progn": "    13\t  (print :hello))",
    }
    assert [name for name, line in bodies.items() if line in answer["content"].split("\n")] == expanded
    assert answer["meta"]["expanded_forms"] == len(expanded)


def test_raw_is_a_window_of_the_text_itself(read: Read) -> None:
    whole = read(collapsed=False)
    assert (whole["content"], whole["mode"], whole["meta"]) == (SOURCE, "raw", {"truncated": False})
    window = read(collapsed=False, offset=2, limit=2)
    assert window["content"] == '(defun my-func (a b)\n  "First line of the docstring.\n'
    assert window["meta"] == {
        "truncated": True,
        "notice": "lines 3 to 4 of 13; continue with collapsed=false, offset=4",
    }
    past = read(collapsed=False, offset=50)
    assert past["content"] == ""
    assert past["meta"]["notice"] == "the file has 13 lines; offset 50 is past the end"


def test_raw_keeps_line_ends_and_the_missing_one(read: Read, tmp_path: Path) -> None:
    (tmp_path / "crlf.lisp").write_bytes(b"(a)\r\n(b)")
    assert read("crlf.lisp", collapsed=False)["content"] == "(a)\r\n(b)"
    assert read("crlf.lisp", collapsed=False, limit=1)["content"] == "(a)\r\n"


def test_limit_bounds_every_mode_and_the_cut_is_said(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 50, encoding="utf-8")
    for path, arguments in [
        ("demo.lisp", {}),
        ("demo.lisp", {"collapsed": False}),
        ("a.txt", {}),
        ("a.txt", {"content_pattern": "x"}),
    ]:
        answer = read(path, limit=3, **arguments)
        assert len(answer["content"].splitlines()) == 3
        assert answer["meta"]["truncated"]
        assert answer["meta"]["notice"]


def test_matches_past_the_cut_are_named(read: Read) -> None:
    assert "other (line 8)" in read(limit=2, name_pattern="other")["meta"]["notice"]


def test_a_text_file_shows_matching_lines_with_five_on_each_side(read: Read, tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(1, 41)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    answer = read("a.txt", content_pattern="line (2|30)$")
    shown = [f"{n:6d}\tline {n}" for n in range(1, 8)] + ["--"] + [f"{n:6d}\tline {n}" for n in range(25, 36)]
    assert answer["content"].split("\n") == shown
    assert answer["mode"] == "text-filtered"
    near = read("a.txt", content_pattern="line (5|8)$")["content"].split("\n")
    assert near == [f"{n:6d}\tline {n}" for n in range(1, 14)]
    assert read("a.txt", content_pattern="nowhere")["content"] == ""


def test_a_text_file_without_a_pattern_is_like_raw(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    assert (read("a.txt")["content"], read("a.txt")["mode"]) == ("one\ntwo\n", "text")
    assert read("a.txt", collapsed=False)["mode"] == "raw"
    assert "content_pattern" in read("a.txt", name_pattern="one")["meta"]["notice"]


def test_a_broken_file_gives_what_can_be_read_and_the_places_of_the_faults(read: Read, tmp_path: Path) -> None:
    (tmp_path / "broken.lisp").write_text("(defun a (x)\n  (g x)\n\n(defun b (y)\n  (g y))\n", encoding="utf-8")
    answer = read("broken.lisp")
    assert "(defun b (y) ...)" in answer["content"]
    assert answer["meta"]["errors"] == [{"line": 1, "column": 1, "message": "1 closing bracket missing"}]


def test_other_lisps_are_collapsed_too(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.el").write_text('(defun f (a)\n  "Doc."\n  (insert ?\\( a))\n(provide \'a)\n', encoding="utf-8")
    (tmp_path / "a.clj").write_text("(ns a)\n(defn f [x]\n  [\\( x])\n", encoding="utf-8")
    assert read("a.el")["content"] == '     1\t(defun f (a) "Doc." ...)\n     4\t(provide \'a)'
    assert read("a.clj")["content"] == "     1\t(ns a)\n     2\t(defn f [x] ...)"


def test_encodings_marks_and_shell_lines_are_understood(read: Read, tmp_path: Path) -> None:
    text = '#!/usr/bin/sbcl --script\n(defun été (x)\n  "Où?"\n  (list x x x))\n'
    expected = '     2\t(defun été (x) "Où?" ...)'
    for name, data in {
        "utf8.lisp": text.encode(),
        "bom.lisp": b"\xef\xbb\xbf" + text.encode(),
        "wide.lisp": text.encode("utf-16"),
        "latin.lisp": text.encode("latin-1"),
    }.items():
        (tmp_path / name).write_bytes(data)
        answer = read(name)
        assert answer["content"] == expected, name
        assert ("latin-1" in answer["meta"].get("notice", "")) == (name == "latin.lisp")


def failure(message: ToolMessage) -> str:
    assert message.error is not None
    return message.error.code


@pytest.mark.parametrize("parameter", ["name_pattern", "content_pattern"])
@pytest.mark.parametrize("pattern", ["a++", "(", "(?P<n>a)", "[", "(?<=a+)b"])
def test_a_bad_pattern_is_named_before_the_file_is_opened(call: Call, parameter: str, pattern: str) -> None:
    message = call("missing.lisp", **{parameter: pattern})
    assert failure(message) == "INVALID_REGEX"
    assert parameter in message.text and pattern in message.text


def test_forms_that_take_too_long_are_an_error(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gripfast.builtin.lisp_read_file.READ_SECONDS", 0.05)
    (tmp_path / "deep.lisp").write_text("(\n" * 200_000)
    assert failure(call("deep.lisp")) == "TIMEOUT"
    assert failure(call("deep.lisp", collapsed=False, name_pattern="x")) == "TIMEOUT"
    assert not call("deep.lisp", collapsed=False).is_error


def test_a_pattern_that_explodes_times_out(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gripfast.builtin.lisp_read_file.PATTERN_SECONDS", 0.3)
    (tmp_path / "long.lisp").write_text(
        "".join(f"(defun f{n} () {'a' * 60}b)\n" for n in range(500)), encoding="utf-8"
    )
    assert failure(call("long.lisp", content_pattern="(a|aa)+$")) == "TIMEOUT"
    (tmp_path / "long.txt").write_text(f"{'a' * 60}b\n" * 500, encoding="utf-8")
    assert failure(call("long.txt", content_pattern="(a|aa)+$")) == "TIMEOUT"


def test_binary_is_refused_and_an_image_is_a_picture(call: Call, tmp_path: Path) -> None:
    (tmp_path / "core.lisp").write_bytes(bytes(range(256)) * 10)
    assert failure(call("core.lisp")) == "BINARY_NOT_SUPPORTED"
    header = b"IHDR" + struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    (tmp_path / "a.png").write_bytes(png)
    text, image = call("a.png").content
    assert isinstance(image, ImagePart)
    assert (image.media_type, image.width, image.height, image.data) == ("image/png", 3, 2, png)
    assert json.loads(getattr(text, "text", ""))["mode"] == "image"


def test_a_file_that_is_too_large_points_to_read(call: Call, tmp_path: Path) -> None:
    with (tmp_path / "huge.lisp").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    message = call("huge.lisp")
    assert failure(message) == "SIZE_LIMIT_EXCEEDED"
    assert "Use Read" in message.text


def test_only_the_workspace_is_read_even_where_reads_are_free(call: Call, tmp_path: Path) -> None:
    inside, outside = tmp_path / "w", tmp_path / "out.lisp"
    inside.mkdir()
    outside.write_text("(secret)", encoding="utf-8")
    (inside / "link.lisp").symlink_to(outside)
    free = Scope(read=None, write=[str(inside)])
    for path in (str(outside), "../out.lisp", "link.lisp"):
        message = call(path, scope=free)
        assert failure(message) == "SANDBOX_VIOLATION", path
        assert "secret" not in message.text


@pytest.mark.parametrize(
    ("path", "arguments", "code"),
    [
        ("missing.lisp", {}, "NOT_FOUND"),
        (".", {}, "NOT_FILE"),
        ("demo.lisp", {"limit": 0}, "INVALID_ARGUMENT"),
        ("demo.lisp", {"offset": -1}, "INVALID_ARGUMENT"),
        ("demo.lisp", {"depth": 1}, "INVALID_ARGUMENT"),
        ("", {}, "INVALID_ARGUMENT"),
    ],
)
def test_other_failures_are_named(call: Call, path: str, arguments: dict[str, Any], code: str) -> None:
    assert failure(call(path, **arguments)) == code


def test_the_definition_has_the_six_parameters_and_only_matches(tmp_path: Path) -> None:
    session = open_session(Scope.workspace(str(tmp_path)))
    parameters = session.find("lisp-read-file").definition.parameters
    assert list(parameters["properties"]) == [
        "path",
        "collapsed",
        "name_pattern",
        "content_pattern",
        "offset",
        "limit",
        "only_matches",
    ]
    assert parameters["required"] == ["path"]
    assert {name: one.get("default") for name, one in parameters["properties"].items()} == {
        "path": None,
        "collapsed": True,
        "name_pattern": None,
        "content_pattern": None,
        "offset": 0,
        "limit": 2000,
        "only_matches": False,
    }


def test_what_was_seen_here_may_be_edited(tmp_path: Path) -> None:
    (tmp_path / "demo.lisp").write_text(SOURCE, encoding="utf-8")

    async def run() -> None:
        async with open_session(Scope.workspace(str(tmp_path))) as session:
            edit = {"file_path": "demo.lisp", "old_string": "boom", "new_string": "bang"}
            assert (await session.call("Edit", edit)).is_error
            await session.call("lisp-read-file", {"path": "demo.lisp", "name_pattern": "other"})
            assert not (await session.call("Edit", edit)).is_error

    anyio.run(run)


def test_hostile_files_are_answered(read: Read, tmp_path: Path) -> None:
    for name, text in {
        "open.lisp": "(" * 1_000_000,
        "nest.lisp": "(" * 100_000 + ")" * 100_000,
        "string.lisp": '(a "' + "\\x" * 200_000,
        "eval.lisp": '#.(progn (run-program "/bin/touch" "evil") (quit)) (a #.(error "x"))',
        "block.lisp": "#|" * 100_000,
        "progn.lisp": "(progn " * 30_000,
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        answer = read(name, content_pattern="evil")
        assert answer["mode"] == "lisp-collapsed"
        assert len(answer["content"]) < 300_000
    assert not (tmp_path / "evil").exists()


def test_over_mcp_an_image_has_the_structure_that_the_schema_promises(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.gif").write_bytes(b"GIF89a" + struct.pack("<HH", 3, 2) + bytes(10))
    result = result_of(call("a.gif"), lisp_read_file)
    assert result.structured_content is not None
    assert result.structured_content["mode"] == "image"
    assert [block.type for block in result.content] == ["text", "image"]


def shell(tmp_path: Path, terminal: bool) -> str:
    """What `gripfast call` writes to a pipe or to a terminal."""
    (tmp_path / "demo.lisp").write_text(SOURCE, encoding="utf-8")
    command = [sys.executable, "-m", "gripfast", "call", "lisp-read-file", '{"path": "demo.lisp"}', "--root", "."]
    if not terminal:
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "200"}
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=theirs, env=environment) as child:
        os.close(theirs)
        written = b""
        with contextlib.suppress(OSError):  # the terminal is gone when the child is
            while chunk := os.read(ours, 65536):
                written += chunk
        os.close(ours)
        assert child.wait(60) == 0
    return written.decode().replace("\r\n", "\n")


def test_a_pipe_gets_json_and_a_person_the_outline(tmp_path: Path) -> None:
    assert json.loads(shell(tmp_path, terminal=False))["mode"] == "lisp-collapsed"
    seen = shell(tmp_path, terminal=True).split("\n")
    assert seen[1].split(maxsplit=1) == ["3", '(defun my-func (a b) "First line of the docstring. ..." ...)']
    assert '"total_forms": 4' in seen[4]


def test_only_matches_leaves_out_every_other_form(read: Read) -> None:
    found = read(name_pattern="^other$", only_matches=True)
    assert found["content"] == (
        "     1\t(in-package :demo)\n"
        '     8\t(defun other (x)\n     9\t  (declare (ignore x))\n    10\t  (error "boom"))'
    )
    assert (found["meta"]["total_forms"], found["meta"]["expanded_forms"]) == (4, 1)
    assert read(only_matches=True) == read()


def test_with_the_text_itself_the_places_of_matches_are_told(read: Read) -> None:
    found = read(collapsed=False, content_pattern="boom")
    assert found["content"] == SOURCE
    assert found["meta"]["notice"] == "matches: other (line 8)"
    assert read(collapsed=False, name_pattern="nothing")["meta"]["notice"] == "no form matches"


def test_a_pattern_that_matches_only_in_package_is_not_said_to_match_nothing(read: Read) -> None:
    assert read(content_pattern=":demo")["meta"]["notice"] == "only forms that are always shown match"
    assert read(content_pattern="nowhere")["meta"]["notice"] == "no form matches"


def test_notices_at_the_size_limit_are_true(read: Read, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("needle " * 60_000 + "\nlast\n", encoding="utf-8")
    whole = read("long.txt", collapsed=False)["meta"]["notice"]
    assert whole.startswith("line 1 is cut; Read(file_path=..., offset=0, line_offset=262144) shows the rest")
    (tmp_path / "many.txt").write_text("needle and more of it\n" * 20_000, encoding="utf-8")
    cut = read("many.txt", content_pattern="needle", limit=50_000)
    assert f"cut after {len(cut['content'].splitlines())} lines; 20000 lines match" in cut["meta"]["notice"]
    (tmp_path / "many.lisp").write_text("(defun f (a b c d e f g h i j k l m n) 1)\n" * 9_000, encoding="utf-8")
    assert "use a pattern with only_matches" in read("many.lisp", limit=50_000)["meta"]["notice"]


def test_only_matches_shows_the_package_in_force_and_no_other(read: Read, tmp_path: Path) -> None:
    packages = "".join(f"(in-package :p{n})\n\n(defun f{n} (x)\n  x)\n\n" for n in range(5))
    (tmp_path / "many.lisp").write_text(packages, encoding="utf-8")
    found = read("many.lisp", name_pattern="^f[13]$", only_matches=True)["content"]
    assert [line.split("\t")[1] for line in found.split("\n") if "(" in line] == [
        *("(in-package :p1)", "(defun f1 (x)"),
        *("(in-package :p3)", "(defun f3 (x)"),
    ]
    assert read("many.lisp", name_pattern="^nothing$", only_matches=True)["content"] == ""
