"""Read: a numbered window of a text file; images, PDF pages and notebooks as what they are."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from pydantic import Field

from holdfast.builtin.images import media_type, picture
from holdfast.builtin.keys import FS, READS
from holdfast.builtin.notebook import notebook
from holdfast.builtin.numbered import ROOM, numbered
from holdfast.errors import BinaryNotSupported, InvalidArgument, SizeLimitExceeded
from holdfast.host.fs import ScopedFs
from holdfast.host.guard import ReadLog
from holdfast.host.lines import Window
from holdfast.host.opened import OpenFile
from holdfast.host.paths import WorkPath
from holdfast.host.pdf import pdf_pages
from holdfast.host.text import is_binary, shown_form, whole_characters
from holdfast.messages import ImagePart, Part, TextPart
from holdfast.tool.context import ToolContext
from holdfast.tool.definition import in_thread, tool
from holdfast.tool.depends import Depends

LARGEST_IMAGE = 5 * 1024 * 1024
LARGEST_DOCUMENT = 64 * 1024 * 1024
MOST_PAGES = 20
SMALL, SMALL_AND_KNOWN = 128 * 1024, 1024 * 1024
_PAGES = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?\Z")


@tool(name="Read", title="Read a file", effect="read", subject="file_path", idempotent=True)
async def read(
    file_path: Annotated[WorkPath, Field(description="Absolute, or relative to the workspace.")],
    offset: Annotated[int, Field(description="Lines to skip; negative counts from the end.")] = 0,
    limit: Annotated[int, Field(description="Lines to return.", ge=1)] = 2000,
    pages: Annotated[str | None, Field(description='PDF only: pages like "1-5", at most 20.')] = None,
    *,
    ctx: ToolContext,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
) -> str | list[Part]:
    """Reads a file: text as numbered lines, images, PDF pages, notebook cells. Read a file before you edit it."""
    work = partial(_read, fs, reads, file_path, offset, limit, pages, ctx)
    if fs.answers_at_once and (answer := work(at_once=True)) is not None:
        return answer
    return await in_thread(work, ctx) or ""


def _read(
    fs: ScopedFs,
    reads: ReadLog,
    path: WorkPath,
    offset: int,
    limit: int,
    pages: str | None,
    ctx: ToolContext,
    *,
    at_once: bool = False,
) -> str | list[Part] | None:
    """`at_once` is for the loop's own thread: a small file is shown there sooner than a thread could be woken."""
    shown = fs.show(path)
    with fs.open_read(path) as file:
        small = SMALL_AND_KNOWN if file.recall(reads) and not shown.endswith(".ipynb") else SMALL
        if at_once and (file.stat.st_size > small or file.head().startswith(b"%PDF-")):
            return None
        answer = _answer(fs, file, shown, offset, limit, pages, ctx)
        file.record(reads)
    return answer


def _answer(
    fs: ScopedFs, file: OpenFile, shown: str, offset: int, limit: int, pages: str | None, ctx: ToolContext
) -> str | list[Part]:
    head = file.head()
    if media_type(head) is not None:
        return _image(file, shown)
    if head.startswith(b"%PDF-"):
        return _pdf(file, shown, pages, ctx)
    if pages is not None:
        raise InvalidArgument(f"`pages` is for PDF files; `{shown}` is none. Use offset and limit")
    if is_binary(head):
        raise BinaryNotSupported(f"`{shown}` is binary ({file.stat.st_size} bytes); Read shows text, images and PDF")
    if shown.endswith(".ipynb") and (cells := notebook(_whole(file, shown))) is not None:
        return _cells(*cells, shown, offset, limit)
    return _text(file, shown, offset, limit, fs.encoding)


def _whole(file: OpenFile, shown: str, largest: int = LARGEST_DOCUMENT) -> bytes:
    if file.stat.st_size > largest:
        raise SizeLimitExceeded(f"`{shown}` has {file.stat.st_size} bytes; at most {largest} can be shown")
    return file.content()


# --- text ---


def _text(file: OpenFile, shown: str, offset: int, limit: int, encoding: str | None) -> str:
    window = file.window(offset, limit, budget=ROOM)
    for at in window.long:
        window.lines[at] = whole_characters(window.lines[at], encoding)
    joined = b"\n".join(window.lines)
    form = shown_form(joined, None if file.form.wide else encoding)
    rows = joined.decode(form.codec, "backslashreplace").split("\n") if window.lines else []
    fitting = numbered(rows, window.first, window.long)
    notes = _notes(window, len(fitting), shown, offset, limit)
    if not form.exact:
        notes.append(
            f"[`{shown}` is not UTF-8: odd bytes are shown as \\xNN; to edit it, set `encoding` in the config]"
        )
    return "\n".join([*fitting, *notes])


def _notes(window: Window, count: int, shown: str, offset: int, limit: int) -> list[str]:
    """What is missing, and the call that continues."""
    if not count:
        return [_nothing(window.total or 0, shown, offset)]
    last = window.first + count - 1
    if count == len(window.lines) and not window.more:
        return ["[the numbers count from the end]"] if window.first < 0 else []
    total = f" of {window.total}" if window.total is not None else ""
    cut = " (64 KiB at most)" if count < limit else ""
    following = last if window.first > 0 else last + 1
    call = f'Read(file_path="{shown}", offset={following}' + (f", limit={limit})" if limit != 2000 else ")")
    return [f"[lines {window.first} to {last}{total} shown{cut}; go on with {call}]"]


def _nothing(total: int, shown: str, offset: int) -> str:
    if total == 0:
        return f"[`{shown}` is empty]"
    return f"[`{shown}` has {total} line{'s' if total > 1 else ''}; offset {offset} is past the end]"


# --- other kinds ---


def _image(file: OpenFile, shown: str) -> list[Part]:
    data = _whole(file, shown, LARGEST_IMAGE)
    found = picture(data)
    if found is None:
        raise BinaryNotSupported(f"`{shown}` begins like an image ({media_type(data)}), but its header is broken")
    words = f"`{shown}`: {found.media_type}, {found.width}x{found.height}, {len(data)} bytes"
    return [TextPart(words), ImagePart(data, found.media_type, found.width, found.height)]


def _pdf(file: OpenFile, shown: str, pages: str | None, ctx: ToolContext) -> str:
    first, last = _page_range(pages)
    found = pdf_pages(_whole(file, shown), first, last - first + 1, shown, is_cancelled=lambda: ctx.cancelled)
    if first > found.total:
        return f"[`{shown}` has {found.total} pages; page {first} is past the end]"
    rows: list[str] = []
    for number, text in enumerate(found.texts, first):
        page = [f"<page {number} of {found.total}>", text.strip() or "[no text on this page]"]
        if rows and sum(len(row.encode()) + 1 for row in (*rows, *page)) > ROOM:
            last = number - 1
            break
        rows += page
    last = min(last, found.total)
    if last < found.total:
        rows.append(f'[pages {first} to {last} of {found.total} shown; go on with pages="{last + 1}-..."]')
    return "\n".join(rows)


def _page_range(pages: str | None) -> tuple[int, int]:
    if pages is None:
        return 1, MOST_PAGES
    match = _PAGES.match(pages)
    first = int(match[1]) if match else 0
    last = int(match[2] or first) if match else 0
    if not 1 <= first <= last or last - first >= MOST_PAGES:
        raise InvalidArgument(f'`pages` is {pages!r}; give a page or a range like "1-5", at most {MOST_PAGES} pages')
    return first, last


def _cells(text: str, pictures: list[ImagePart], shown: str, offset: int, limit: int) -> str | list[Part]:
    rows = text.split("\n") if text else []
    start = offset if offset >= 0 else max(0, len(rows) + offset)
    chosen = numbered(rows[start : start + limit], start + 1)
    window = Window([row.encode() for row in chosen], start + 1, len(rows), start + len(chosen) < len(rows), True)
    answer = "\n".join([*chosen, *_notes(window, len(chosen), shown, offset, limit)])
    return [TextPart(answer), *pictures] if pictures else answer
