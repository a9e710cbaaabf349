"""Grep: text in files by ripgrep's regexes, in path order, with true totals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from holdfast.builtin.keys import FS
from holdfast.host.fs import HERE, ScopedFs
from holdfast.host.hits import FileHits, Line
from holdfast.host.paths import WorkPath, escaped
from holdfast.host.search import GrepOptions, GrepResult, OutputMode, stoppable
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends

MOST_CONTEXT = 500
MOST_SHOWN = 10_000
FARTHEST = 100_000

Context = Annotated[int | None, Field(ge=0, le=MOST_CONTEXT)]


@tool(name="Grep", title="Search in files", effect="read", subject="path", idempotent=True)
async def grep(
    pattern: Annotated[str, Field(description="Regex in ripgrep's syntax; escape literal braces and parentheses.")],
    path: Annotated[WorkPath | None, Field(description="File or directory to search; the workspace.")] = None,
    glob: Annotated[
        str | None, Field(description="Only files like `*.py`, `src/**/*.{c,h}`; `!*.md`: not these.")
    ] = None,
    type: Annotated[str | None, Field(description="Only files of a type ripgrep knows: py, js, rust, go ...")] = None,
    output_mode: Annotated[OutputMode, Field(description="Paths alone, matching lines, or lines per file.")] = (
        "files_with_matches"
    ),
    numbers: Annotated[bool, Field(alias="-n", description="Line numbers in content.")] = True,
    ignore_case: Annotated[bool, Field(alias="-i", description="Ignore case.")] = False,
    after: Annotated[Context, Field(alias="-A", description="Lines of context after each match.")] = None,
    before: Annotated[Context, Field(alias="-B", description="Lines of context before.")] = None,
    around: Annotated[Context, Field(alias="-C", description="Lines of context on both sides.")] = None,
    multiline: Annotated[bool, Field(description="Let matches span lines; `.` matches line ends.")] = False,
    head_limit: Annotated[int, Field(description="Matches (or files) to give.", ge=1, le=MOST_SHOWN)] = 250,
    offset: Annotated[int, Field(description="Matches (or files) to skip.", ge=0, le=FARTHEST)] = 0,
    include_ignored: Annotated[bool, Field(description="Also search what .gitignore leaves out.")] = False,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
) -> str:
    """Searches file contents with a regex, sorted by path, with the total. Dot files are searched; what .gitignore
    names, .git and binary files are not."""
    options = GrepOptions(
        mode=output_mode,
        glob=glob,
        type=type,
        ignore_case=ignore_case,
        before=(around or 0) if before is None else before,
        after=(around or 0) if after is None else after,
        multiline=multiline,
        include_ignored=include_ignored,
        limit=head_limit,
        offset=offset,
    )
    found = await stoppable(lambda stop: fs.grep(pattern, path or HERE, options, stop=stop))
    if not found.total_files:
        return "; ".join([f"No matches for `{escaped(pattern)}` in `{fs.show(path or HERE)}`", *_troubles(found)])
    return "\n".join([*_body(found, options, numbers), f"[{'; '.join(_last_word(found, options))}]"])


def _body(found: GrepResult, options: GrepOptions, numbers: bool) -> Iterator[str]:
    match options.mode:
        case "files_with_matches":
            yield from (escaped(hits.path) for hits in found.files)
        case "count":
            yield from (f"{escaped(hits.path)}:{hits.count}" for hits in found.files)
        case "content":
            groups = _groups(found.files, apart=bool(options.before or options.after))
            yield from (_shown(path, line, numbers) if line else "--" for path, line in groups)


def _groups(files: tuple[FileHits, ...], *, apart: bool) -> Iterator[tuple[str, Line | None]]:
    """The lines of all files; with context, a None where lines are missing between two."""
    last: tuple[str, int] | None = None
    for hits in files:
        path = escaped(hits.path)
        for line in hits.lines:
            if apart and last is not None and last != (path, line.number - 1):
                yield path, None
            yield path, line
            last = (path, line.number)


def _shown(path: str, line: Line, numbers: bool) -> str:
    mark = ":" if line.is_match else "-"
    number = f"{line.number}{mark}" if numbers else ""
    before = f"[{line.cut_before} bytes cut] " if line.cut_before else ""
    after = f" [{line.cut_after} bytes cut]" if line.cut_after else ""
    return f"{path}{mark}{number}{before}{line.text}{after}"


def _last_word(found: GrepResult, options: GrepOptions) -> list[str]:
    """The total, what is missing of it, and how to go on."""
    files = _counted(found.total_files, "file")
    if options.mode == "content":
        total, all_of_it = found.total_matches, f"{_counted(found.total_matches, 'matching line')} in {files}"
    elif options.mode == "count":
        total, all_of_it = found.total_files, f"{_counted(found.total_matches, 'matching line')} in {files}"
    else:
        total, all_of_it = found.total_files, f"{files} with matches"
    end = min(options.offset + options.limit, total)
    if options.offset >= total:
        return [f"nothing at offset {options.offset}: {all_of_it}", *_troubles(found)]
    if options.offset == 0 and end == total:
        return [all_of_it, *_troubles(found)]
    words = [f"{options.offset + 1}-{end} of {all_of_it}"]
    if end < total:
        words.append(f"truncated, next offset={end}")
    return [*words, *_troubles(found)]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _troubles(found: GrepResult) -> list[str]:
    words: list[str] = []
    if found.binary_files:
        words.append(f"{_counted(found.binary_files, 'binary file')} also matched, not shown")
    if found.unreadable:
        words.append(f"{_counted(found.unreadable, 'place')} could not be read")
    if found.partial:
        words.append("partial: time ran out after 20 s, there may be more; narrow path, glob or type")
    return words
