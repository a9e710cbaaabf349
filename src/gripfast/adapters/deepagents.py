"""deepagents: a scope as a sandbox backend, on this machine and without a cloud.

Its plain methods run in a thread with an event loop of its own; the async ones run in the same loop, beside the
caller's.
"""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

import posixpath
import uuid
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from deepagents.backends.protocol import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)

from gripfast.adapters.ground import Ground, literal
from gripfast.adapters.loops import beside, in_loop
from gripfast.errors import NoMatch, NotFound, NotUnique, ToolError
from gripfast.host.files.entries import Entry
from gripfast.host.files.scope import Scope
from gripfast.host.program.places import exists

__all__ = ["ScopeBackend", "backend"]

_DEFAULT_SECONDS = 120
_MOST_TEXT = 500 * 1024
_MOST_BINARY = 512_000  # what its own backends show of a binary file
_MOST_MATCHES = 10_000
# Where deepagents keeps what is too large for a message: at the root, unless it is told another place.
_ARTIFACTS = frozenset({"large_tool_results", "conversation_history", "blobs"})
_TIMED_OUT = 124  # as coreutils' timeout has it
_CODES = {
    "NOT_FOUND": "file_not_found",
    "NOT_FILE": "is_directory",
    "SANDBOX_VIOLATION": "permission_denied",
    "POLICY_DENIED": "permission_denied",
    "NOT_DIRECTORY": "invalid_path",
    "INVALID_ARGUMENT": "invalid_path",
}


def backend(scope: Scope, **options: Any) -> ScopeBackend:
    """A backend inside `scope`, for `create_deep_agent(backend=...)`; `options` are those of `open_session`.

    Paths are this machine's own, absolute ones; `/tmp` is private. `/a.txt`, which is what deepagents makes of the
    model's `a.txt`, is in the workspace if this machine has nothing of that name at its root. Close it to end what it
    left running.
    """
    return ScopeBackend(Ground(scope, **options))


class ScopeBackend(SandboxBackendProtocol):
    """Files through the scope, commands in its sandbox."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._id = f"gripfast-{uuid.uuid4().hex}"

    @property
    def id(self) -> str:
        return self._id

    def close(self) -> None:
        in_loop(self._ground.close())

    async def aclose(self) -> None:
        await beside(self._ground.close())

    async def _place(self, path: str) -> str:
        """The place that a path of deepagents' tools means."""
        first, _, _ = path.lstrip("/").partition("/")
        if not path.startswith("/") or first in ("", ".", "..") or exists(f"/{first}"):
            return path
        relative = path.lstrip("/")
        return await self._ground.temporary(relative) if first in _ARTIFACTS else f"{self._ground.root}/{relative}"

    # ---- commands ----

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return in_loop(self._execute(command, timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return await beside(self._execute(command, timeout))

    async def _execute(self, command: str, timeout: int | None) -> ExecuteResponse:
        seconds = _DEFAULT_SECONDS if timeout is None else timeout
        try:
            ran = await self._ground.run(command, timeout=seconds or None, split=False)
        except ToolError as error:
            return ExecuteResponse(_error_text(error), exit_code=1)
        text = ran.stdout.decode("utf-8", "replace")
        if ran.timed_out:
            return ExecuteResponse(f"{text}\n[ended after {seconds} s]", _TIMED_OUT, ran.is_cut)
        return ExecuteResponse(text, ran.exit_code, ran.is_cut)

    # ---- reading ----

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return in_loop(self._read(file_path, offset, limit))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return await beside(self._read(file_path, offset, limit))

    async def _read(self, path: str, offset: int, limit: int) -> ReadResult:
        if limit <= 0:
            return ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
        try:
            data = await self._ground.read_bytes(await self._place(path))
        except ToolError as error:
            return ReadResult(error=_plainly(path, error))
        try:
            return _page(data.decode("utf-8"), max(0, offset), limit)
        except UnicodeDecodeError:
            return _binary(path, data)

    def ls(self, path: str) -> LsResult:
        return in_loop(self._ls(path))

    async def als(self, path: str) -> LsResult:
        return await beside(self._ls(path))

    async def _ls(self, path: str) -> LsResult:
        try:
            place = await self._place(path)
            found = await self._ground.entries(place)
        except ToolError as error:
            return LsResult(error=_plainly(path, error))
        return LsResult(entries=[_info(posixpath.join(place, one.name), one) for one in found])

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        return in_loop(self._glob(pattern, path))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        return await beside(self._glob(pattern, path))

    async def _glob(self, pattern: str, path: str | None) -> GlobResult:
        """A pattern without `/` is about names at any depth; names with a leading dot are found only when named."""
        whole = pattern.lstrip("/") if "/" in pattern else f"**/{pattern}"
        try:
            place = await self._place(path) if path else self._ground.root
            paths, found = await self._ground.glob(whole, place)
            matches = [_info(one, await self._ground.entry(one)) for one in paths if _is_shown(one, pattern)]
        except ToolError as error:
            return GlobResult(error=_plainly(path or ".", error))
        cut = found.partial or found.total > len(found.paths)
        reason = "budget" if cut else "unreadable" if found.unreadable else None
        return GlobResult(
            matches=[one for one in matches if not one["is_dir"]],
            truncated=reason is not None,
            truncation_reason=reason,
        )

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return in_loop(self._grep(pattern, path, glob, max_count))

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return await beside(self._grep(pattern, path, glob, max_count))

    async def _grep(self, pattern: str, path: str | None, glob: str | None, max_count: int | None) -> GrepResult:
        """The pattern is plain text, not a regex."""
        limit = min(max_count or _MOST_MATCHES, _MOST_MATCHES)
        try:
            place = await self._place(path) if path else self._ground.root
            lines, found = await self._ground.grep(literal(pattern), place, glob=glob, limit=limit)
        except ToolError as error:
            return GrepResult(error=_about(path or ".", error))
        matches = [GrepMatch(path=name, line=number, text=text) for name, number, text in lines]
        return GrepResult(matches=matches, truncated=found.partial or found.total_matches > len(matches))

    # ---- writing ----

    def write(self, file_path: str, content: str) -> WriteResult:
        return in_loop(self._write(file_path, content))

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        return await beside(self._write(file_path, content))

    async def _write(self, path: str, content: str) -> WriteResult:
        try:
            place = await self._place(path)
            await self._ground.write_bytes(place, content.encode("utf-8", "surrogatepass"))
        except ToolError as error:
            return WriteResult(error=_about(path, error))
        return WriteResult(path=place)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        return in_loop(self._edit(file_path, old_string, new_string, replace_all))

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        return await beside(self._edit(file_path, old_string, new_string, replace_all))

    async def _edit(self, path: str, old: str, new: str, every: bool) -> EditResult:
        if not old:
            return EditResult(error="Error: the text to replace is empty; give the text as it stands in the file")
        try:
            place = await self._place(path)
            count = await self._ground.edit(place, old, new, every=every)
        except NoMatch:
            return EditResult(error=f"Error: String not found in file: '{old}'")
        except NotUnique as error:
            return EditResult(
                error=f"Error: String appears multiple times. Use replace_all=True, or give more. {error.message}"
            )
        except ToolError as error:
            return EditResult(error=_about(path, error))
        return EditResult(path=place, occurrences=count)

    def delete(self, file_path: str) -> DeleteResult:
        return in_loop(self._delete(file_path))

    async def adelete(self, file_path: str) -> DeleteResult:
        return await beside(self._delete(file_path))

    async def _delete(self, path: str) -> DeleteResult:
        try:
            place = await self._place(path)
            await self._ground.remove(place)
        except ToolError as error:
            return DeleteResult(error=_about(path, error))
        return DeleteResult(path=place)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return in_loop(self._upload(files))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return await beside(self._upload(files))

    async def _upload(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        done: list[FileUploadResponse] = []
        for path, data in files:
            error = None if posixpath.isabs(path) else "invalid_path"
            try:
                if error is None:
                    await self._ground.write_bytes(await self._place(path), data)
            except ToolError as fault:
                error = _code(fault)
            done.append(FileUploadResponse(path=path, error=error))
        return done

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return in_loop(self._download(paths))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return await beside(self._download(paths))

    async def _download(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        done: list[FileDownloadResponse] = []
        for path in paths:
            content, error = None, None if posixpath.isabs(path) else "invalid_path"
            try:
                if error is None:
                    content = await self._ground.read_bytes(await self._place(path))
            except ToolError as fault:
                error = _code(fault)
            done.append(FileDownloadResponse(path=path, content=content, error=error))
        return done


def _page(text: str, offset: int, limit: int) -> ReadResult:
    """Lines `offset` .. `offset + limit`, as many as fit, and where the next page begins."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    if offset >= len(lines):
        note = f"Line offset {offset} exceeds file length ({len(lines)} lines)"
        return ReadResult(error=note) if lines else ReadResult(file_data={"content": "", "encoding": "utf-8"})
    shown = _fitting(lines[offset : offset + limit])
    end = offset + len(shown)
    return ReadResult(
        file_data={"content": "\n".join(shown), "encoding": "utf-8"},
        total_lines=len(lines),
        start_line=offset + 1,
        end_line=end,
        next_offset=end if end < len(lines) else None,
    )


def _fitting(lines: list[str]) -> list[str]:
    room = _MOST_TEXT
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return lines[:count] or [line[:_MOST_TEXT]]
    return lines


def _binary(path: str, data: bytes) -> ReadResult:
    if len(data) > _MOST_BINARY:
        return ReadResult(error=f"File '{path}': Binary file exceeds maximum preview size of {_MOST_BINARY} bytes")
    return ReadResult(file_data={"content": b64encode(data).decode("ascii"), "encoding": "base64"})


def _info(path: str, entry: Entry) -> FileInfo:
    modified = datetime.fromtimestamp(entry.modified, UTC).isoformat()
    return FileInfo(path=path, is_dir=entry.is_directory, size=entry.size or 0, modified_at=modified)


def _is_shown(path: str, pattern: str) -> bool:
    """Whether a name that begins with a dot was asked for."""
    asked = any(part.startswith(".") for part in pattern.split("/"))
    return asked or not posixpath.basename(path).startswith(".")


def _about(path: str, error: ToolError) -> str:
    return f"Error: {_plainly(path, error)}"


def _plainly(path: str, error: ToolError) -> str:
    """For results whose tool puts `Error: ` before it itself."""
    return f"File '{path}' not found" if isinstance(error, NotFound) else _error_text(error)


def _error_text(error: ToolError) -> str:
    return f"{error.code}: {error.message}"


def _code(error: ToolError) -> str:
    denied = error.details.get("errno") in ("EACCES", "EPERM", "EROFS")
    return "permission_denied" if denied else _CODES.get(error.code, _error_text(error))
