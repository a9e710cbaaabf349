"""Grep: finds text in files with ripgrep's regexes, in path order, with exact totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated

from anyio import to_thread

from gripfast.builtin.keys import FS, READS
from gripfast.builtin.other_roots import other_roots
from gripfast.call.cache import CAP
from gripfast.errors import ToolError
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.encodings import text_of
from gripfast.host.files.fs import HERE, ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.host.search.hits import FileHits, HitLine
from gripfast.host.search.search_types import GrepOptions, GrepResult, OutputMode
from gripfast.host.search.stop import stoppable
from gripfast.text.escape import escaped
from gripfast.text.plural import plural

MOST_CONTEXT = 500
MOST_SHOWN = 10_000
FARTHEST = 100_000

Context = Annotated[int | None, Field(ge=0, le=MOST_CONTEXT)]


@tool(
    later=True,
    name="Grep",
    title="Search in files",
    effect="read",
    subject="path",
    idempotent=True,
    hides_minima=True,
    profiles=("agent", "read-only", "codex", "lisp"),
)
async def grep(
    pattern: Annotated[str, Field(description="ripgrep regex; escape literal braces.")],
    path: Annotated[WorkPath | None, Field(description="File or directory; default: workspace.")] = None,
    glob: Annotated[str | None, Field(description="Such as `*.py`; `!*.md` excludes.")] = None,
    type: Annotated[str | None, Field(description="ripgrep file type: py, js, rust ...")] = None,
    output_mode: Annotated[OutputMode, Field(description="Paths, matching lines, or counts per file.")] = (
        "files_with_matches"
    ),
    numbers: Annotated[bool, Field(alias="-n", description="Number the lines.")] = True,
    ignore_case: Annotated[bool, Field(alias="-i", description="Ignore case.")] = False,
    after: Annotated[Context, Field(alias="-A", description="Context lines after.")] = None,
    before: Annotated[Context, Field(alias="-B", description="Context lines before.")] = None,
    around: Annotated[Context, Field(alias="-C", description="Context lines around.")] = None,
    multiline: Annotated[bool, Field(description="Matches, and `.`, may span lines.")] = False,
    head_limit: Annotated[
        int, Field(description="Matching lines or files to show; 0: all.", ge=0, le=MOST_SHOWN)
    ] = 250,
    offset: Annotated[int, Field(description="Matching lines or files to skip.", ge=0, le=FARTHEST)] = 0,
    include_ignored: Annotated[bool, Field(description="Search ignored files too.")] = False,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
) -> str:
    """Searches file contents; sorted by path, with totals. Includes dot files; skips .git, binary files and what
    .gitignore excludes."""
    options = GrepOptions(
        mode=output_mode,
        glob=glob,
        type=type,
        ignore_case=ignore_case,
        before=(around or 0) if before is None else before,
        after=(around or 0) if after is None else after,
        multiline=multiline,
        include_ignored=include_ignored,
        limit=head_limit or MOST_SHOWN,
        offset=offset,
    )
    found = await stoppable(lambda stop: fs.grep(pattern, path or HERE, options, stop=stop))
    if not found.total_files:
        unfit = await _no_file_fits(fs, path or HERE, options) if (glob or type) and not found.partial else []
        words = f"No matches for `{escaped(pattern)}` in `{fs.show(path or HERE)}`"
        return "; ".join([words, *unfit, *_warnings(found), *other_roots(fs, path or HERE)])
    notes = [*_footer(found, options), *_long_line(found), *other_roots(fs, path or HERE)]
    answer = "\n".join([*_body(found, options, numbers), f"[{'; '.join(notes)}]"])
    shown_whole = [hits for hits in found.files if _may_be_whole(hits)]
    if shown_whole and len(answer.encode("utf-8", "replace")) <= CAP:
        await to_thread.run_sync(_record_whole, fs, reads, shown_whole)
    return answer


async def _no_file_fits(fs: ScopedFs, path: WorkPath, options: GrepOptions) -> list[str]:
    """Says so if no file with text fits the glob and type of a search."""
    whole = GrepOptions(glob=options.glob, type=options.type, include_ignored=options.include_ignored, limit=1)
    found = await stoppable(lambda stop: fs.grep("^", path, whole, stop=stop))
    if found.total_files or found.binary_files or found.partial:
        return []
    given = {"glob": options.glob, "type": options.type}
    fits = " and ".join(f"{name} `{escaped(value)}`" for name, value in given.items() if value)
    return [f"no file there matches {fits}"]


def _may_be_whole(hits: FileHits) -> bool:
    """Whether the lines shown of a file are its first ones, without a gap or a cut."""
    return bool(hits.lines) and all(
        line.number == number and not line.cut_before and not line.cut_after
        for number, line in enumerate(hits.lines, 1)
    )


def _record_whole(fs: ScopedFs, reads: ReadLog, files: Sequence[FileHits]) -> None:
    """A file that was shown whole counts as read. It is opened again, and only counts if it is what was shown."""
    for hits in files:
        with suppress(ToolError), fs.open_read(WorkPath.parse(hits.path)) as file:
            if file.stat.st_size <= CAP:
                text = text_of(file.content(), fs.encoding, hits.path).body.decode()
                if [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] == _texts(hits):
                    file.record(reads)


def _texts(hits: FileHits) -> list[str]:
    return [line.text for line in hits.lines]


def _body(found: GrepResult, options: GrepOptions, numbers: bool) -> Iterator[str]:
    match options.mode:
        case "files_with_matches":
            yield from (escaped(hits.path) for hits in found.files)
        case "count":
            yield from (f"{escaped(hits.path)}:{hits.count}" for hits in found.files)
        case "content":
            groups = _groups(found.files, apart=bool(options.before or options.after))
            yield from (_shown(path, line, numbers) if line else "--" for path, line in groups)


def _groups(files: tuple[FileHits, ...], *, apart: bool) -> Iterator[tuple[str, HitLine | None]]:
    """The lines of all files; with context, None marks a gap between two lines."""
    last: tuple[str, int] | None = None
    for hits in files:
        path = escaped(hits.path)
        for line in hits.lines:
            if apart and last is not None and last != (path, line.number - 1):
                yield path, None
            yield path, line
            last = (path, line.number)


def _shown(path: str, line: HitLine, numbers: bool) -> str:
    mark = ":" if line.is_match else "-"
    number = f"{line.number}{mark}" if numbers else ""
    before = f"[{line.cut_before} bytes cut] " if line.cut_before else ""
    after = f" [{line.cut_after} bytes cut]" if line.cut_after else ""
    return f"{path}{mark}{number}{before}{line.text}{after}"


def _footer(found: GrepResult, options: GrepOptions) -> list[str]:
    """The total, what is not shown, and how to continue."""
    files = plural(found.total_files, "file")
    if options.mode == "content":
        total, summary = found.total_matches, f"{plural(found.total_matches, 'matching line')} in {files}"
    elif options.mode == "count":
        total, summary = found.total_files, f"{plural(found.total_matches, 'matching line')} in {files}"
    else:
        total, summary = found.total_files, f"{files} with matches"
    end = min(options.offset + options.limit, total)
    if options.offset >= total:
        return [f"nothing at offset {options.offset}: {summary}", *_warnings(found)]
    if options.offset == 0 and end == total:
        return [summary, *_warnings(found)]
    words = [f"{options.offset + 1}-{end} of {summary}"]
    if end < total:
        words.append(f"truncated, next offset={end}")
    return [*words, *_warnings(found)]


def _long_line(found: GrepResult) -> list[str]:
    """The call that reads on in the first line that is cut; `-n` may be off, so it names the line by its offset."""
    for hits in found.files:
        for line in hits.lines:
            if line.cut_before or line.cut_after:
                place = f"offset={line.number - 1}, line_offset={line.cut_before}"
                return [f'a cut line is read with Read(file_path="{escaped(hits.path)}", {place})']
    return []


def _warnings(found: GrepResult) -> list[str]:
    words: list[str] = []
    if found.binary_files:
        words.append(f"{plural(found.binary_files, 'binary file')} also matched, not shown")
    if found.unknown_encoding:
        words.append(f"files in {found.unknown_encoding} were searched as bytes; only ASCII text is found in them")
    if found.unreadable:
        words.append(f"{plural(found.unreadable, 'path')} could not be read")
    if found.partial:
        words.append("partial: timed out after 20 s, there may be more; narrow path, glob or type")
    return words
