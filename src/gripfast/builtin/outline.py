"""outline: a file as its definitions, bodies folded; a directory as the top level of its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Annotated

from gripfast.builtin.keys import FS, OUTLINES, READS
from gripfast.builtin.numbered import ROOM
from gripfast.builtin.other_roots import other_roots
from gripfast.builtin.outline_map import MOST_ROWS, directory_map
from gripfast.builtin.outlining import Outline, Outlines
from gripfast.errors import InvalidRegex, NotFile, TimedOut
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.host.search.search_types import GrepOptions
from gripfast.lisp.patterns import BadLispPattern, Budget, Pattern, PatternTimeout
from gripfast.outline.definition import BODIES, Definition
from gripfast.outline.folds import Fold
from gripfast.outline.text import SourceText
from gripfast.outline.view import FoldedView, Wanted, collapsed, enclosing, matching
from gripfast.text.escape import escaped
from gripfast.text.near import near

LONGEST_LINE = 400
LONGEST_NAME = 80  # in the call that a note proposes
PATTERN_SECONDS = 5.0  # for all names of a call together
MOST_HITS = 10_000
MOST_PLACES = 5
MOST_COMPARED = 5_000  # names, with one that is not there
_SPECIAL = re.compile(r"[^\w.: -]")

Named = Callable[[Definition], bool]


@tool(
    later=True,
    name="outline",
    title="Show the outline",
    effect="read",
    subject="path",
    output="bounded",
    idempotent=True,
    hides_minima=True,
    profiles=("agent", "read-only"),
)
def outline(
    path: Annotated[WorkPath, Field(description="File, or directory for a map.")],
    name_pattern: Annotated[str | None, Field(description="Regex on names like `Class.method`.")] = None,
    content_pattern: Annotated[str | None, Field(description="Regex on lines; with both, either may match.")] = None,
    limit: Annotated[int, Field(description="Lines to return.", ge=1, le=MOST_ROWS)] = 1000,
    *,
    ctx: ToolContext,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    outlines: Annotated[Outlines, Depends(OUTLINES)],
) -> str:
    """Shows a source file as its definitions with line numbers, bodies folded (`… 12–48`): cheaper than Read for a
    large file; a small one is shown whole. With a pattern: only what matches, in full. For a directory: what its
    files define."""
    named = _named(name_pattern, ctx)
    try:
        with fs.open_read(path) as file:
            text, found = outlines.text_and_outline(file, fs.show(path), fs.encoding, lambda: ctx.cancelled)
            file.record(reads)
    except NotFile:
        with fs.open_dir(path):  # a FIFO or device is refused here
            found = directory_map(fs, outlines, path, named, content_pattern, limit, ctx)
            return "\n".join([found, *(f"[{note}]" for note in other_roots(fs, path))])
    shown = fs.show(path)
    if not name_pattern and not content_pattern:
        return "\n".join(_rendered(collapsed(text, found.found, limit), text, found, shown))
    wanted = Wanted(named or (lambda _: False), _hits(fs, path, content_pattern))
    view = matching(text, found.found, wanted, limit)
    if not view.matches:
        return _nothing(found, shown, name_pattern, content_pattern)
    return "\n".join(_rendered(view, text, found, shown))


def _named(source: str | None, ctx: ToolContext) -> Named | None:
    """Whether a definition's name matches, written with dots or as C++ and Ruby do."""
    if not source:
        return None
    try:
        pattern = Pattern(source, Budget(PATTERN_SECONDS, lambda: ctx.now().timestamp()))
    except BadLispPattern as error:
        raise InvalidRegex(f"name_pattern {source!r} is not a valid regex: {error}") from None

    def matches(definition: Definition) -> bool:
        try:
            name = definition.name
            return bool(name) and (
                pattern.search(name) or ("::" in source and pattern.search(name.replace(".", "::")))
            )
        except PatternTimeout as error:
            raise TimedOut(f"{error} on the names of this file; make it simpler") from None

    return matches


def _hits(fs: ScopedFs, path: WorkPath, pattern: str | None) -> Sequence[int]:
    if not pattern:
        return ()
    found = fs.grep(pattern, path, GrepOptions(mode="content", limit=MOST_HITS))
    return [line.number for hits in found.files for line in hits.lines if line.is_match]


def _nothing(outline: Outline, shown: str, name: str | None, content: str | None) -> str:
    """Says that nothing matches, and which names are like the one that was asked for."""
    asked = " or ".join(repr(pattern) for pattern in (name, content) if pattern)
    names = dict.fromkeys(each.name for each in outline.found.definitions if each.name)
    meant = near(name, islice(names, MOST_COMPARED)) if name else []
    similar = [f"similar names: {', '.join(map(escaped, meant))}"] if meant else []
    said = [*outline.notes, f"nothing in `{shown}` matches {asked}", *similar]
    return f'[{"; ".join(said)}; outline(path="{shown}") shows what it defines]'


def _rendered(view: FoldedView, text: SourceText, outline: Outline, shown: str) -> Iterator[str]:
    room = ROOM
    cut = view.cut
    count = 0
    for line, row in _lines(view, text):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            cut = row.first if isinstance(row, Fold) else row
            break
        count += isinstance(row, int)
        yield line
    yield from _notes(view, outline, shown, count, cut)


def _lines(view: FoldedView, text: SourceText) -> Iterator[tuple[str, int | Fold]]:
    """Each line of the answer with the row or fold it stands for."""
    for row, following in pairwise([*view.rows, 0]):
        if isinstance(row, int):
            rest = f" {following}" if view.beside and isinstance(following, Fold) else ""
            yield f"{row:6d}\t{_clipped(text.lines[row - 1])}{rest}", row
        elif not view.beside:
            yield str(row), row


def _clipped(line: str) -> str:
    return (
        line
        if len(line) <= LONGEST_LINE
        else f"{line[:LONGEST_LINE]} [... {len(line) - LONGEST_LINE} more characters]"
    )


def _notes(view: FoldedView, outline: Outline, shown: str, count: int, cut: int | None) -> Iterator[str]:
    """What is left out, why, and the call that shows it."""
    said = list(outline.notes)
    if said and count < view.total:
        said.append("folded by indentation")
    if faults := outline.found.faults:
        places = ", ".join(_place(*fault) for fault in faults[:MOST_PLACES])
        more = f" and {len(faults) - MOST_PLACES} more" if len(faults) > MOST_PLACES else ""
        said.append(f"does not parse at {places}{more}")
    if view.depth is not None:
        said.append("inner definitions are folded to keep to the limit")
    if view.beside:
        said.append("other folds are not marked to keep to the limit")
    if cut is not None:
        said.append(f"cut before line {cut}: use a larger limit or a narrower pattern")
    if not view.total:
        said.append(f"`{shown}` is empty")
    elif count < view.total:
        said.append(f"{count} of {view.total} lines; {_call(view, outline, shown)}")
    if said:
        yield f"[{'; '.join(said)}]"


def _place(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}–{last}"


def _call(view: FoldedView, outline: Outline, shown: str) -> str:
    """What to call to see what is folded: the largest function, as an example; else the largest fold."""
    if view.matches:
        many = "1 match" if view.matches == 1 else f"{view.matches} matches"
        return f'{many}; outline(path="{shown}") shows the other definitions'
    definitions = outline.found.definitions
    folds = {row.first: row for row in view.rows if isinstance(row, Fold)}
    inside = [
        (definitions[index], _size(folds[first]))
        for first, around in enclosing(definitions, folds)
        for index in around
        if definitions[index].name and definitions[index].head < first
    ]
    if view.beside:
        inside = [(each, each.end - each.head) for each in definitions if each.name]
    if not inside:
        first = max(folds.values(), key=_size).first if folds else 1
        return f"Read with offset={first - 1} shows what is folded"
    definition, _ = max(inside, key=lambda pair: (pair[0].kind in BODIES, pair[1], pair[0].depth))
    return f'name_pattern="{_pattern(definition, definitions)}" shows that in full'


def _size(fold: Fold) -> int:
    return fold.last - fold.first + 1


def _pattern(definition: Definition, definitions: Sequence[Definition]) -> str:
    """A regex for a definition, without backslashes, which would have to be doubled in JSON. It is anchored where it
    would match others as well."""
    name = definition.name
    others = (other.name for other in definitions if name in other.name and other.name != name)
    pattern = _SPECIAL.sub(".", name[:LONGEST_NAME])
    if all(other.startswith(f"{name}.") for other in others):
        return pattern
    return f"^{pattern}$" if len(name) <= LONGEST_NAME else f"^{pattern}"
