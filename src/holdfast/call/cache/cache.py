"""OutputCache: the one place where an output meets the size of a message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
from anyio import to_thread

from holdfast.call.cache import trim as budget_of
from holdfast.call.cache.lines import CAP, Card, Line, LineCount, Lines, decode, encode
from holdfast.call.cache.parts import cut_texts, lay_out, size_of
from holdfast.call.cache.sink import ROOM, Sink, reason
from holdfast.call.cache.store import Rows, Store, Stored, Writer
from holdfast.call.cache.trim import Count, Message
from holdfast.call.cache.view import MARKER_ROOM, NO_STORE, Kept, head_tail_view, head_view
from holdfast.errors import InvalidArgument, NotFound, ToolError
from holdfast.messages import (
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
from holdfast.tool.definition import Output

Content: TypeAlias = str | tuple[Part, ...]

CLIP = 2000
"""Characters of a line that a window shows."""

LARGEST = 1024**3
"""Bytes of one stream that are kept."""


@dataclass(frozen=True, slots=True)
class Window:
    """Lines of a stored output, with the images and documents that stand among them."""

    lines: tuple[Line, ...]
    total: int
    first: int
    """Lines before this window."""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches, or is context of one; `text` is clipped around the match when long."""

    number: int
    is_match: bool
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a search gave: lines in order, and how many match in all."""

    hits: tuple[Hit, ...]
    matches: int
    timed_out: bool = False


class OutputCache:
    """Outputs of one session: fitted into messages, kept whole in a store, read back in windows.

    A store that fails costs the cache, never the answer: `fit`, `sink` and `trim` say what was lost.
    """

    def __init__(self, store: Store | None = None, *, session: str = "default", owns_store: bool = False) -> None:
        self._store = store
        self._session = session
        self._owns_store = owns_store

    async def fit(self, result: ToolResult, *, output: Output = "cached") -> tuple[Content, OutputRef | None]:
        """What goes into the message, and where the whole is when that is less than all of it."""
        if isinstance(result, PartsResult):
            return await self._fit_parts(result.parts, output)
        text = result.text
        ref = result.output_ref if isinstance(result, TextResult) else None
        if output == "bounded" or len(text) * 4 <= CAP or (len(text) <= CAP and text.isascii()):
            return text, ref
        data = encode(text)
        if len(data) <= CAP:
            return text, ref
        if isinstance(result, JsonResult):
            data = await to_thread.run_sync(_element_a_line, text)
        return await self._fit_text(data, ref, output)

    def sink(self, *, room: int = ROOM, limit: int = LARGEST) -> Sink:
        """Where a tool writes its output while it runs; `room` is the size of the view it gets back."""
        return Sink(self._store, self._session, room=room, limit=limit)

    async def window(self, ref_id: str, offset: int = 0, limit: int = 2000) -> Window:
        """Lines from `offset` on (negative: from the end), as many as `limit` and the cap allow."""
        return await to_thread.run_sync(self._window, ref_id, offset, limit)

    async def grep(
        self,
        ref_id: str,
        pattern: str,
        *,
        regex: bool = False,
        before: int = 0,
        after: int = 0,
        max_matches: int = 50,
    ) -> Found:
        """Matching lines of a stored output, with context; stops when the caller gives up."""
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
        """A stored output as the parts it was made of, in full."""
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

        `budget` is in tokens, a quarter of the window unless given; `count` counts those of a text, bytes / 4
        unless given. An output too small to have been stored is stored now, so that its ref can be read. The
        newest output stays, whatever its size.
        """
        tokens = budget_of.default_budget(context_window) if budget is None else budget
        return budget_of.trim(messages, budget=tokens, count=count, ref_of=self._ref_for)

    async def close(self) -> None:
        """Close the store, if it is this cache's own. What is stored stays."""
        if self._store is not None and self._owns_store:
            await to_thread.run_sync(self._store.close)

    async def _fit_text(self, data: bytes, ref: OutputRef | None, output: Output) -> tuple[str, OutputRef | None]:
        count = LineCount()
        kept = Kept(ref) if ref else await self._keep(data, count)
        if not count.size:
            await to_thread.run_sync(count.add, data)
        if output == "head-tail":
            return head_tail_view(data[:CAP], data[-CAP:], CAP, count=count, kept=kept), kept.ref
        return head_view(data[:CAP], CAP, count=count, kept=kept), kept.ref

    async def _keep(self, data: bytes, count: LineCount) -> Kept:
        """Store bytes while their lines are counted: the disk and the count each have a thread."""
        if self._store is None:
            return Kept()
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
        kept = await to_thread.run_sync(self._keep_parts, parts)
        texts = sum(size_of(part) for part in parts if isinstance(part, TextPart))
        return (parts if texts <= CAP else cut_texts(parts, kept)), kept.ref

    def _keep_parts(self, parts: tuple[Part, ...]) -> Kept:
        if self._store is None:
            return Kept()
        text, notes = lay_out(parts)
        count = LineCount()
        count.add(text)
        writing = _Writing(self._store, self._session)
        writing.write(text)
        for part in parts:
            if not isinstance(part, TextPart):
                writing.write(part.data)
        return writing.commit(count.card(notes))

    def _ref_for(self, message: ToolMessage) -> str:
        if message.output_ref is not None:
            return f"ref={message.output_ref.id}"
        content = message.content
        kept = self._keep_parts((TextPart(content),) if isinstance(content, str) else content)
        if kept.ref is None:
            return f"not kept: {kept.lost or NO_STORE}"
        return f"ref={kept.ref.id}"

    def _open(self) -> Store:
        if self._store is None:
            raise NotFound(f"{NO_STORE}, so no ref can be read")
        return self._store

    def _find(self, ref_id: str) -> tuple[Stored, Card]:
        stored = self._open().find(self._session, ref_id)
        return stored, Card.unpack(stored.card)

    def _window(self, ref_id: str, offset: int, limit: int) -> Window:
        if limit < 1:
            raise InvalidArgument(f"limit is {limit}; give 1 or more")
        stored, card = self._find(ref_id)
        first = max(0, card.lines + offset) if offset < 0 else offset
        lines = Lines(card, lambda start, size: self._open().read(stored, start, size))
        shown = tuple(_within_cap(lines.window(first, limit, clip=CLIP)))
        last = first + len(shown)
        parts = [note for note in card.parts if "line" in note and first <= note["line"] < last]
        return Window(shown, card.lines, first, tuple(self._part(stored, note) for note in parts))

    def _numbered(self, stored: Stored, card: Card, found: Rows) -> Found:
        """Rows with their line numbers: by index where a group of lines begins, by counting on within it."""
        lines = Lines(card, lambda start, size: self._open().read(stored, start, size))
        hits: list[Hit] = []
        number, follows = 0, -1
        for row in found.rows:
            number = number + 1 if row.start == follows else lines.number_at(row.start)
            follows = row.start + row.length + 1
            hits.append(Hit(number, row.is_match, decode(row.text)))
        return Found(tuple(hits), found.matches, found.timed_out)

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
    """One output on its way into a store; remembers the first failure instead of raising it."""

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

    def commit(self, card: Card) -> Kept:
        if self._writer is None:
            return Kept(None, self._lost)
        try:
            ref = self._writer.commit(card.pack())
        except (ToolError, OSError) as fault:
            self._fail(fault)
            return Kept(None, self._lost)
        self._writer = None
        return Kept(OutputRef(ref, card.text_size, card.lines))

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    def _fail(self, fault: ToolError | OSError) -> None:
        self._lost = reason(fault)
        self.abandon()


def _within_cap(lines: Iterator[Line]) -> Iterator[Line]:
    """Lines until the cap is reached, with room for their numbers and a last word; the first line always."""
    room = CAP - 2 * MARKER_ROOM
    for shown, line in enumerate(lines):
        room -= len(encode(line.text)) + 8 + (MARKER_ROOM // 8 if line.cut else 0)
        if room < 0 and shown:
            return
        yield line


_ELEMENT = re.compile(r'(?:"(?:[^"\\]++|\\.)*+"|[^",]++)*+,?', re.DOTALL)


def _element_a_line(text: str) -> bytes:
    """The same JSON with a line end after every comma, so that windows and searches have lines to show."""
    return encode("\n".join(found[0] for found in _ELEMENT.finditer(text) if found[0]))
