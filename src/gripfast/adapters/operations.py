"""What a workspace of another framework can do, as tools: the rules judge them under the built-in tools' names."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from gripfast.builtin.bash import bash
from gripfast.builtin.edit import edit
from gripfast.builtin.glob import glob
from gripfast.builtin.grep import grep
from gripfast.builtin.keys import FS, SHELL
from gripfast.builtin.read import read
from gripfast.builtin.write import write
from gripfast.errors import Conflict, SandboxViolation
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.host.files.entries import entries, entry, make_directory, real_path, remove
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import digest_of
from gripfast.host.files.paths import WorkPath
from gripfast.host.search.search_types import GrepOptions
from gripfast.host.search.stop import stoppable
from gripfast.host.shell.ended import Ended
from gripfast.host.shell.shells import Shells
from gripfast.text.escape import escaped

Files = Annotated[ScopedFs, Depends(FS)]
MOST_FOUND = 1000


class OutputFullError(Exception):
    """A command printed more than is collected, and is to be ended for that."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, up to the limit, and how it ended: `ended` is None if it printed too much."""

    data: bytes
    ended: Ended | None
    is_cut: bool = False


@dataclass(slots=True)
class _OutputCollector:
    limit: int
    ends: bool
    data: bytearray = field(default_factory=bytearray)
    is_cut: bool = False

    async def feed(self, piece: bytes) -> None:
        room = self.limit - len(self.data)
        self.data += piece[:room]
        self.is_cut = self.is_cut or len(piece) > room
        if self.is_cut and self.ends:
            raise OutputFullError


@tool(name=read.name, description="Reads a file, or looks at what is at a path.", effect="read", subject="file_path")
def read_operation(file_path: WorkPath, want: Literal["bytes", "entry", "entries", "real"], *, fs: Files) -> Any:
    match want:
        case "bytes":
            return fs.read_bytes(file_path)
        case "entry":
            return entry(fs, file_path)
        case "entries":
            return entries(fs, file_path)
        case "real":
            return real_path(fs, file_path)


@tool(name=write.name, description="Writes or removes a file or directory.", effect="write", subject="file_path")
def write_operation(
    file_path: WorkPath,
    do: Literal["put", "create", "directory", "remove"],
    text: str = "",
    data: Annotated[str | None, Field(description="Base64, if the content is not UTF-8 text.")] = None,
    expected: Annotated[str | None, Field(description="The digest of what the file must hold now.")] = None,
    *,
    fs: Files,
) -> None:
    if do == "directory":
        return make_directory(fs, file_path)
    if do == "remove":
        return remove(fs, file_path)
    content = text.encode("utf-8") if data is None else b64decode(data)

    def put(before: bytes | None) -> bytes:
        if before is not None and do == "create":
            raise Conflict(f"`{escaped(file_path.text)}` already exists; edit it, or write another file")
        if expected is not None and digest_of(before or b"") != expected:
            raise Conflict(f"`{escaped(file_path.text)}` changed meanwhile; look at it again")
        if before is not None and entry(fs, file_path).read_only:
            raise SandboxViolation(f"`{escaped(file_path.text)}` is read-only: nobody has permission to write it")
        return content

    fs.change(file_path, put)
    return None


@tool(name=edit.name, description="Replaces text in a file.", effect="write", subject="file_path")
def edit_operation(file_path: WorkPath, old: str, new: str, every: bool, *, fs: Files) -> int:
    change = fs.replace(file_path, old, new, all=every)
    return (change.before or b"").count(old.encode()) if every else 1


@tool(name=glob.name, description="Finds files.", effect="read", subject="path")
async def glob_operation(pattern: str, path: WorkPath, *, fs: Files) -> Any:
    return await stoppable(lambda stop: fs.glob(pattern, path, include_ignored=True, limit=MOST_FOUND, stop=stop))


@tool(name=grep.name, description="Searches in files.", effect="read", subject="path")
async def grep_operation(pattern: str, path: WorkPath, glob: str | None, limit: int, *, fs: Files) -> Any:
    options = GrepOptions(mode="content", glob=glob, include_ignored=True, limit=limit)
    return await stoppable(lambda stop: fs.grep(pattern, path, options, stop=stop))


@tool(name=bash.name, description="Runs a command.", effect="run", subject="command")
async def run_operation(
    command: str,
    line: Annotated[str, Field(description="The command with what surrounds it; what the shell gets.")],
    timeout: int,
    limit: int,
    ends: bool,
    *,
    shells: Annotated[Shells, Depends(SHELL)],
) -> Output:
    if not shells.scope.write and not shells.sandbox.confines:
        raise SandboxViolation(
            "this scope is read-only, and no sandbox works here that could keep a command from writing"
        )
    collector = _OutputCollector(limit, ends)
    try:
        ended = await shells.run(line or command, collector.feed, timeout_ms=timeout)
    except OutputFullError:
        ended = None
    return Output(bytes(collector.data), ended, collector.is_cut)
