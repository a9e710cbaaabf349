"""lisp-read-file: a Lisp file with one line per form, and in full what a pattern asks for; other text files too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # the standard one has a schema only from Python 3.12 on

from gripfast.builtin.images import picture
from gripfast.builtin.keys import FS, READS
from gripfast.errors import BinaryNotSupported, InvalidRegex, SizeLimitExceeded, TimedOut
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.schema import output_schema
from gripfast.host.files.encodings import is_binary, marked_form
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.opened import OpenFile
from gripfast.host.files.paths import WorkPath
from gripfast.lisp.dialects import Dialect, dialect_of
from gripfast.lisp.forms import Form
from gripfast.lisp.patterns import BadLispPattern, Budget, Pattern, PatternTimeout
from gripfast.lisp.view import MAX_CHARACTERS, Page, View, collapse
from gripfast.messages import ImagePart, Part, TextPart

LARGEST = 64 * 1024 * 1024
PATTERN_SECONDS = 5.0  # for all forms of a call together
READ_SECONDS = 10.0  # for the forms of a file, as a worker of outline has
CONTEXT_LINES = 5


class ReaderError(TypedDict):
    line: int
    column: int
    message: str


class Meta(TypedDict):
    total_forms: NotRequired[int]
    expanded_forms: NotRequired[int]
    truncated: bool
    errors: NotRequired[list[ReaderError]]
    notice: NotRequired[str]


class LispFile(TypedDict):
    content: str
    path: str
    mode: str
    meta: Meta


@tool(
    name="lisp-read-file",
    title="Read a Lisp file, collapsed",
    effect="read",
    subject="path",
    output="bounded",
    idempotent=True,
    display_field="content",
    profiles=("read-only", "lisp"),
    output_schema=output_schema(LispFile),
)
def lisp_read_file(
    path: Annotated[WorkPath, Field(description="Absolute, or relative to the workspace.")],
    collapsed: Annotated[bool, Field(description="One line per definition; false: the text from offset on.")] = True,
    name_pattern: Annotated[
        str | None, Field(description="Regex (CL-PPCRE) on definition names; matches are shown in full.")
    ] = None,
    content_pattern: Annotated[
        str | None, Field(description="Regex (CL-PPCRE) on the source of forms; matches are shown in full.")
    ] = None,
    offset: Annotated[int, Field(description="Lines to skip, with collapsed=false.", ge=0)] = 0,
    limit: Annotated[int, Field(description="Lines to return.", ge=1)] = 2000,
    only_matches: Annotated[bool, Field(description="Leave out forms that don't match, but in-package.")] = False,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    ctx: ToolContext,
) -> LispFile | list[Part]:
    """Reads a Lisp file (Common Lisp, Emacs Lisp, Scheme, Clojure) as an outline: each definition on one numbered
    line with its signature and docstring. To see forms in full, use name_pattern or content_pattern. Other
    text files: the lines around matches of content_pattern, else the text."""
    budget = Budget(PATTERN_SECONDS, lambda: ctx.now().timestamp())
    name = _pattern("name_pattern", name_pattern, budget)
    content = _pattern("content_pattern", content_pattern, budget)
    with fs.within_roots().open_read(path) as file:
        data, real = _whole(file, fs.show(path)), file.real
        file.record(reads)
    if found := picture(data):
        return _image(ImagePart(data, found.media_type, found.width, found.height), real)
    text, notices = _decoded(data, fs.encoding, fs.show(path))
    dialect = dialect_of(real) or dialect_of(path.text)
    check = _check(fs.show(path), ctx)
    try:
        if collapsed and dialect:
            wanted = _wanted(name, content, dialect, ctx)
            view = collapse(text, dialect, wanted=wanted, limit=limit, only_matches=only_matches, check=check)
            return _collapsed(real, view, bool(name or content), offset, notices)
        if dialect and (name or content):
            wanted = _wanted(name, content, dialect, ctx)
            notices += _places(collapse(text, dialect, wanted=wanted, limit=0, check=check))
        if collapsed and content:
            return _filtered(real, text, content, limit, notices, ctx)
    except PatternTimeout as error:
        raise TimedOut(f"{error} on `{fs.show(path)}`; use a simpler or more specific pattern") from None
    if not collapsed:
        return _raw(real, text, "raw", offset, limit, notices)
    if name:
        notices.append("name_pattern works only for Lisp files; use content_pattern")
    return _raw(real, text, "text", 0, limit, notices)


def _check(shown: str, ctx: ToolContext) -> Callable[[], None]:
    """Ends the reading of forms that takes too long, or that nobody waits for any more."""
    budget = Budget(READ_SECONDS, lambda: ctx.now().timestamp())

    def check() -> None:
        ctx.check_cancelled()
        if budget.left() <= 0:
            raise TimedOut(
                f"the forms of `{shown}` could not be read within {READ_SECONDS:g} seconds; "
                "use collapsed=false with an offset, or Grep"
            )

    return check


def _pattern(parameter: str, source: str | None, budget: Budget) -> Pattern | None:
    if not source:
        return None
    try:
        return Pattern(source, budget)
    except BadLispPattern as error:
        raise InvalidRegex(f"{parameter} {source!r} is not a CL-PPCRE pattern: {error}") from None


def _whole(file: OpenFile, shown: str) -> bytes:
    if file.stat.st_size > LARGEST:
        raise SizeLimitExceeded(
            f"`{shown}` has {file.stat.st_size} bytes; at most {LARGEST} can be shown. Use Read for a part of it"
        )
    return file.content()


def _image(image: ImagePart, path: str) -> list[Part]:
    """The image, after the fields that every answer has."""
    words = f"{image.media_type}, {image.width}x{image.height}, {len(image.data)} bytes"
    fields = _answer(words, path, "image", {"truncated": False}, [])
    return [TextPart(json.dumps(fields, ensure_ascii=False)), image]


def _decoded(data: bytes, encoding: str | None, shown: str) -> tuple[str, list[str]]:
    """The text with its own line endings, and notices about it."""
    if is_binary(data):
        raise BinaryNotSupported(f"`{shown}` is binary ({len(data)} bytes) and has no forms or lines")
    marked = marked_form(data)
    if marked:
        return data[len(marked.bom) :].decode(marked.codec, "replace"), []
    for codec in filter(None, ("utf-8", encoding)):
        try:
            return data.decode(codec), []
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), ["not UTF-8: shown as latin-1"]


def _wanted(
    name: Pattern | None, content: Pattern | None, dialect: Dialect, ctx: ToolContext
) -> Callable[[Form, str], bool] | None:
    """Which forms are shown in full: those whose name or whose source matches."""
    if not name and not content:
        return None

    def wanted(form: Form, source: str) -> bool:
        ctx.check_cancelled()
        named = name is not None and any(map(name.search, form.spellings(dialect.package)))
        return named or (content is not None and content.search(source))

    return wanted


def _collapsed(
    path: str,
    view: View,
    filtered: bool,
    offset: int,
    notices: list[str],
) -> LispFile:
    notices += _notices(view, filtered)
    if offset:
        notices.append("offset works only with collapsed=false")
    meta: Meta = {
        "total_forms": view.total_forms,
        "expanded_forms": view.expanded_forms,
        "truncated": view.truncated,
    }
    if view.problems:
        meta["errors"] = [{"line": at.line, "column": at.column, "message": at.message} for at in view.problems]
    return _answer(view.content, path, "lisp-collapsed", meta, notices)


def _notices(view: View, filtered: bool) -> Iterator[str]:
    if view.truncated:
        more = "use a pattern with only_matches" if view.at_size_limit else "raise limit"
        yield f"cut: not every form is shown; {more}, or continue with collapsed=false and an offset"
    if view.unseen:
        places = ", ".join(f"{at.name or 'a form'} (line {at.line})" for at in view.unseen)
        yield f"matches past the cut: {places}"
    if filtered and not view.expanded_forms and not view.unseen:
        yield "only forms that are always shown match" if view.matched_context else "no form matches"


def _places(view: View) -> Iterator[str]:
    """Where the forms that match are, for an answer that is the text itself."""
    places = ", ".join(f"{at.name or 'a form'} (line {at.line})" for at in view.unseen)
    yield f"matches: {places}" if places else "no form matches"


def _filtered(path: str, text: str, pattern: Pattern, limit: int, notices: list[str], ctx: ToolContext) -> LispFile:
    lines = _lines(text)
    page, shown = Page(limit), 0
    hits = 0
    for index, line in enumerate(lines):
        if index % 1024 == 0:
            ctx.check_cancelled()
        if not pattern.search(line):
            continue
        hits += 1
        start, end = max(shown, index - CONTEXT_LINES), min(len(lines), index + CONTEXT_LINES + 1)
        if shown and start > shown:
            page.write_plain("--")
        page.write(enumerate(lines[start:end], start + 1))
        shown = end
    if page.cut:
        notices.append(f"cut after {page.lines} lines; {hits} lines match")
    if not hits:
        notices.append(f"none of the {len(lines)} lines match")
    return _answer(page.text(), path, "text-filtered", {"truncated": page.cut}, notices)


def _raw(path: str, text: str, mode: str, offset: int, limit: int, notices: list[str]) -> LispFile:
    """A window of the text itself: its own line endings, no numbers."""
    start = _after_lines(text, 0, offset)
    end = _after_lines(text, start, limit)
    if end - start > MAX_CHARACTERS:
        end = text.rfind("\n", start, start + MAX_CHARACTERS) + 1 or start + MAX_CHARACTERS
    shown, total = text[start:end], _count(text)
    if end < len(text):
        following = offset + _count(shown)
        if not shown.endswith("\n"):
            size = len(shown.rpartition("\n")[2].encode("utf-8", "replace"))
            place = f"offset={following - 1}, line_offset={size}"
            notices.append(f"line {following} is cut; Read(file_path=..., {place}) shows the rest")
        notices.append(
            f"lines {offset + 1} to {following} of {total}; continue with collapsed=false, offset={following}"
        )
    elif start >= len(text) and offset:
        notices.append(f"the file has {total} lines; offset {offset} is past the end")
    return _answer(shown, path, mode, {"truncated": end < len(text)}, notices)


def _after_lines(text: str, at: int, count: int) -> int:
    """The offset after `count` lines."""
    while count > 0 and at < len(text):
        at = text.find("\n", at) + 1 or len(text)
        count -= 1
    return at


def _lines(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def _count(text: str) -> int:
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def _answer(content: str, path: str, mode: str, meta: Meta, notices: list[str]) -> LispFile:
    if notices:
        meta["notice"] = "; ".join(notices)
    return {"content": content, "path": path, "mode": mode, "meta": meta}
