"""Files and commands inside a Scope, for frameworks that bring tools of their own: below their workspace adapters.

Paths are the host's own, absolute ones, and `/tmp` is the session's private one for files and commands alike. Every
operation is a call of a session, so that its rules and hooks also hold here.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import posixpath
import re
import shlex
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from anyio import to_thread

from gripfast.adapters.operations import (
    Output,
    edit_operation,
    glob_operation,
    grep_operation,
    read_operation,
    run_operation,
    write_operation,
)
from gripfast.builtin.keys import SHELL
from gripfast.builtin.session import open_session
from gripfast.call.run import Session
from gripfast.errors import InvalidArgument, NotFound, ToolError
from gripfast.framework.definition import Tool
from gripfast.host.files.entries import Entry, remove
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
from gripfast.host.search.search_types import GlobResult, GrepResult
from gripfast.host.shell.ended import Ended
from gripfast.host.shell.shells import Shells
from gripfast.text.below import is_below

MOST_OUTPUT = 10 * 1024 * 1024
"""Bytes of a command's standard output that are collected."""
LONGEST_SECONDS = 24 * 3600
_LONGEST_LINE = 512 * 1024
_SYNTAX = re.compile(r"[\\.+*?()|\[\]{}^$]")
_TMP = "/tmp"


def literal(text: str) -> str:
    """The regex that finds just this text. ripgrep before 14 refuses what `re.escape` makes of a space."""
    return _SYNTAX.sub(r"\\\g<0>", text)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended. `exit_code` is 128 + n after signal n, as in a shell; None if it was ended for printing
    too much, or its supervisor was lost."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    is_cut: bool = False


class Ground:
    """A scope to work in. Nothing is touched until it is first used; `close` ends every process it started."""

    def __init__(self, scope: Scope, **options: Any) -> None:
        """`options` are those of `open_session`."""
        check_scope(scope)
        given = {"tools", "builtin"} & options.keys()
        if given:
            raise TypeError(f"{given.pop()!r} has no meaning here: the framework brings the tools")
        self.scope = scope
        self._options = options
        self._opening = anyio.Lock()
        self._session: Session | None = None
        self._held: tuple[Shells, ScopedFs] | None = None
        self._numbers = itertools.count(1)

    @property
    def root(self) -> str:
        """Where commands start and relative paths begin."""
        return self.scope.roots[0].real

    async def temporary(self, name: str) -> str:
        """A path in the session's own temporary directory, as commands name it."""
        shells, _ = await self._opened()
        return posixpath.join(shells.tmpdir, name)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        if self._held is not None:
            await self._held[0].close()

    # ---- files ----

    async def read_bytes(self, path: str) -> bytes:
        return await self._value(read_operation, path=path, want="bytes")

    async def write_bytes(self, path: str, data: bytes, *, do: Literal["put", "create"] = "put") -> None:
        try:  # as text if it can be: a person may be asked about it
            content = {"text": data.decode("utf-8")}
        except UnicodeDecodeError:
            content = {"data": b64encode(data).decode("ascii")}
        await self._value(write_operation, path=path, do=do, **content)

    async def edit(self, path: str, old: str, new: str, *, every: bool) -> int:
        return await self._value(edit_operation, path=path, old=old, new=new, every=every)

    async def entry(self, path: str) -> Entry:
        return await self._value(read_operation, path=path, want="entry")

    async def exists(self, path: str) -> bool:
        try:
            await self.entry(path)
        except NotFound:
            return False
        return True

    async def entries(self, path: str) -> list[Entry]:
        return await self._value(read_operation, path=path, want="entries")

    async def make_directory(self, path: str) -> None:
        await self._value(write_operation, path=path, do="directory")

    async def remove(self, path: str) -> None:
        if is_below(self.root, posixpath.normpath(posixpath.join(self.root, path))):
            raise InvalidArgument(f"`{path}` is or holds the workspace itself; name something inside it")
        await self._value(write_operation, path=path, do="remove")

    async def real_path(self, path: str) -> str:
        return self._here(await self._value(read_operation, path=path, want="real"))

    async def glob(self, pattern: str, path: str) -> tuple[list[str], GlobResult]:
        found = await self._value(glob_operation, pattern=pattern, path=path)
        return [self._absolute(one) for one in found.paths], found

    async def grep(
        self, pattern: str, path: str, *, glob: str | None, limit: int
    ) -> tuple[list[tuple[str, int, str]], GrepResult]:
        """The lines that match: path, number, text."""
        found: GrepResult = await self._value(grep_operation, pattern=pattern, path=path, glob=glob, limit=limit)
        lines = [(self._absolute(file.path), line.number, line.text) for file in found.files for line in file.lines]
        return lines, found

    # ---- commands ----

    async def run(
        self,
        command: str | Sequence[str],
        *,
        directory: str | None = None,
        env: Mapping[str, str] | None = None,
        input: bytes | None = None,
        timeout: float | None = None,
        split: bool = True,
        ends: bool = False,
    ) -> Ran:
        """Runs a shell line, or a program with its arguments. With `split` standard error comes apart, else in the
        order printed. With `ends` a command that prints more than MOST_OUTPUT is ended; else the rest is dropped."""
        shells, fs = await self._opened()
        scratch = _Scratch(fs, shells, next(self._numbers))
        try:
            text = command if isinstance(command, str) else shlex.join(command)
            body = text if isinstance(command, str) else f"exec -- {text}"
            line = await self._line(body, directory or self.root, env or {}, input, scratch, split=split)
            seconds = min(timeout or LONGEST_SECONDS, LONGEST_SECONDS)
            output: Output = await self._value(
                run_operation,
                command=text, line=line, timeout=max(1, round(seconds * 1000)), limit=MOST_OUTPUT, ends=ends,
            )  # fmt: skip
            return _ran(output, await scratch.read("err") if split else b"")
        finally:
            with anyio.CancelScope(shield=True):
                await scratch.remove()

    async def _line(
        self,
        command: str,
        directory: str,
        env: Mapping[str, str],
        input: bytes | None,
        scratch: _Scratch,
        *,
        split: bool,
    ) -> str:
        """The command in a shell of its own, so that nothing it does to the shell outlives it."""
        for name in env:
            if not name.isidentifier() or not name.isascii():
                raise InvalidArgument(f"{name!r} can't be the name of an environment variable")
        words = [f"export {name}={shlex.quote(value)};" for name, value in env.items()]
        body = f"eval {shlex.quote(command)}"
        if len(body.encode()) > _LONGEST_LINE:
            body = f". {shlex.quote(await scratch.write('cmd', command.encode()))}"
        streams = f" < {shlex.quote(await scratch.write('in', input))}" if input is not None else ""
        streams += f" 2> {shlex.quote(scratch.inside('err'))}" if split else ""
        return f"( cd -- {shlex.quote(directory)} || exit 1; {' '.join(words)} {body}\n){streams}"

    # ---- the session ----

    async def _value(self, operation: Tool, path: str | None = None, **arguments: Any) -> Any:
        """Runs an operation; a path goes to the argument the rules judge."""
        await self._opened()
        if path is not None:
            arguments[operation.traits.subject or ""] = self._there(path)
        session = self._session
        assert session is not None
        try:
            return await session.value(operation, arguments)
        except ToolError as error:
            error.message = self._as_named(error.message)
            raise

    async def _opened(self) -> tuple[Shells, ScopedFs]:
        async with self._opening:
            if self._held is None:
                self._held = await to_thread.run_sync(self._open)
            if self._session is None:
                raise InvalidArgument("this workspace is closed; make another one")
            return self._held

    def _open(self) -> tuple[Shells, ScopedFs]:
        options = dict(self._options)
        sandbox, env = options.pop("sandbox", "auto"), options.pop("env", ())
        shells = Shells(self.scope, sandbox=sandbox, allow=tuple(env))

        async def held() -> AsyncGenerator[Shells, None]:
            async with shells:
                yield shells

        overrides: dict[str, Any] = {**(options.pop("overrides", None) or {}), SHELL.id: held}
        fs = ScopedFs(_with(self.scope, shells.temporary))
        self._session = open_session(fs, builtin=(), overrides=overrides, **options)
        return shells, fs

    # ---- names of places ----

    def _there(self, path: str) -> str:
        """The place on this machine that a path means: the private `/tmp` is a directory elsewhere."""
        path = posixpath.join(self.root, path)
        path = path if ".." in path else posixpath.normpath(path)
        private = self._private()
        if private is None or not is_below(path, _TMP) or self._is_named(path):
            return path
        return private + path[len(_TMP) :]

    def _is_named(self, path: str) -> bool:
        return any(is_below(path, root.real) or is_below(path, root.given) for root in self.scope.roots)

    def _private(self) -> str | None:
        """The directory that commands see as `/tmp`; None where they see the machine's."""
        shells = self._held[0] if self._held else None
        return shells.temporary if shells is not None and shells.tmpdir == _TMP else None

    def _here(self, real: str) -> str:
        """A place on this machine as commands name it."""
        private = self._private()
        return _TMP + real[len(private) :] if private is not None and is_below(real, private) else real

    def _as_named(self, text: str) -> str:
        """A message about the private `/tmp`, with the path as the caller wrote it."""
        private = self._private()
        return text if private is None else text.replace(private, _TMP)

    def _absolute(self, found: str) -> str:
        return self._here(posixpath.join(self.root, found))


class _Scratch:
    """Files of one command in the private temporary directory: its input, its standard error."""

    def __init__(self, fs: ScopedFs, shells: Shells, number: int) -> None:
        self._fs = fs
        self._shells = shells
        self._number = number
        self._kinds: set[str] = set()

    def inside(self, kind: str) -> str:
        """The file's path as the command names it."""
        self._kinds.add(kind)
        return f"{self._shells.tmpdir}/.gripfast-{self._number}.{kind}"

    def _outside(self, kind: str) -> WorkPath:
        return WorkPath.parse(f"{self._shells.temporary}/.gripfast-{self._number}.{kind}")

    async def write(self, kind: str, data: bytes) -> str:
        await to_thread.run_sync(lambda: self._fs.change(self._outside(kind), lambda _: data))
        return self.inside(kind)

    async def read(self, kind: str) -> bytes:
        """What is in it; nothing where the command removed it or put something else there."""
        try:
            return await to_thread.run_sync(self._fs.read_bytes, self._outside(kind))
        except ToolError:
            return b""

    async def remove(self) -> None:
        for kind in self._kinds:
            with contextlib.suppress(ToolError):
                await to_thread.run_sync(remove, self._fs, self._outside(kind))


def check_scope(scope: object) -> None:
    if not isinstance(scope, Scope):
        raise TypeError(f"a Scope is needed, such as `Scope.workspace(directory)`, not {scope!r}")


def _with(scope: Scope, temporary: str) -> Scope:
    """The same scope with the private temporary directory as one more root."""
    return Scope(
        read=None if scope.read is None else [*(one.given for one in scope.read), temporary],
        write=[*(one.given for one in scope.write), temporary],
        deny=scope.deny.texts,
        protect=scope.protect.texts,
        wide=True,
    )


def _ran(output: Output, stderr: bytes) -> Ran:
    ended = output.ended
    if ended is None:
        return Ran(None, output.data, stderr, is_cut=True)
    code = exit_code(ended)
    return Ran(code, output.data, stderr, ended.reason == "timeout", output.is_cut)


def exit_code(ended: Ended) -> int | None:
    return ended.exit_code if ended.signal is None else 128 + ended.signal


@contextlib.asynccontextmanager
async def as_os_errors(ground: Ground, path: str) -> AsyncGenerator[None]:
    """What fails inside fails as the built-in exceptions that file interfaces of frameworks promise."""
    try:
        yield
    except ToolError as error:
        is_directory = error.code == "NOT_FILE" and (await ground.entry(path)).is_directory
        raise os_error(error, path, is_directory=is_directory) from None


def os_error(error: ToolError, path: str, *, is_directory: bool = False) -> Exception:
    """A refusal as the built-in exception that file interfaces of frameworks promise."""
    kinds: dict[str, tuple[type[OSError], int]] = {
        "NOT_FOUND": (FileNotFoundError, errno.ENOENT),
        "NOT_FILE": (IsADirectoryError, errno.EISDIR) if is_directory else (OSError, errno.EINVAL),
        "NOT_DIRECTORY": (NotADirectoryError, errno.ENOTDIR),
        "SANDBOX_VIOLATION": (PermissionError, errno.EACCES),
        "POLICY_DENIED": (PermissionError, errno.EACCES),
        "SIZE_LIMIT_EXCEEDED": (OSError, errno.EFBIG),
    }
    if error.code == "INVALID_ARGUMENT":
        return ValueError(error.message)
    named = str(error.details.get("errno", ""))
    if named in ("EACCES", "EPERM", "EROFS"):
        return PermissionError(errno.EACCES, error.message, path)
    kind, number = kinds.get(error.code, (OSError, getattr(errno, named, errno.EIO)))
    return kind(number, error.message, path)
