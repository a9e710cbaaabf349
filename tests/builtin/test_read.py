"""Read, line by line of its contract."""

from __future__ import annotations

import base64
import json
import os
import re
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from builtin.conftest import Bench
from gripfast.builtin import read as read_module
from gripfast.builtin.images import picture
from gripfast.builtin.read import SMALL
from gripfast.builtin.session import open_session
from gripfast.errors import BinaryNotSupported
from gripfast.host.files import guard, opened
from gripfast.host.files import pdf as pdf_module
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.messages import ImagePart, TextPart

pytestmark = pytest.mark.anyio


async def test_lines_are_numbered_from_1_with_a_tab(bench: Bench) -> None:
    bench.put("a.txt", "one\n\tзwei\nlast")
    assert await bench.ok("Read", file_path="a.txt") == "     1\tone\n     2\t\tзwei\n     3\tlast"
    assert await bench.ok("Read", file_path=str(bench.root / "a.txt"), offset=1, limit=1) == (
        '     2\t\tзwei\n[lines 2 to 2 of 3 shown; continue with Read(file_path="a.txt", offset=2, limit=1)]'
    )


@pytest.mark.parametrize(("offset", "shown"), [(0, [1, 2, 3]), (2, [3]), (-1, [3]), (-2, [2, 3]), (-9, [1, 2, 3])])
async def test_offset_skips_lines_and_negative_counts_from_the_end(
    bench: Bench, offset: int, shown: list[int]
) -> None:
    bench.put("a.txt", "l1\r\nl2\nl3\n")
    assert await bench.ok("Read", file_path="a.txt", offset=offset) == "\n".join(f"{n:6d}\tl{n}" for n in shown)


async def test_the_call_that_continues_is_said_and_it_continues(bench: Bench) -> None:
    bench.put("big.txt", "".join(f"line {n}\n" for n in range(1, 5001)))
    first = await bench.ok("Read", file_path="big.txt")
    assert first.count("\n") == 2000
    assert first.endswith('[lines 1 to 2000 of 5000 shown; continue with Read(file_path="big.txt", offset=2000)]')
    assert (await bench.ok("Read", file_path="big.txt", offset=2000)).startswith("  2001\tline 2001\n")


async def test_past_the_end_says_how_many_lines_there_are(bench: Bench) -> None:
    bench.put("a.txt", "one\ntwo\n")
    assert await bench.ok("Read", file_path="a.txt", offset=2) == "[`a.txt` has 2 lines; offset 2 is past the end]"


async def test_an_empty_file_says_so(bench: Bench) -> None:
    bench.put("a.txt", "")
    assert await bench.ok("Read", file_path="a.txt") == "[`a.txt` is empty]"
    assert await bench.ok("Read", file_path="a.txt", offset=-3) == "[`a.txt` is empty]"


async def test_a_long_line_is_clipped_and_says_by_how_much(bench: Bench) -> None:
    bench.put("a.txt", "é" * 2000 + "\n" + "é" * 2003 + "\n" + "x" * 1_000_000 + "\nend\n")
    rows = (await bench.ok("Read", file_path="a.txt")).split("\n")
    assert rows[0] == "     1\t" + "é" * 2000
    assert rows[1] == "     2\t" + "é" * 2000 + " [... 6 more bytes]"
    assert rows[2] == "     3\t" + "x" * 2000 + " [... 998000 more bytes]"
    assert rows[3] == "     4\tend"
    assert rows[4] == '[the rest of line 2: Read(file_path="a.txt", offset=1, line_offset=4000); 1 more line is cut]'


async def test_a_line_cut_within_a_character_is_still_text(bench: Bench) -> None:
    bench.put("a.txt", "日" * 100_000 + "\nx\n")
    rows = (await bench.ok("Read", file_path="a.txt")).split("\n")
    assert rows[:2] == ["     1\t" + "日" * 2000 + " [... 294000 more bytes]", "     2\tx"]
    bench.put("b.txt", ("x" + "日" * 100_000).encode("shift_jis"))
    async with open_session(ScopedFs(Scope.workspace(bench.root), encoding="shift_jis")) as session:
        text = (await session.call("Read", {"file_path": "b.txt"})).text
    assert text.startswith("     1\tx" + "日" * 1999 + " [... ") and "UTF-8" not in text


async def test_an_answer_is_at_most_64_kib_and_the_rest_can_be_read_on(bench: Bench) -> None:
    lines = [f"{n} " + "ж" * 900 for n in range(200)]
    bench.put("a.txt", "\n".join(lines))
    seen: list[str] = []
    for _ in range(20):
        answer = await bench.ok("Read", file_path="a.txt", offset=len(seen))
        assert len(answer.encode()) <= 64 * 1024
        rows = answer.split("\n")
        last = rows.pop() if rows[-1].startswith("[") else ""
        seen += [row.split("\t", 1)[1] for row in rows]
        if not last:
            break
        assert last.startswith("[lines ") and "64 KiB at most" in last and f"offset={len(seen)})" in last
    assert seen == lines


async def test_a_directory_a_missing_and_a_binary_file_are_clear_errors(bench: Bench) -> None:
    bench.put("src/main.py", "")
    bench.put("nul", b"abc\0def")
    bench.put("control", b"\x01\x02\x03\x04\x05\x06abc")
    assert "`src` is a directory" in await bench.fails("NOT_FILE", "Read", file_path="src")
    assert "`src/main.py`" in await bench.fails("NOT_FOUND", "Read", file_path="src/mian.py")
    for name in ("nul", "control"):
        assert "is binary" in await bench.fails("BINARY_NOT_SUPPORTED", "Read", file_path=name)
    await bench.fails("SANDBOX_VIOLATION", "Read", file_path="/etc/passwd")
    for bad in ("", "a\0b", "x" * 300):
        await bench.fails("INVALID_ARGUMENT", "Read", file_path=bad)
    await bench.fails("INVALID_ARGUMENT", "Read", file_path="nul", limit=0)


async def test_names_with_newlines_and_escapes_are_shown_on_one_line(bench: Bench) -> None:
    bench.put("a\n\x1b[31mb", b"\0")
    message = await bench.fails("BINARY_NOT_SUPPORTED", "Read", file_path="a\n\x1b[31mb")
    assert "`a\\n\\x1b[31mb`" in message


async def test_marked_and_utf16_files_are_read_as_text(bench: Bench) -> None:
    bench.put("bom.txt", b"\xef\xbb\xbfone\n")
    bench.put("u16.txt", b"\xff\xfe" + "zwei ж\r\nx\r\n".encode("utf-16-le"))
    assert await bench.ok("Read", file_path="bom.txt") == "     1\tone"
    assert await bench.ok("Read", file_path="u16.txt") == "     1\tzwei ж\n     2\tx"


async def test_an_unknown_encoding_is_shown_with_a_notice_and_a_named_one_decoded(bench: Bench) -> None:
    bench.put("l1.txt", "café\n".encode("latin-1"))
    answer = await bench.ok("Read", file_path="l1.txt")
    assert answer.startswith("     1\tcaf\\xe9\n[`l1.txt` is not UTF-8")
    assert "can't be edited until the user names its encoding in gripfast.toml" in answer
    refused = await bench.fails("ENCODING", "Edit", file_path="l1.txt", old_string="caf", new_string="tea")
    assert "(byte 0xe9 at offset 3)" in refused and "until the user names its encoding in gripfast.toml" in refused
    fs = ScopedFs(Scope.workspace(bench.root), encoding="latin-1")
    async with open_session(fs) as session:
        assert (await session.call("Read", {"file_path": "l1.txt"})).text == "     1\tcafé"


@pytest.mark.parametrize("offset", [1_999_998, -2])
async def test_a_window_at_the_end_of_a_large_file_costs_little_memory(bench: Bench, offset: int) -> None:
    line = b"x" * 62 + b"\n"
    with (bench.root / "large.txt").open("wb") as out:
        for _ in range(200):
            out.write(line * 10_000)
    tracemalloc.start()
    try:
        answer = await bench.ok("Read", file_path="large.txt", offset=offset)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    first = 1_999_999 if offset > 0 else -2
    assert answer.split("\n")[0] == f"{first:6d}\t" + "x" * 62
    assert peak < 8 * 1024 * 1024


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\0" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xdb\x00\x03x\xff\xc0\x00\x11\x08\x00\x20\x00\x40\x03" + b"\0" * 12
GIF = b"GIF89a\x40\x00\x20\x00\x00\x00\x00;"
WEBP_LOSSY = b"RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x40\x00\x20\x00"
WEBP_LOSSLESS = b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f" + struct.pack("<I", 63 | 31 << 14)
WEBP_EXTENDED = b"RIFF\x00\x00\x00\x00WEBPVP8X\x00\x00\x00\x00\x00\x00\x00\x00\x3f\x00\x00\x1f\x00\x00"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(64, 32), "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP_LOSSY, "image/webp"),
        (WEBP_LOSSLESS, "image/webp"),
        (WEBP_EXTENDED, "image/webp"),
    ],
)
async def test_images_are_told_by_their_bytes_and_measured(bench: Bench, data: bytes, kind: str) -> None:
    bench.put("picture.dat", data)
    message = await bench.call("Read", file_path="picture.dat")
    assert message.content == (
        TextPart(f"`picture.dat`: {kind}, 64x32, {len(data)} bytes"),
        ImagePart(data, kind, 64, 32),
    )


@pytest.mark.parametrize("data", [png(4, 4)[:20], b"\xff\xd8\xff", JPEG[:9], GIF[:7], WEBP_LOSSY[:20], png(0, 4)])
async def test_an_image_with_a_broken_header_is_no_image(bench: Bench, data: bytes) -> None:
    bench.put("broken.png", data)
    assert picture(data) is None
    assert "header is damaged" in await bench.fails("BINARY_NOT_SUPPORTED", "Read", file_path="broken.png")


async def test_an_image_over_5_mb_is_refused(bench: Bench) -> None:
    bench.put("large.png", png(64, 32) + b"\0" * (5 * 1024 * 1024))
    assert "at most 5242880" in await bench.fails("SIZE_LIMIT_EXCEEDED", "Read", file_path="large.png")


def pdf(*pages: str) -> bytes:
    """A small true PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        font = "<< /Font << /F1 3 0 R >> >>"
        content = 5 + 2 * number
        objects.append(f"<< /Type /Page /Parent 2 0 R /Resources {font} /Contents {content} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, places = "%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"trailer << /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}{end}".encode()


async def test_pdf_pages_come_as_text(bench: Bench) -> None:
    pytest.importorskip("pypdf")
    bench.put("a.pdf", pdf(*(f"Page number {n}" for n in range(1, 31))))
    answer = await bench.ok("Read", file_path="a.pdf", pages="2-3")
    assert answer == (
        "<page 2 of 30>\nPage number 2\n<page 3 of 30>\nPage number 3\n"
        '[pages 2 to 3 of 30 shown; continue with Read(file_path="a.pdf", pages="4-23")]'
    )
    whole = await bench.ok("Read", file_path="a.pdf")
    assert "Page number 20" in whole and "Page number 21" not in whole
    assert "past the end" in await bench.ok("Read", file_path="a.pdf", pages="31")
    for unused in ({"offset": 3}, {"limit": 5}, {"line_offset": 1}):
        answer = await bench.ok("Read", file_path="a.pdf", pages="2", **unused)
        assert answer.endswith("[offset and limit are not used for a PDF; choose with pages]")


@pytest.mark.parametrize("pages", ["", "0", "5-2", "1-21", "x", "1,2", "-3", "1-"])
async def test_a_bad_range_of_pages_is_refused(bench: Bench, pages: str) -> None:
    pytest.importorskip("pypdf")
    bench.put("a.pdf", pdf("x"))
    assert "1-5" in await bench.fails("INVALID_ARGUMENT", "Read", file_path="a.pdf", pages=pages)


async def test_a_broken_pdf_and_pages_of_a_text_are_clear_errors(bench: Bench) -> None:
    pytest.importorskip("pypdf")
    bench.put("broken.pdf", b"%PDF-1.7\nnothing follows")
    bench.put("cut.pdf", pdf("x")[:200])
    bench.put("a.txt", "x")
    for name in ("broken.pdf", "cut.pdf"):
        await bench.fails("BINARY_NOT_SUPPORTED", "Read", file_path=name)
    await bench.fails("INVALID_ARGUMENT", "Read", file_path="a.txt", pages="1")


def slow_pdf() -> bytes:
    """One page that takes minutes to be read."""
    return pdf("a) Tj\n" + "(b) Tj 1 2 Td\n" * 1_500_000 + "(c")


async def test_a_pdf_that_takes_too_long_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pypdf")
    monkeypatch.setattr(pdf_module, "SECONDS", 1.0)
    bench.put("slow.pdf", slow_pdf())
    assert "fewer pages" in await bench.fails("TIMEOUT", "Read", file_path="slow.pdf")
    assert not _readers()


READS_A_PDF = """
import sys
sys.path.insert(0, sys.argv[1])
from gripfast.host.files.pdf import pdf_pages
try:
    print(pdf_pages(sys.stdin.buffer.read(), 1, 1, "a.pdf"), flush=True)
except Exception as error:
    print(error)
"""
SPINS = """
class PdfReader:
    def __init__(self, *_, **__):
        open({mark!r}, "w").close()
        while True:
            pass
"""
BABBLES = """
class Page:
    def extract_text(self):
        return "x" * (9 << 20)
class PdfReader:
    is_encrypted, pages = False, [Page()] * 100
    def __init__(self, *_, **__):
        pass
"""


def plant(place: Path, code: str) -> None:
    """This code in place of pypdf."""
    (place / "pypdf").mkdir(parents=True)
    (place / "pypdf" / "__init__.py").write_text(code)
    (place / "pypdf" / "errors.py").write_text("class PyPdfError(Exception): ...\n")


def reader_of_pdf(place: Path, code: str) -> subprocess.Popen[bytes]:
    """A program that reads a PDF, with this code in place of pypdf where it looks first."""
    plant(place, code)
    command = [sys.executable, "-c", READS_A_PDF, str(place)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
def test_the_reader_of_a_pdf_ends_when_its_server_is_killed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with reader_of_pdf(tmp_path / "site-packages", SPINS.format(mark=str(mark))) as program:
        assert program.stdin is not None
        program.stdin.close()
        assert _soon(mark.exists)
        (child,) = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        program.kill()
    assert _soon(lambda: not Path(f"/proc/{child}/cmdline").exists() or not _command_of(child))


def test_a_pdf_with_more_text_than_anybody_reads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path / "site-packages", BABBLES)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages"), *sys.path])
    with pytest.raises(BinaryNotSupported, match="million characters"):
        pdf_module.pdf_pages(b"", 1, 20, "a.pdf")
    assert pdf_module.pdf_pages(b"", 1, 1, "a.pdf").total == 100


def test_no_code_beside_the_program_is_run_to_read_a_pdf(tmp_path: Path) -> None:
    """It may be in the workspace, where a call could have put it."""
    with reader_of_pdf(tmp_path / "beside", BABBLES) as program:
        said, _ = program.communicate(b"%PDF-1.7")
    assert b"xxx" not in said


def _soon(said: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not said():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _command_of(id: str) -> bytes:
    try:
        return Path(f"/proc/{id}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_the_reading_of_a_pdf_ends_with_the_call(bench: Bench) -> None:
    pytest.importorskip("pypdf")
    bench.put("slow.pdf", slow_pdf())
    with anyio.move_on_after(1) as given_up:
        await bench.call("Read", file_path="slow.pdf")
    assert given_up.cancelled_caught
    with anyio.fail_after(10):
        while _readers():
            await anyio.sleep(0.05)


def _readers() -> list[int]:
    """Children of this process that read a PDF."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").parent.parent.glob("*/children")
    ids = [int(id) for file in children for id in file.read_text().split()]
    return [id for id in ids if b"pdf_child" in Path(f"/proc/{id}/cmdline").read_bytes()]


async def test_notebooks_are_cells_with_outputs(bench: Bench) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "execution_count": 3,
            "source": "1 + 1",
            "outputs": [
                {"output_type": "stream", "text": ["printed\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "2"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "bad"},
                {"output_type": "display_data", "data": {"image/png": base64.b64encode(png(3, 2)).decode()}},
            ],
        },
    ]
    bench.put("n.ipynb", json.dumps({"cells": cells, "nbformat": 4}))
    message = await bench.call("Read", file_path="n.ipynb")
    text, image = message.content
    assert isinstance(text, TextPart) and isinstance(image, ImagePart)
    rows = [row.split("\t", 1)[1] for row in text.text.split("\n")]
    assert rows[:5] == ["<cell 1 markdown>", "# Title", "words", "<cell 2 code [3]>", "1 + 1"]
    assert rows[5:] == (
        "<output>|printed|<output>|2|<output>|ValueError: bad|<output>|[image/png 3x2: picture 1 below]".split("|")
    )
    bench.put("broken.ipynb", '{"cells": 3}')
    assert await bench.ok("Read", file_path="broken.ipynb") == '     1\t{"cells": 3}'


async def test_a_link_is_read_and_an_escaping_one_is_not(bench: Bench, tmp_path: Path) -> None:
    bench.put("a.txt", "here")
    (tmp_path / "secret").write_text("no")
    os.symlink("a.txt", bench.root / "in")
    os.symlink("../secret", bench.root / "out")
    assert await bench.ok("Read", file_path="in") == "     1\there"
    assert "`out`" in await bench.fails("SANDBOX_VIOLATION", "Read", file_path="out")


async def test_a_small_local_file_is_read_on_the_loop_and_anything_else_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path
    threads: list[str] = []
    answer = read_module.__dict__["_answer"]

    def noted(*arguments: Any) -> Any:
        threads.append("loop" if threading.current_thread() is threading.main_thread() else "beside")
        return answer(*arguments)

    monkeypatch.setattr(read_module, "_answer", noted)
    (root / "small.txt").write_text("a\n", encoding="utf-8")
    (root / "large.txt").write_text("a\n" * SMALL, encoding="utf-8")
    for local in (True, False):
        monkeypatch.setattr(ScopedFs, "is_local", local)
        async with open_session(ScopedFs(Scope.workspace(root))) as session:
            for name in ("small.txt", "large.txt"):
                assert not (await session.call("Read", {"file_path": name, "limit": 1})).is_error
    assert threads == ["loop", "beside", "beside", "beside"]


async def test_paging_through_a_file_reads_it_whole_only_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"line {number}\n" for number in range(60_000))
    path = bench.put("long.txt", text)
    monkeypatch.setattr(guard, "_SETTLED_NS", -(1 << 62))
    whole: list[int] = []
    reading = opened._whole  # pyright: ignore[reportPrivateUsage]

    def counted(fd: int, size: int, asked: str) -> bytes:
        whole.append(size)
        return reading(fd, size, asked)

    monkeypatch.setattr(opened, "_whole", counted)
    first = await bench.ok("Read", file_path="long.txt", limit=2)
    assert await bench.ok("Read", file_path="long.txt", limit=2) == first
    assert await bench.ok("Read", file_path="long.txt", offset=59_998) == " 59999\tline 59998\n 60000\tline 59999"
    assert await bench.ok("Read", file_path="long.txt", offset=-1) == " 60000\tline 59999"
    assert len(whole) == 1
    path.write_text(text.replace("line 0\n", "LINE 0\n"))
    assert "LINE 0" in await bench.ok("Read", file_path="long.txt", limit=1)
    assert len(whole) == 2


def _continued(answer: str) -> dict[str, Any] | None:
    """The arguments of the call that a note names."""
    named = re.search(r"(\w+)\((.*?)\)", answer.rsplit("\n[", 1)[-1]) if "\n[" in answer else None
    return dict(re.findall(r'(\w+)="?([^",)]+)"?', named[2])) if named else None


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("x" * 300_000, "utf-8"),
        ("aé日😀" * 20_000, "utf-8"),
        ("日本語" * 20_000, "shift_jis"),
        ("é日" * 20_000, "utf-16"),
    ],
)
@pytest.mark.parametrize("end", ["", "\n", "\r\nlast\r\n"])
async def test_every_character_of_a_long_line_can_be_read_by_the_calls_the_notes_name(
    bench: Bench, text: str, encoding: str, end: str
) -> None:
    bench.put("a.txt", ("first\n" + text + end).encode(encoding))
    async with open_session(ScopedFs(Scope.workspace(bench.root), encoding="shift_jis")) as session:
        arguments: dict[str, Any] | None = {"file_path": "a.txt", "offset": 1, "limit": 1}
        seen = ""
        for _ in range(100):
            answer = (await session.call("Read", arguments)).text
            assert len(answer.encode()) <= 16_000
            row = answer.split("\n")[0]
            assert row.startswith("     2\t")
            seen += re.sub(r"^\[after \d+ bytes\] | \[\.\.\. \d+ more bytes\]$", "", row[7:])
            arguments = _continued(answer.split("\n[lines")[0])
            if arguments is None or "line_offset" not in arguments:
                break
    assert seen == text


async def test_a_place_past_the_end_of_a_line_says_how_long_it_is(bench: Bench) -> None:
    bench.put("a.txt", "one\ntwo\n")
    answer = await bench.ok("Read", file_path="a.txt", offset=1, line_offset=3)
    assert answer == "[line 2 of `a.txt` has 3 bytes; line_offset 3 is past the end]"
    answer = await bench.ok("Read", file_path="a.txt", offset=2, line_offset=1)
    assert answer == "[line 3 of `a.txt` does not exist; line_offset 1 is past the end]"
    assert await bench.ok("Read", file_path="a.txt", offset=-2, line_offset=1) == (
        '    -2\t[after 1 bytes] ne\n[line -2 ends here; continue with Read(file_path="a.txt", offset=-1)]'
    )


async def test_a_long_line_of_a_notebook_can_be_read_to_its_end(bench: Bench) -> None:
    cell = {"cell_type": "code", "source": "x = 1", "outputs": [{"output_type": "stream", "text": "y" * 9_000}]}
    bench.put("n.ipynb", json.dumps({"cells": [cell], "nbformat": 4}))
    first = await bench.ok("Read", file_path="n.ipynb")
    assert "[... 7000 more bytes]" in first
    rest = await bench.session.call("Read", _continued(first))
    assert rest.text.endswith("y" * 7_000)


@pytest.mark.parametrize("skip", [1, 2, 3, 4, 5, 6])
async def test_a_place_inside_a_character_shows_it_whole(bench: Bench, skip: int) -> None:
    bench.put("a.txt", "a€€b\n")
    answer = await bench.ok("Read", file_path="a.txt", line_offset=skip)
    start = 1 if skip < 4 else 4
    assert answer == f"     1\t[after {start} bytes] {'€€b' if start == 1 else '€b'}"


async def test_a_byte_that_is_no_part_of_a_character_is_shown_as_one(bench: Bench) -> None:
    bench.put("a.txt", b"\xc3x\xa9y\n")
    answer = await bench.ok("Read", file_path="a.txt", line_offset=2)
    assert answer.startswith("     1\t[after 2 bytes] \\xa9y\n[`a.txt` is not UTF-8")


async def test_a_part_of_a_notebook_comes_with_the_pictures_in_it_only(bench: Bench) -> None:
    outputs = [[{"data": {"image/png": base64.b64encode(png(size, 1)).decode()}}] for size in (1, 2)]
    cells = [{"cell_type": "code", "source": f"# {at}", "outputs": one} for at, one in enumerate(outputs)]
    bench.put("n.ipynb", json.dumps({"cells": cells}))
    whole = (await bench.call("Read", file_path="n.ipynb")).content
    assert [type(part).__name__ for part in whole] == ["TextPart", "ImagePart", "ImagePart"]
    assert isinstance((await bench.call("Read", file_path="n.ipynb", limit=2)).content, str)
    last = (await bench.call("Read", file_path="n.ipynb", offset=4)).content
    assert [part.width for part in last if isinstance(part, ImagePart)] == [2]
    assert "below" not in await bench.ok("outline", path="n.ipynb")


async def test_a_directory_is_named_with_the_call_that_lists_it(bench: Bench) -> None:
    bench.put("d/a.txt", "x")
    message = await bench.fails("NOT_FILE", "Read", file_path="d")
    assert message == '`d` is a directory; name a file in it; Glob(pattern="*", path="d") lists it'
    assert await bench.ok("Glob", pattern="*", path="d") == "d/a.txt"
