"""The map of a directory: the top level of its files, as many as there is room for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import ceil

from gripfast.builtin.numbered import ROOM
from gripfast.builtin.outlining import LARGEST_PARSED, Outline, Outlines
from gripfast.clock import monotonic
from gripfast.errors import ToolError
from gripfast.framework.context import ToolContext
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.search.search_types import GrepOptions
from gripfast.outline.definition import Definition
from gripfast.outline.languages import language_of
from gripfast.outline.map import MOST_A_FILE, NAMES, Closed, laid_out
from gripfast.outline.text import SourceText
from gripfast.outline.view import named_row
from gripfast.records import dataclass
from gripfast.text.escape import escaped
from gripfast.text.plural import plural

MOST_FILES = 200_000
MOST_HITS = 10_000
MOST_ROWS = 10_000
SECONDS = 20.0
LONGEST_LINE = 160
_BATCH = 64

Named = Callable[[Definition], bool]


def directory_map(
    fs: ScopedFs,
    outlines: Outlines,
    path: WorkPath,
    named: Named | None,
    content: str | None,
    limit: int,
    ctx: ToolContext,
) -> str:
    """The files below a directory that .gitignore lets through, with what they define."""
    mapping = _Mapping(fs, outlines, path, limit, ctx)
    if named or content:
        return mapping.matching(named, content)
    return mapping.whole()


@dataclass(frozen=True, slots=True)
class _Listed:
    paths: list[str]
    total: int
    notes: list[str]


class _Mapping:
    def __init__(self, fs: ScopedFs, outlines: Outlines, base: WorkPath, limit: int, ctx: ToolContext) -> None:
        self._fs, self._outlines, self._base, self._limit, self._ctx = fs, outlines, base, limit, ctx
        self._until = monotonic() + SECONDS
        self._late = False

    # --- everything, as far as there is room ---

    def whole(self) -> str:
        listed = self._listed()
        entries = laid_out(listed.paths, self._limit)
        shown = self._filled([entry for entry in entries if isinstance(entry, str)], self._limit - len(entries))
        lines = [line for entry in entries for line in self._entry(entry, shown)]
        named = sum(isinstance(entry, str) for entry in entries)
        return self._answer(lines, [*listed.notes, *self._left_out(entries, listed.total, named)])

    def _listed(self) -> _Listed:
        found = self._fs.glob("**", self._base, limit=MOST_FILES)
        notes = ["there may be more files: time ran out"] if found.partial else []
        return _Listed(sorted(found.paths), found.total, notes)

    def _filled(self, paths: list[str], room: int) -> dict[str, Outline]:
        """The outlines for which there is room: files near the top first, code before the rest."""
        shown: dict[str, Outline] = {}
        ordered = sorted((path for path in paths if language_of(path)), key=_rank)
        for start in range(0, len(ordered), _BATCH):
            for path, outline in self._read(ordered[start : start + _BATCH]):
                rows = min(len(outline.top), MOST_A_FILE)
                if rows <= room:
                    room -= rows
                    shown[path] = outline
            if room <= 0 or self._late:
                break
        return shown

    def _read(self, paths: Iterable[str]) -> Iterator[tuple[str, Outline]]:
        with ThreadPoolExecutor(self._outlines.at_once) as pool:
            for path, outline in pool.map(self._outline, paths):
                if outline is not None:
                    yield path, outline
        self._ctx.check_cancelled()

    def _outline(self, path: str) -> tuple[str, Outline | None]:
        """None: it is gone, closed, binary or too large for a map."""
        self._late = self._late or monotonic() > self._until
        if self._late or self._ctx.cancelled:
            return path, None
        try:
            with self._fs.open_read(WorkPath.parse(path)) as file:
                if file.stat.st_size > LARGEST_PARSED:
                    return path, None
                return path, self._outlines.outline(file, path, self._fs.encoding, lambda: self._ctx.cancelled)
        except ToolError:
            return path, None

    def _entry(self, entry: str | Closed, shown: dict[str, Outline]) -> Iterator[str]:
        if isinstance(entry, Closed):
            yield f"{escaped(entry.path) or './'} … {plural(entry.count, 'file')}"
            return
        outline = shown.get(entry)
        yield f"{escaped(entry)} ({plural(outline.total, 'line')})" if outline else escaped(entry)
        if outline:
            yield from _rows(outline.top[:MOST_A_FILE])
            if len(outline.top) > MOST_A_FILE:
                yield f"… {len(outline.top) - MOST_A_FILE} more definitions"

    def _left_out(self, entries: list[str | Closed], total: int, named: int) -> Iterator[str]:
        yield plural(total, "file")
        if named == total:
            return
        base = self._fs.show(self._base)
        folded = (escaped(entry.path.rstrip("/")) for entry in entries if isinstance(entry, Closed))
        inner = next((path for path in folded if path not in ("", base)), None)
        larger = min(MOST_ROWS, ceil(total / NAMES) + 1)
        if inner is not None:
            yield f'{total - named} in folded directories: outline(path="{inner}")'
        elif larger > self._limit:
            yield f'{total - named} not named: outline(path="{base}", limit={larger})'
        else:
            yield f"{total - named} not named"

    # --- what matches ---

    def matching(self, named: Named | None, content: str | None) -> str:
        """Only the definitions whose name matches or which have a line that does."""
        hits = self._hits(content) if content else {}
        paths = self._listed().paths if named else list(hits)
        lines: list[str] = []
        count = 0
        for path, outline in self._read(sorted(path for path in paths if language_of(path) or path in hits)):
            rows = list(_matching(outline, named, hits.get(path, ())))
            if rows:
                count += len(rows)
                lines += [f"{escaped(path)} ({plural(outline.total, 'line')})", *self._sources(path, rows)]
        said = f"{plural(count, 'definition')} match{'es' * (count == 1)}" if count else "no definition matches"
        return self._answer(
            lines, [said, 'outline(path="<file>", name_pattern=...) shows one in full'][: 1 + bool(count)]
        )

    def _hits(self, pattern: str) -> dict[str, list[int]]:
        found = self._fs.grep(pattern, self._base, GrepOptions(mode="content", limit=MOST_HITS))
        return {hits.path: [line.number for line in hits.lines if line.is_match] for hits in found.files}

    def _sources(self, path: str, definitions: list[Definition]) -> Iterator[str]:
        last = max(each.head for each in definitions)
        text = SourceText(self._fs.read_lines(WorkPath.parse(path), 0, last).split("\n"))
        return _rows([_qualified(text, each) for each in definitions if each.head <= len(text.lines)])

    def _answer(self, lines: list[str], notes: Iterable[str]) -> str:
        said = list(notes)
        kept = _fitting(lines, self._limit)
        if len(kept) < len(lines):
            said.append(f"{len(lines) - len(kept)} more lines cut: name a directory below, or a narrower pattern")
        if self._late:
            said.append(f"time ran out after {SECONDS:.0f} s: not every file was looked at")
        return "\n".join([*kept, f"[{'; '.join(said)}]"])


def _rank(path: str) -> tuple[bool, int, str]:
    language = language_of(path)
    return language is None or language.data or language.engine == "markdown", path.count("/"), path


def _matching(outline: Outline, named: Named | None, hits: Iterable[int]) -> Iterator[Definition]:
    rows = sorted(hits)
    for each in outline.found.definitions:
        inside = not each.local and bisect_left(rows, each.start) < bisect_right(rows, each.end)
        if each.name and ((named is not None and named(each)) or inside):
            yield each


def _qualified(text: SourceText, each: Definition) -> tuple[int, str]:
    """The line of a definition after its name, where that names its container."""
    row = named_row(text, each) or each.line
    line = text.lines[row - 1]
    return row, line if each.name == each.own_name else f"{each.name}: {line.strip()}"


def _rows(rows: Iterable[tuple[int, str]]) -> Iterator[str]:
    return (f"{row:6d}\t{line[:LONGEST_LINE]}" for row, line in rows)


def _fitting(lines: list[str], limit: int) -> list[str]:
    room, kept = ROOM, list[str]()
    for line in lines[:limit]:
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        kept.append(line)
    return kept
