"""Grep, line by line of its contract."""

from __future__ import annotations

import os
import random
import re
import socket
from pathlib import Path

import pytest

from builtin.conftest import Bench
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from searching import call, code, make, text

TEXT = "one\nneedle a\nthree\nfour\nfive\nneedle b\nseven\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path, {"b.txt": TEXT, "a/x.py": "needle\n", "a/y.md": "no\n"})


def test_files_with_matches_by_path_with_the_total(root: Path) -> None:
    assert text(root, "Grep", pattern="needle") == "a/x.py\nb.txt\n[2 files with matches]"


def test_content_is_path_line_text(root: Path) -> None:
    assert text(root, "Grep", pattern="needle", output_mode="content").splitlines() == [
        "a/x.py:1:needle",
        "b.txt:2:needle a",
        "b.txt:6:needle b",
        "[3 matching lines in 2 files]",
    ]


def test_context_is_marked_and_groups_are_apart(root: Path) -> None:
    assert text(root, "Grep", pattern="needle", output_mode="content", **{"-C": 1}).splitlines() == [
        "a/x.py:1:needle",
        "--",
        "b.txt-1-one",
        "b.txt:2:needle a",
        "b.txt-3-three",
        "--",
        "b.txt-5-five",
        "b.txt:6:needle b",
        "b.txt-7-seven",
        "[3 matching lines in 2 files]",
    ]
    after = text(root, "Grep", pattern="needle a", output_mode="content", **{"-A": 2}).splitlines()
    assert after[:-1] == ["b.txt:2:needle a", "b.txt-3-three", "b.txt-4-four"]
    before = text(root, "Grep", pattern="needle a", output_mode="content", **{"-B": 5, "-C": 0}).splitlines()
    assert before[:-1] == ["b.txt-1-one", "b.txt:2:needle a"]


def test_without_numbers_and_without_case(root: Path) -> None:
    answer = text(root, "Grep", pattern="NEEDLE A", output_mode="content", **{"-n": False, "-i": True})
    assert answer.splitlines()[0] == "b.txt:needle a"
    assert text(root, "Grep", pattern="NEEDLE").startswith("No matches for `NEEDLE` in `.`")


def test_count_says_lines_per_file_and_in_all(root: Path) -> None:
    assert text(root, "Grep", pattern="needle", output_mode="count") == (
        "a/x.py:1\nb.txt:2\n[3 matching lines in 2 files]"
    )


def test_path_may_be_a_file_even_an_ignored_one(root: Path) -> None:
    make(root, {".gitignore": "b.txt\n"})
    answer = text(root, "Grep", pattern="needle b", path="b.txt", output_mode="content")
    assert answer == "b.txt:6:needle b\n[1 matching line in 1 file]"
    assert "b.txt" not in text(root, "Grep", pattern="needle")


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a/x.py"]),
        ("*.{py,txt}", ["a/x.py", "b.txt"]),
        ("a/*", ["a/x.py"]),
        ("!*.py", ["b.txt"]),
        ("!a", ["b.txt"]),
        ("**/x.*", ["a/x.py"]),
        ("[b].txt", ["b.txt"]),
    ],
)
def test_glob_chooses_files(root: Path, glob: str, found: list[str]) -> None:
    assert text(root, "Grep", pattern="needle", glob=glob).splitlines()[:-1] == found


def test_type_chooses_files_alone_and_with_a_glob(root: Path) -> None:
    make(root, {"a/z.py": "needle\n"})
    assert text(root, "Grep", pattern="needle", type="py").splitlines()[:-1] == ["a/x.py", "a/z.py"]
    assert text(root, "Grep", pattern="needle", type="py", glob="z*").splitlines()[:-1] == ["a/z.py"]
    assert text(root, "Grep", pattern="needle", type="txt", glob="*.py").startswith("No matches")


def test_an_unknown_type_is_told_with_near_ones(root: Path) -> None:
    message = call(root, "Grep", pattern="x", type="pyhton")
    assert message.error is not None and message.error.code == "INVALID_ARGUMENT"
    assert "did you mean `python`" in message.text


def test_multiline_matches_span_lines(root: Path) -> None:
    answer = text(root, "Grep", pattern="needle a.*four", path="b.txt", output_mode="content", multiline=True)
    assert answer.splitlines()[:-1] == ["b.txt:2:needle a", "b.txt:3:three", "b.txt:4:four"]


def test_the_last_line_says_the_next_offset_and_truncated_only_when_something_is_missing(root: Path) -> None:
    first = text(root, "Grep", pattern="needle", output_mode="content", head_limit=2).splitlines()
    assert first[-1] == "[1-2 of 3 matching lines in 2 files; truncated, next offset=2]"
    second = text(root, "Grep", pattern="needle", output_mode="content", head_limit=2, offset=2).splitlines()
    assert second == ["b.txt:6:needle b", "[3-3 of 3 matching lines in 2 files]"]
    beyond = text(root, "Grep", pattern="needle", output_mode="content", offset=9)
    assert beyond == "[nothing at offset 9: 3 matching lines in 2 files]"
    assert "truncated" not in text(root, "Grep", pattern="needle", head_limit=2)


def test_pages_of_any_size_put_together_are_the_whole(tmp_path: Path) -> None:
    chance = random.Random(7)
    make(
        tmp_path, {f"d{n % 3}/f{n}": "".join(chance.choice(["hit\n", "no\n"]) for _ in range(30)) for n in range(12)}
    )
    whole = text(tmp_path, "Grep", pattern="hit", output_mode="content").splitlines()[:-1]
    for size in (7, 50):
        pages: list[str] = []
        while len(pages) < len(whole):
            answer = text(tmp_path, "Grep", pattern="hit", output_mode="content", head_limit=size, offset=len(pages))
            pages += answer.splitlines()[:-1]
        assert pages == whole
    assert whole == sorted(whole, key=lambda line: (line.split(":")[0], int(line.split(":")[1])))


@pytest.mark.parametrize("where", [0, 700, 5000, 300_000])
def test_a_long_line_is_clipped_around_the_match_never_away_from_it(tmp_path: Path, where: int) -> None:
    line = "é" * where + "NEEDLE" + "z" * 400_000
    make(tmp_path, {"min.js": line + "\nshort NEEDLE\n"})
    for path in ("min.js", "."):
        answer = text(tmp_path, "Grep", pattern="NEEDLE", path=path, output_mode="content").splitlines()
        assert len(answer) == 3
        assert "NEEDLE" in answer[0] and len(answer[0]) < 700
        assert "\ufffd" not in answer[0]
        cut = sum(map(int, re.findall(r"\[(\d+) bytes cut\]", answer[0])))
        shown = re.sub(r"^min\.js:1:(\[\d+ bytes cut\] )?|( \[\d+ bytes cut\])?$", "", answer[0])
        assert len(shown.encode()) + cut == len(line.encode())
        assert answer[1] == "min.js:2:short NEEDLE"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "unclosed group"),
        ("a{2,1}", "invalid repetition"),
        ("(?=x)", "look-ahead and look-behind are not supported; search for less"),
        (r"(a)\1", "backreferences"),
        ("a\nb", "set multiline=true"),
        (r"(\w{500}){500}", "size limit"),
        ("[z-a]", "invalid character class range"),
    ],
)
def test_a_bad_pattern_is_told_in_ripgreps_own_words(root: Path, pattern: str, words: str) -> None:
    message = call(root, "Grep", pattern=pattern)
    assert message.error is not None and message.error.code == "INVALID_REGEX"
    assert words in message.text
    assert ("put a backslash before" in message.text) == (pattern in ("(", "a{2,1}")) and "PCRE" not in message.text


def test_a_glob_or_type_that_fits_no_file_is_told(root: Path) -> None:
    answer = call(root, "Grep", pattern="zebra", glob="*.zig").text
    assert answer == "No matches for `zebra` in `.`; no file there matches glob `*.zig`"
    answer = call(root, "Grep", pattern="zebra", glob="*.zig", type="zig").text
    assert answer.endswith("; no file there matches glob `*.zig` and type `zig`")
    assert call(root, "Grep", pattern="zebra", glob="*.txt").text == "No matches for `zebra` in `.`"


def test_a_bad_pattern_is_told_before_anything_is_opened(root: Path) -> None:
    for path in ("nope", "b.txt", "."):
        assert code(root, "Grep", pattern="(", path=path) == "INVALID_REGEX"


@pytest.mark.parametrize("pattern", ["-e", "--pre=touch pwned", "-", "--", "-f/etc/passwd"])
def test_a_pattern_that_starts_with_a_dash_is_a_pattern(tmp_path: Path, pattern: str) -> None:
    make(tmp_path, {"a": f"x {pattern} y\n", "--files": "n\n"})
    answer = text(tmp_path, "Grep", pattern=pattern, output_mode="content")
    assert answer.splitlines()[0] == f"a:1:x {pattern} y"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("arguments", [{"glob": "--pre=x"}, {"type": "--files"}, {"path": "--files"}])
def test_no_argument_becomes_an_option(root: Path, arguments: dict[str, str]) -> None:
    answer = call(root, "Grep", pattern="needle", **arguments)
    assert answer.error is not None or answer.text.startswith("No matches")


def test_an_explosive_pattern_ends(tmp_path: Path) -> None:
    make(tmp_path, {"a": "a" * 50_000 + "\n"})
    assert text(tmp_path, "Grep", pattern="(a+)+$", output_mode="count").startswith("a:1")


def test_binary_files_are_counted_not_shown(root: Path) -> None:
    make(root, {"bin.dat": b"\0\1needle\n", "late.dat": b"needle\n" + b"x" * 200_000 + b"\0needle\n"})
    assert text(root, "Grep", pattern="needle").splitlines()[-1].endswith("1 binary file also matched, not shown]")
    assert text(root, "Grep", pattern="needle", path="bin.dat") == (
        "No matches for `needle` in `bin.dat`; 1 binary file also matched, not shown"
    )


@pytest.mark.parametrize("below", ["", "deep/"])
def test_many_binary_files_between_others_are_all_counted(tmp_path: Path, below: str) -> None:
    for n in range(8):
        make(tmp_path, {f"{below}t{n}": "needle\n", f"{below}b{n}": b"\0needle\n"})
    answer = text(tmp_path, "Grep", pattern="needle", output_mode="content", glob="!b7").splitlines()
    assert answer[:-1] == [f"{below}t{n}:1:needle" for n in range(8)]
    assert answer[-1] == "[8 matching lines in 8 files; 7 binary files also matched, not shown]"


def test_lines_with_windows_ends_match_at_their_end_and_show_none(tmp_path: Path) -> None:
    make(tmp_path, {"w.txt": "one;\r\ntwo\r\n"})
    assert text(tmp_path, "Grep", pattern="one;$", output_mode="content").splitlines()[0] == "w.txt:1:one;"


def test_utf_16_with_a_mark_is_searched_as_text(tmp_path: Path) -> None:
    make(tmp_path, {"u.txt": "日本語 needle\n".encode("utf-16")})
    answer = text(tmp_path, "Grep", pattern="本", output_mode="content")
    assert answer.splitlines()[0] == "u.txt:1:日本語 needle"


def test_odd_names_are_escaped_and_stay_on_one_line(tmp_path: Path) -> None:
    names = [b"a\n\nb", b"5:fake", b"esc\x1b[31m", b"odd\xff", b"x: binary file matches (found)"]
    for name in names:
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text("needle\n")
    answer = text(tmp_path, "Grep", pattern="needle", output_mode="content").splitlines()
    assert answer[:-1] == [
        "5:fake:1:needle",
        "a\\n\\nb:1:needle",
        "esc\\x1b[31m:1:needle",
        "odd\\xff:1:needle",
        "x: binary file matches (found):1:needle",
    ]


def test_a_file_can_not_print_what_looks_like_another_hit(tmp_path: Path) -> None:
    make(tmp_path, {"a": "needle\n\n./b\n1:needle\n", "c": "needle\n"})
    answer = text(tmp_path, "Grep", pattern="needle|b|^$", output_mode="content").splitlines()
    assert answer[:-1] == ["a:1:needle", "a:2:", "a:3:./b", "a:4:1:needle", "c:1:needle"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": ""}, "INVALID_ARGUMENT"),
        ({"pattern": "a\0b"}, "INVALID_ARGUMENT"),
        ({"pattern": "x" * 9000}, "INVALID_ARGUMENT"),
        ({"pattern": "x", "glob": "[a"}, "INVALID_ARGUMENT"),
        ({"pattern": "x", "glob": ""}, "INVALID_ARGUMENT"),
        ({"pattern": "x", "head_limit": -1}, "INVALID_ARGUMENT"),
        ({"pattern": "x", "offset": -1}, "INVALID_ARGUMENT"),
        ({"pattern": "x", "-C": 501}, "INVALID_ARGUMENT"),
        ({"pattern": "x", "output_mode": "lines"}, "INVALID_ARGUMENT"),
        ({"pattern": "x", "-z": True}, "INVALID_ARGUMENT"),
        ({"pattern": "x", "path": "nope"}, "NOT_FOUND"),
        ({"pattern": "x", "path": "../.."}, "SANDBOX_VIOLATION"),
        ({"pattern": "x", "path": "/etc/passwd"}, "SANDBOX_VIOLATION"),
        ({"pattern": "x", "path": "out"}, "SANDBOX_VIOLATION"),
        ({"pattern": "x", "path": "fifo"}, "NOT_FILE"),
        ({"pattern": "x", "path": "sock"}, "NOT_FILE"),
    ],
)
def test_bad_input_is_a_clear_error(
    root: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object], expected: str
) -> None:
    (root / "out").symlink_to("/etc")
    os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        assert code(root, "Grep", **arguments) == expected
        assert text(root, "Grep", pattern="needle").endswith("[2 files with matches]")


def test_a_line_that_is_cut_is_read_on_with_the_call_that_is_named(root: Path) -> None:
    make(root, {"a.js": "first\n" + "x" * 9_000 + "needle" + "y" * 9_000 + "\n"})
    answer = text(root, "Grep", pattern="xneedle", output_mode="content")
    named = re.search(r'a cut line is read with Read\(file_path="a.js", offset=1, line_offset=(\d+)\)', answer)
    assert named, answer
    rest = text(root, "Read", file_path="a.js", offset=1, line_offset=int(named[1]))
    assert "needleyyy" in rest
    following = re.search(r'Read\(file_path="a.js", offset=1, line_offset=(\d+)\)', rest)
    assert following, rest
    at = int(following[1])
    assert text(root, "Read", file_path="a.js", offset=1, line_offset=at).endswith("y" * (18_006 - at))


def test_text_in_the_configured_encoding_is_found(tmp_path: Path) -> None:
    (tmp_path / "sjis.txt").write_bytes("見出し\n日本語の文\n".encode("shift_jis"))
    fs = ScopedFs(Scope.workspace(tmp_path), encoding="shift_jis")
    found = text(fs, "Grep", pattern="日本語", output_mode="content")
    assert found.startswith("sjis.txt:2:日本語の文\n"), found
    (tmp_path / "utf8.txt").write_text("日本語\n", encoding="utf-8")
    (tmp_path / "marked.txt").write_bytes("日本語\n".encode("utf-16"))
    both = text(fs, "Grep", pattern="日本語")
    assert both == "marked.txt\nsjis.txt\nutf8.txt\n[3 files with matches]"
    assert text(fs, "Grep", pattern="日本語", path="sjis.txt").startswith("sjis.txt\n")


def test_each_file_is_searched_in_the_encoding_it_is_in(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("café\n".encode("latin-1"))
    (tmp_path / "b.txt").write_text("café\n退\n", encoding="utf-8")  # \xe9 is é in Latin-1, and begins 退 in UTF-8
    (tmp_path / "c.txt").write_bytes(("x" * 2_000 + "é" + "y" * 2_000 + "\n").encode("latin-1"))
    fs = ScopedFs(Scope.workspace(tmp_path), encoding="latin-1")
    found = text(fs, "Grep", pattern="caf.", output_mode="content")
    assert found == "a.txt:1:café\nb.txt:1:café\n[2 matching lines in 2 files]"
    counts = text(fs, "Grep", pattern="é", output_mode="count")
    assert counts == "a.txt:1\nb.txt:1\nc.txt:1\n[3 matching lines in 3 files]"
    long = text(fs, "Grep", pattern="xéy", output_mode="content", offset=0)
    assert "xxéyy" in long
    assert text(fs, "Grep", pattern="é", head_limit=1, offset=1).startswith("b.txt\n[2-2 of 3 files")


def test_an_encoding_that_ripgrep_does_not_know_is_said_to_be_searched_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("caf\u0418 plain\n".encode("cp1125"))
    fs = ScopedFs(Scope.workspace(tmp_path), encoding="cp1125")
    found = text(fs, "Grep", pattern="plain")
    assert found == (
        "a.txt\n[1 file with matches; files in cp1125 were searched as bytes; only ASCII text is found in them]"
    )


@pytest.mark.anyio
async def test_a_file_that_was_shown_whole_counts_as_read(bench: Bench) -> None:
    bench.put("whole.txt", "one\r\ntwo\r\n")
    bench.put("part.txt", "one\ntwo\nthree\n")
    bench.put("long.txt", "one " + "x" * 1_000)
    await bench.ok("Grep", pattern="one", output_mode="content", **{"-C": 1})
    assert "edited" in await bench.ok("Edit", file_path="whole.txt", old_string="two", new_string="2")
    await bench.fails("NOT_READ", "Edit", file_path="part.txt", old_string="two", new_string="2")
    await bench.fails("NOT_READ", "Edit", file_path="long.txt", old_string="one", new_string="2")
    await bench.ok("Grep", pattern="nowhere|three", path="part.txt", output_mode="content", **{"-B": 2})
    bench.put("part.txt", "changed\n")
    await bench.fails("CONFLICT", "Edit", file_path="part.txt", old_string="changed", new_string="2")


@pytest.mark.anyio
async def test_what_an_output_was_cut_from_does_not_count_as_read(bench: Bench) -> None:
    bench.put("a.txt", "x\n" * 9_000)
    message = await bench.call("Grep", pattern="x", output_mode="content", head_limit=0)
    assert message.output_ref is not None
    await bench.fails("NOT_READ", "Edit", file_path="a.txt", old_string="x", new_string="y", replace_all=True)


def test_a_head_limit_of_0_returns_all(tmp_path: Path) -> None:
    make(tmp_path, {"a.txt": "needle\n" * 400})
    found = text(tmp_path, "Grep", pattern="needle", output_mode="content", head_limit=0)
    assert found.count("a.txt:") == 400
    assert found.endswith("[400 matching lines in 1 file]")
