"""read_file: a window of lines of a UTF-8 text file in the workspace, with the line to continue at."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from gripfast.builtin.keys import FS, READS
from gripfast.errors import BinaryNotSupported, SizeLimitExceeded
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.records import dataclass
from gripfast.text.escape import escaped

MAX_FILE_BYTES = 1024 * 1024
MAX_LINES = 500
_FIRST_CHUNK = 8192

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "description": 'Workspace-root-relative file path to read (e.g., "src/main.ts").',
        },
        "start_line": {
            "type": "number",
            "default": 1,
            "description": "1-based start line of the returned window (default: 1).",
        },
        "max_lines": {
            "type": "number",
            "default": 200,
            "description": "Maximum number of lines to return (default: 200).",
        },
    },
    "required": ["path"],
}


@dataclass(frozen=True, slots=True)
class FileMeta:
    byte_length: int
    line_count: int
    returned_line_count: int
    mtime_ms: int


@dataclass(frozen=True, slots=True)
class FileWindow:
    """`next_start_line` is None unless the window was cut."""

    path: str
    content: str
    truncated: bool
    next_start_line: int | None
    meta: FileMeta


@tool(
    name="read_file",
    title="Read a text file",
    description="Reads a UTF-8 text file in the workspace and returns a line-limited content window.",
    parameters=PARAMETERS,
    effect="read",
    subject="path",
    output="bounded",
    idempotent=True,
    output_schema=True,
    profiles=("read-only", "lisp"),
)
def read_file(
    path: WorkPath,
    start_line: Annotated[int, Field(ge=1)] = 1,
    max_lines: Annotated[int, Field(ge=1, le=MAX_LINES)] = 200,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
) -> FileWindow:
    """Checks kind, size and encoding in this order, then cuts the window."""
    here = fs.within_roots()
    with here.open_read(path) as file:
        _refuse_large(path, file.stat.st_size)
        data = file.content()
        _refuse_large(path, len(data))
        lines, ends_in_newline = _lines(_decoded(path, data))
        if start_line == 1 and len(lines) <= max_lines:
            file.record(reads)  # shown whole, so that it may be edited
    shown = lines[start_line - 1 : start_line - 1 + max_lines]
    following = start_line + len(shown)
    truncated = bool(shown) and following <= len(lines)
    at_end = bool(shown) and not truncated
    meta = FileMeta(len(data), len(lines), len(shown), file.stat.st_mtime_ns // 1_000_000)
    content = "\n".join(shown) + ("\n" if at_end and ends_in_newline else "")
    return FileWindow(here.relative(path), content, truncated, following if truncated else None, meta)


def _refuse_large(path: WorkPath, size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise SizeLimitExceeded(
            f"`{escaped(path.text)}` has {size} bytes; the limit is {MAX_FILE_BYTES} (1 MiB); Read reads parts",
            details={"path": path.text, "size": size, "limit": MAX_FILE_BYTES},
        )


def _decoded(path: WorkPath, data: bytes) -> str:
    nul = data.find(b"\0", 0, _FIRST_CHUNK)
    if nul >= 0:
        raise BinaryNotSupported(
            f"`{escaped(path.text)}` is binary (a NUL at byte {nul}); only UTF-8 text can be read",
            details={"path": path.text, "offset": nul},
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise BinaryNotSupported(
            f"`{escaped(path.text)}` is not UTF-8: {fault.reason} at byte {fault.start}; only UTF-8 text can be read",
            details={"path": path.text, "offset": fault.start},
        ) from None


def _lines(text: str) -> tuple[list[str], bool]:
    """The lines without their endings, and whether the last one has one. A byte order mark is dropped."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines, text.endswith("\n")
