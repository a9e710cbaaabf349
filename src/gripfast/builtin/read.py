"""Read: numbered lines of a text file; also images, PDF pages and notebooks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated

from gripfast.builtin.images import media_type, picture
from gripfast.builtin.keys import FS, OFFERED, READS
from gripfast.builtin.numbered import LONGEST_LINE, PIECE, ROOM, clipped, cut_note, numbered, numbered_piece
from gripfast.errors import BinaryNotSupported, InvalidArgument, NotFile, SizeLimitExceeded
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import in_thread, tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.encodings import NAME_IT, TextForm, is_binary, shown_form
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.lines import LinePiece, LineWindow, count_lines, data_chunks, line_piece, window
from gripfast.host.files.opened import OpenFile
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.pdf import pdf_pages
from gripfast.messages import ImagePart, Part, TextPart
from gripfast.records import dataclass
from gripfast.text.cut import unfinished, whole_characters
from gripfast.text.plural import plural

LARGEST_IMAGE = 5 * 1024 * 1024
LARGEST_DOCUMENT = 64 * 1024 * 1024
MOST_PAGES = 20
LIMIT = 2000
SMALL, SMALL_NOTEBOOK = 1024 * 1024, 128 * 1024
_PICTURE = re.compile(r"^ *\d+\t\[image/\S+ \d+x\d+: picture ([1-9]\d{0,3}) below\]$", re.MULTILINE)
_PAGES = r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?\Z"


@tool(
    later=True,
    name="Read",
    title="Read a file",
    effect="read",
    subject="file_path",
    idempotent=True,
    hides_minima=True,
    profiles=("agent", "read-only", "codex", "lisp"),
)
async def read(
    file_path: Annotated[WorkPath, Field(description="Absolute or workspace-relative.")],
    offset: Annotated[int, Field(description="Lines to skip; negative: from the end.")] = 0,
    limit: Annotated[int, Field(description="Lines to return, 64 KiB at most; long ones are cut.", ge=1)] = LIMIT,
    line_offset: Annotated[int, Field(description="Bytes to skip in the first line.", ge=0)] = 0,
    pages: Annotated[str | None, Field(description="PDF pages like 1-5, at most 20.")] = None,
    *,
    ctx: ToolContext,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    offered: Annotated[frozenset[str], Depends(OFFERED)],
) -> str | list[Part]:
    """Reads a file: text as numbered lines, images, PDF pages, notebook cells. Read a file before you edit it."""
    work = partial(_read, fs, reads, file_path, ReadRequest(offset, limit, line_offset, pages), ctx)
    try:
        answer = work(at_once=True) if fs.is_local else None
        if answer is None:
            answer = await in_thread(work, ctx) or ""
    except NotFile as error:
        raise _listed(error, fs.show(file_path), offered) from None
    return _with_hint(answer, fs.show(file_path)) if "outline" in offered else answer


def _listed(error: NotFile, shown: str, offered: frozenset[str]) -> NotFile:
    """For a directory, the error with the call that lists it."""
    if not error.details.get("is_directory") or "Glob" not in offered:
        return error
    return NotFile(f'{error.message}; Glob(pattern="*", path="{shown}") lists it', details=error.details)


def _with_hint(answer: str | list[Part], shown: str) -> str | list[Part]:
    """Source that continues past the window: what shows the rest of it for less. Lines of the file have numbers, so
    a last line without one is ours."""
    if not isinstance(answer, str) or not answer.startswith("[lines ", answer.rfind("\n") + 1):
        return answer
    from gripfast.outline.languages import language_of  # noqa: PLC0415 - only for what continues past the window

    return f'{answer}\n[outline(path="{shown}") shows what it defines]' if language_of(shown) else answer


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Which part of a file is asked for."""

    offset: int
    limit: int
    line_offset: int = 0
    pages: str | None = None


def _read(
    fs: ScopedFs,
    reads: ReadLog,
    path: WorkPath,
    wanted: ReadRequest,
    ctx: ToolContext,
    *,
    at_once: bool = False,
) -> str | list[Part] | None:
    """`at_once` runs in the event loop's thread, which is faster for a small file; None for one that is not small."""
    shown = fs.show(path)
    with fs.open_read(path) as file:
        file.recall(reads)
        small = SMALL_NOTEBOOK if shown.endswith(".ipynb") else SMALL
        if at_once and (file.stat.st_size > small or file.head().startswith(b"%PDF-")):
            return None
        answer = _answer(fs, file, shown, wanted, ctx)
        file.record(reads)
    return answer


def _answer(fs: ScopedFs, file: OpenFile, shown: str, wanted: ReadRequest, ctx: ToolContext) -> str | list[Part]:
    head = file.head()
    if media_type(head) is not None:
        return _image(file, shown)
    if head.startswith(b"%PDF-"):
        return "\n".join([_pdf(file, shown, wanted.pages, ctx), *_unused(wanted)])
    if wanted.pages is not None:
        raise InvalidArgument(f"`pages` works only for PDF files, and `{shown}` is not one; use offset and limit")
    if is_binary(head):
        raise BinaryNotSupported(f"`{shown}` is binary ({file.stat.st_size} bytes); Read shows text, images and PDF")
    if shown.endswith(".ipynb") and (cells := _notebook(file, shown)) is not None:
        return _cells(*cells, shown, wanted)
    return _text(file, shown, wanted, fs.encoding)


def _notebook(file: OpenFile, shown: str) -> tuple[str, list[ImagePart]] | None:
    from gripfast.builtin.notebook import notebook  # noqa: PLC0415 - brings pydantic, and notebooks are rare

    return notebook(_whole(file, shown))


def _whole(file: OpenFile, shown: str, largest: int = LARGEST_DOCUMENT) -> bytes:
    if file.stat.st_size > largest:
        raise SizeLimitExceeded(f"`{shown}` has {file.stat.st_size} bytes; at most {largest} can be shown")
    return file.content()


# --- text ---


def _text(file: OpenFile, shown: str, wanted: ReadRequest, encoding: str | None) -> str:
    encoding = None if file.form.wide else encoding
    if wanted.line_offset:
        return _piece(lambda skip: file.piece(wanted.offset, skip, PIECE), shown, wanted, encoding)
    return _lines(file.window(wanted.offset, wanted.limit, budget=ROOM), shown, wanted, encoding)


def _lines(window: LineWindow, shown: str, wanted: ReadRequest, encoding: str | None) -> str:
    lines = window.lines
    for at in window.long:
        lines[at] = whole_characters(lines[at], encoding)
    joined = b"\n".join(lines)
    form = shown_form(joined, encoding)
    rows = joined.decode(form.codec, "backslashreplace").split("\n") if lines else []
    cuts = _clip(rows, window, form) if window.long or max(map(len, rows), default=0) > LONGEST_LINE else []
    fitting = numbered(rows, window.first)
    shown_cuts = [cut for cut in cuts if cut[0] < window.first + len(fitting)]
    notes = cut_note(shown_cuts, partial(_call, shown)) + _notes(window, len(fitting), shown, wanted)
    return "\n".join([*fitting, *notes, *_undecoded(form, shown)])


def _clip(rows: list[str], window: LineWindow, form: TextForm) -> list[tuple[int, int]]:
    """Clips long rows. Returns their line numbers and how many bytes of each are shown."""
    cuts: list[tuple[int, int]] = []
    for at, row in enumerate(rows):
        if len(row) > LONGEST_LINE or at in window.long:
            line = window.lines[at]
            cut = clipped(line, window.long.get(at, len(line)), form.codec)
            rows[at] = cut.row
            cuts.append((window.first + at, cut.end))
    return cuts


def _piece(
    piece_after: Callable[[int], LinePiece | None], shown: str, wanted: ReadRequest, encoding: str | None
) -> str:
    """One line from byte `line_offset` on; if that is inside a character, from where this begins."""
    piece, back = piece_after(wanted.line_offset), 0
    if piece is not None and b"\x80" <= piece.data[:1] < b"\xc0":
        before = piece_after(max(0, wanted.line_offset - 3))
        back = 0 if before is None else _inside(before.data, min(3, wanted.line_offset))
        piece = piece_after(wanted.line_offset - back) if back else piece
    wanted = replace(wanted, line_offset=wanted.line_offset - back)
    number = wanted.offset + 1 if wanted.offset >= 0 else wanted.offset
    if piece is None or wanted.line_offset >= piece.length:
        size = f"has {piece.length} bytes" if piece else "does not exist"
        return f"[line {number} of `{shown}` {size}; line_offset {wanted.line_offset} is past the end]"
    data = whole_characters(piece.data, encoding)
    form = shown_form(data, encoding)
    end = wanted.line_offset + len(data)
    text = data.decode(form.codec, "backslashreplace")
    row = numbered_piece(number, text, wanted.line_offset, piece.length - end)
    notes = cut_note([(number, end)] if end < piece.length else [], partial(_call, shown))
    if piece.more and not notes and number != -1:
        notes = [f"[line {number} ends here; continue with {_call(shown, f'offset={wanted.offset + 1}')}]"]
    return "\n".join([row, *notes, *_undecoded(form, shown)])


def _inside(data: bytes, at: int) -> int:
    """How many bytes before `at` the UTF-8 character begins that goes on there; 0 if there is none."""
    back = unfinished(data[:at])
    begun = data[at - back : at - back + 4]
    is_character = back and any(shown_form(begun[:size], None).exact for size in range(back + 1, 5))
    return back if is_character else 0


def _undecoded(form: TextForm, shown: str) -> list[str]:
    if form.exact:
        return []
    return [f"[`{shown}` is not UTF-8: invalid bytes are shown as \\xNN, and it can't be edited until {NAME_IT}]"]


def _call(shown: str, place: str) -> str:
    return f'Read(file_path="{shown}", {place})'


def _notes(window: LineWindow, count: int, shown: str, wanted: ReadRequest) -> list[str]:
    """What is not shown, and the call that shows it."""
    if not count:
        return [_nothing(window.total or 0, shown, wanted.offset)]
    last = window.first + count - 1
    if count == len(window.lines) and not window.more:
        return ["[lines are numbered from the end]"] if window.first < 0 else []
    total = f" of {window.total}" if window.total is not None else ""
    cut = " (64 KiB at most)" if count < wanted.limit else ""
    following = last if window.first > 0 else last + 1
    limit = f", limit={wanted.limit}" if wanted.limit != LIMIT else ""
    call = _call(shown, f"offset={following}{limit}")
    return [f"[lines {window.first} to {last}{total} shown{cut}; continue with {call}]"]


def _nothing(total: int, shown: str, offset: int) -> str:
    if total == 0:
        return f"[`{shown}` is empty]"
    return f"[`{shown}` has {plural(total, 'line')}; offset {offset} is past the end]"


# --- other kinds ---


def _image(file: OpenFile, shown: str) -> list[Part]:
    data = _whole(file, shown, LARGEST_IMAGE)
    found = picture(data)
    if found is None:
        raise BinaryNotSupported(f"`{shown}` looks like an image ({media_type(data)}), but its header is damaged")
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
        call = _call(shown, f'pages="{last + 1}-{min(last + MOST_PAGES, found.total)}"')
        rows.append(f"[pages {first} to {last} of {found.total} shown; continue with {call}]")
    return "\n".join(rows)


def _unused(wanted: ReadRequest) -> list[str]:
    if wanted.offset or wanted.line_offset or wanted.limit != LIMIT:
        return ["[offset and limit are not used for a PDF; choose with pages]"]
    return []


def _page_range(pages: str | None) -> tuple[int, int]:
    if pages is None:
        return 1, MOST_PAGES
    match = re.match(_PAGES, pages)
    first = int(match[1]) if match else 0
    last = int(match[2] or first) if match else 0
    if not 1 <= first <= last or last - first >= MOST_PAGES:
        raise InvalidArgument(f'`pages` is {pages!r}; use a page or a range like "1-5", at most {MOST_PAGES} pages')
    return first, last


def _cells(text: str, pictures: list[ImagePart], shown: str, wanted: ReadRequest) -> str | list[Part]:
    data = text.encode("utf-8", "replace")
    total = count_lines(data_chunks(data))
    here = replace(wanted, offset=wanted.offset if wanted.offset >= 0 else max(0, total + wanted.offset))
    if here.line_offset:
        answer = _piece(lambda skip: line_piece(data_chunks(data), here.offset, skip, PIECE), shown, here, None)
    else:
        found = window(data_chunks(data), here.offset, here.limit, budget=ROOM, count=True)
        answer = _lines(found, shown, here, None)
    seen = [pictures[int(number) - 1] for number in _PICTURE.findall(answer) if int(number) <= len(pictures)]
    return [TextPart(answer), *seen] if seen else answer
