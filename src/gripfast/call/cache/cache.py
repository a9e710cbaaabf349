"""OutputCache: the only place where an output is cut to the size of a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import anyio
from anyio import to_thread

from gripfast.call.cache import trim as budget_of
from gripfast.call.cache.lines import CAP, PIECE, Card, LineCount, OutputLine, OutputLines, decode, encode
from gripfast.call.cache.parts import cut_texts, lay_out, size_of
from gripfast.call.cache.sink import ROOM, Sink, failed
from gripfast.call.cache.store import Rows, Store, Stored, Writer
from gripfast.call.cache.trim import Count, Message
from gripfast.call.cache.view import MARKER_ROOM, NO_STORE, SaveResult, head_tail_view, head_view
from gripfast.errors import InvalidArgument, NotFound, ToolError
from gripfast.framework.definition import Output, Tool
from gripfast.framework.render import render
from gripfast.messages import (
    DocumentPart,
    ImagePart,
    JsonResult,
    OutputRef,
    Part,
    PartsResult,
    TextPart,
    TextResult,
    ToolMessage,
    ToolResult,
)
from gripfast.records import dataclass
from gripfast.text.redact import Redactor

Content: TypeAlias = str | tuple[Part, ...]

CLIP = 2000
"""How many characters of a line a window shows."""

LARGEST = 1024**3
"""How many bytes of one stream are stored."""


@dataclass(frozen=True, slots=True)
class OutputWindow:
    """Some lines of a stored output, with the images and documents among them."""

    lines: tuple[OutputLine, ...]
    total: int
    first: int
    """The number of lines before this window."""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches, or is context of one; of a long one, what is missing begins at byte `rest_at`."""

    number: int
    is_match: bool
    text: str
    rest_at: int | None = None


@dataclass(frozen=True, slots=True)
class OutputMatches:
    """The result of a search: lines in order, and the total number of matching lines."""

    hits: tuple[Hit, ...]
    matches: int
    timed_out: bool = False


class OutputCache:
    """The outputs of one session: cut to fit into messages, stored in full, read back in windows.

    If the store fails, the call still gets its answer: `fit`, `sink` and `trim` say what could not be stored.
    """

    def __init__(self, store: Store | None = None, *, session: str = "default", owns_store: bool = False) -> None:
        self._store = store
        self._session = session
        self._owns_store = owns_store
        self._readers: tuple[str, ...] = ()
        self._secrets: Callable[[], Redactor] | None = None

    def redact_with(self, secrets: Callable[[], Redactor]) -> None:
        """From now on, known secrets are removed from every answer and from the store."""
        self._secrets = secrets

    def read_with(self, tools: Iterable[Tool]) -> None:
        """Names the tools that can read stored outputs, so that a cut output says how to get the rest."""
        self._readers = tuple(tool.traits.reads_outputs for tool in tools if tool.traits.reads_outputs)

    async def fit(self, result: ToolResult, *, output: Output = "cached") -> tuple[Content, OutputRef | None]:
        """The content for the message, and a ref to the full output if the content is only part of it."""
        if self._secrets is not None:
            whole = result if isinstance(result, TextResult) else render(result)
            result = _redacted(whole, self._secrets())
        if isinstance(result, PartsResult):
            return await self._fit_parts(result.parts, output)
        if isinstance(result, JsonResult) and not result.text:
            result = cast("JsonResult", render(result))
        text = result.text
        ref = result.output_ref if isinstance(result, TextResult) else None
        if output == "bounded" or len(text) * 4 <= CAP or (len(text) <= CAP and text.isascii()):
            return text, ref
        data = encode(text)
        if len(data) <= CAP:
            return text, ref
        if isinstance(result, JsonResult):
            data = await to_thread.run_sync(_one_element_per_line, text)
        return await self._fit_text(data, ref, output)

    def sink(self, *, room: int = ROOM, limit: int = LARGEST) -> Sink:
        """A sink for a tool to write its output to while it runs; `room` is the size of the view it returns."""
        redactor = None if self._secrets is None else self._secrets()
        return Sink(self._store, self._session, room=room, limit=limit, readers=self._readers, redactor=redactor)

    async def window(self, ref_id: str, offset: int = 0, limit: int = 2000, *, line_offset: int = 0) -> OutputWindow:
        """Lines from `offset` on (negative: from the end), as many as `limit` and the cap allow.

        With `line_offset`, only the line at `offset`, from that byte of it on.
        """
        return await to_thread.run_sync(self._window, ref_id, offset, limit, line_offset)

    async def grep(
        self,
        ref_id: str,
        pattern: str,
        *,
        regex: bool = False,
        before: int = 0,
        after: int = 0,
        max_matches: int = 50,
    ) -> OutputMatches:
        """Matching lines of a stored output, with context; stops when the caller is cancelled."""
        stored, card = await to_thread.run_sync(self._find, ref_id)
        search = self._open().search(
            stored,
            pattern,
            size=card.text_size,
            longest_line=card.longest_line,
            regex=regex,
            before=before,
            after=after,
            max_matches=max_matches,
        )
        try:
            rows = await to_thread.run_sync(search.run, abandon_on_cancel=True)
        finally:
            search.stop()
        return await to_thread.run_sync(self._numbered, stored, card, rows)

    async def parts(self, ref_id: str) -> tuple[Part, ...]:
        """All parts of a stored output, in full."""
        stored, card = await to_thread.run_sync(self._find, ref_id)
        return await to_thread.run_sync(self._parts, stored, card)

    def trim(
        self,
        messages: Sequence[Message],
        *,
        context_window: int = 200_000,
        budget: int | None = None,
        count: Count | None = None,
    ) -> list[Message | ToolMessage]:
        """The history with its oldest tool outputs replaced by refs until the rest is within budget.

        `budget` is in tokens, by default a quarter of the window; `count` counts the tokens of a text, by default
        bytes / 4. An output that was not stored before is stored now, so that its ref can be read. The newest
        output stays, whatever its size.

        A tool output is a ToolMessage, or in a message dict of OpenAI, Anthropic or Gemini. Raises TypeError for
        the message objects of their SDKs: pass their `.model_dump()`.
        """
        tokens = budget_of.default_budget(context_window) if budget is None else budget
        return budget_of.trim(messages, budget=tokens, count=count, save=self._saved)

    async def close(self) -> None:
        """Close the store, if this cache owns it. Stored outputs stay."""
        if self._store is not None and self._owns_store:
            await to_thread.run_sync(self._store.close)

    async def _fit_text(self, data: bytes, ref: OutputRef | None, output: Output) -> tuple[str, OutputRef | None]:
        count = LineCount()
        saved = replace(SaveResult(ref) if ref else await self._save(data, count), readers=self._readers)
        if not count.size:
            await to_thread.run_sync(count.add, data)
        if output == "head-tail":
            return head_tail_view(data[:CAP], data[-CAP:], CAP, count=count, saved=saved), saved.ref
        return head_view(data[:CAP], CAP, count=count, saved=saved), saved.ref

    async def _save(self, data: bytes, count: LineCount) -> SaveResult:
        """Stores bytes and counts their lines at the same time, each in a thread of its own."""
        if self._store is None:
            return SaveResult()
        writing = _Writing(self._store, self._session)
        try:
            async with anyio.create_task_group() as both:
                both.start_soon(to_thread.run_sync, writing.write, data)
                both.start_soon(to_thread.run_sync, count.add, data)
            return await to_thread.run_sync(writing.commit, count.card())
        finally:
            writing.abandon()

    async def _fit_parts(self, parts: tuple[Part, ...], output: Output) -> tuple[Content, OutputRef | None]:
        if output == "bounded" or sum(map(size_of, parts)) <= CAP:
            return parts, None
        saved = replace(await to_thread.run_sync(self._save_parts, parts), readers=self._readers)
        texts = sum(size_of(part) for part in parts if isinstance(part, TextPart))
        return (parts if texts <= CAP else cut_texts(parts, saved)), saved.ref

    def _save_parts(self, parts: tuple[Part, ...]) -> SaveResult:
        if self._store is None:
            return SaveResult()
        text, notes = lay_out(parts)
        count = LineCount()
        count.add(text)
        writing = _Writing(self._store, self._session)
        writing.write(text)
        for part in parts:
            if not isinstance(part, TextPart):
                writing.write(part.data)
        return writing.commit(count.card(notes))

    def _saved(self, message: ToolMessage) -> SaveResult:
        if message.output_ref is not None:
            return SaveResult(message.output_ref)
        content = message.content
        return self._save_parts((TextPart(content),) if isinstance(content, str) else content)

    def _open(self) -> Store:
        if self._store is None:
            raise NotFound(f"{NO_STORE}, so no ref can be read")
        return self._store

    def _find(self, ref_id: str) -> tuple[Stored, Card]:
        stored = self._open().find(self._session, ref_id)
        return stored, Card.unpack(stored.card)

    def _window(self, ref_id: str, offset: int, limit: int, line_offset: int) -> OutputWindow:
        if limit < 1:
            raise InvalidArgument(f"limit must be at least 1, not {limit}")
        stored, card = self._find(ref_id)
        first = max(0, card.lines + offset) if offset < 0 else offset
        lines = OutputLines(card, lambda start, size: self._open().read(stored, start, size))
        if line_offset:
            piece = lines.piece(first, line_offset, PIECE)
            return OutputWindow((piece,) if piece else (), card.lines, first)
        shown = tuple(_within_cap(lines.window(first, limit, clip=CLIP)))
        last = first + len(shown)
        parts = [note for note in card.parts if "line" in note and first <= note["line"] < last]
        return OutputWindow(shown, card.lines, first, tuple(self._part(stored, note) for note in parts))

    def _numbered(self, stored: Stored, card: Card, found: Rows) -> OutputMatches:
        """Adds line numbers to rows: looked up for the first row of a contiguous group, counted for the others."""
        lines = OutputLines(card, lambda start, size: self._open().read(stored, start, size))
        hits: list[Hit] = []
        number, follows = 0, -1
        for row in found.rows:
            number = number + 1 if row.start == follows else lines.number_at(row.start)
            follows = row.start + row.length + 1
            inside = row.start - lines.start_of(number - 1) + row.rest_at if row.rest_at is not None else None
            hits.append(Hit(number, row.is_match, decode(row.text), inside))
        return OutputMatches(tuple(hits), found.matches, found.timed_out)

    def _parts(self, stored: Stored, card: Card) -> tuple[Part, ...]:
        if card.parts:
            return tuple(self._part(stored, note) for note in card.parts)
        return (TextPart(decode(self._open().read(stored, 0, card.text_size))),)

    def _part(self, stored: Stored, note: dict[str, Any]) -> Part:
        data = self._open().read(stored, note["at"], note["size"])
        match note["type"]:
            case "text":
                return TextPart(decode(data))
            case "image":
                return ImagePart(data, note["media_type"], note["width"], note["height"])
            case _:
                return DocumentPart(data, note["media_type"], note["name"])


class _Writing:
    """One output being written to a store; records the first failure instead of raising it."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._lost: str | None = None
        self._writer: Writer | None = None

    def write(self, data: bytes) -> None:
        if self._lost is not None:
            return
        try:
            self._writer = self._writer or self._store.writer(self._session)
            self._writer.write(data)
        except (ToolError, OSError) as fault:
            self._fail(fault)

    def commit(self, card: Card) -> SaveResult:
        if self._writer is None:
            return SaveResult(None, self._lost)
        try:
            ref = self._writer.commit(card.pack())
        except (ToolError, OSError) as fault:
            self._fail(fault)
            return SaveResult(None, self._lost)
        self._writer = None
        return SaveResult(OutputRef(ref, card.text_size, card.lines))

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    def _fail(self, fault: ToolError | OSError) -> None:
        self._lost = failed(fault)
        self.abandon()


def _within_cap(lines: Iterator[OutputLine]) -> Iterator[OutputLine]:
    """Lines until CAP is reached, with room for line numbers and a closing note; always at least one line."""
    room = CAP - 2 * MARKER_ROOM
    for shown, line in enumerate(lines):
        room -= len(encode(line.text)) + 8 + (MARKER_ROOM // 8 if line.cut else 0)
        if room < 0 and shown:
            return
        yield line


_ELEMENT = re.compile(r'(?:"(?:[^"\\]++|\\.)*+"|[^",]++)*+,?', re.DOTALL)


def _one_element_per_line(text: str) -> bytes:
    """The same JSON with a line break after every comma, so that windows and searches have lines to work on."""
    return encode("\n".join(found[0] for found in _ELEMENT.finditer(text) if found[0]))


def _redacted(result: ToolResult, redactor: Redactor) -> ToolResult:
    if isinstance(result, PartsResult):
        parts = [
            replace(part, text=redactor(part.text)) if isinstance(part, TextPart) else part for part in result.parts
        ]
        return replace(result, parts=tuple(parts))
    text = redactor(result.text)
    return result if text is result.text else replace(result, text=text)
