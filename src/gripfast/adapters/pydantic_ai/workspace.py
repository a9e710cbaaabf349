"""pydantic-ai: a scope as a workspace backend, with commands, files and real paths."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio
from anyio import to_thread
from pydantic_ai.workspaces import (
    CommandResult,
    FileEntry,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)
from pydantic_ai.workspaces.protocol import validate_timeout

from gripfast.adapters.ground import MOST_OUTPUT, Ground, Ran, as_os_errors, check_scope
from gripfast.call.rules import Permissions
from gripfast.errors import NotDirectory, NotFound, ToolError
from gripfast.host.files.entries import Entry
from gripfast.host.files.scope import Scope
from gripfast.host.program.places import is_directory

_PROVIDER = "gripfast"
_WATCH_SECONDS = 0.5


def workspace(scope: Scope, **options: Any) -> ScopeWorkspace:
    """A workspace inside `scope`; `options` are those of `open_session`. Close it to end what it left running."""
    check_scope(scope)
    return ScopeWorkspace(lambda: scope, options)


def attach(
    ref: WorkspaceRef,
    scope: Callable[[str], Scope] = Scope.workspace,
    *,
    permissions: Permissions | None,
    **options: Any,
) -> ScopeWorkspace:
    """The workspace that a ref of another one names. `scope` makes its scope, given the directory, which may be any:
    let it raise for those that are not yours to open. A ref carries no rules: give them again; None allows all."""
    if ref.provider != _PROVIDER:
        raise ValueError(f"the ref is of provider {ref.provider!r}, not {_PROVIDER!r}")
    return ScopeWorkspace(lambda: scope(ref.id), {**options, "permissions": permissions}, ref)


class ScopeWorkspace:
    """Files through the scope, commands in its sandbox; the environment is the scope's first directory."""

    def __init__(
        self, scope: Callable[[], Scope], options: Mapping[str, Any], ref: WorkspaceRef | None = None
    ) -> None:
        self._scope = scope
        self._options = options
        self._ref = ref
        self._ground: Ground | None = None

    @property
    def ref(self) -> WorkspaceRef | None:
        return self._ref

    async def close(self) -> None:
        if self._ground is not None:
            await self._ground.close()

    async def working_dir(self) -> str:
        return (await self._alive()).root

    async def _alive(self) -> Ground:
        """The ground, if its directory is still there."""
        if self._ground is None:
            try:
                self._ground = Ground(self._scope(), **self._options)
            except (NotFound, NotDirectory) as error:
                raise WorkspaceUnavailableError(error.message) from None
            self._ref = self._ref or WorkspaceRef(provider=_PROVIDER, id=self._ground.root)
        if not await _is_there(self._ground):
            raise WorkspaceUnavailableError(f"the workspace directory {self._ground.root!r} does not exist any more")
        return self._ground

    # ---- commands ----

    async def run(
        self,
        command: str | Sequence[str],
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        _check_form(command, shell)
        validate_timeout(timeout)
        ground = await self._alive()
        try:
            ran = await _while_there(ground, lambda: ground.run(command, env=env, timeout=timeout, ends=True))
        except ToolError as error:
            raise PermissionError(error.message) from None
        if ran is None:
            raise WorkspaceUnavailableError(f"the workspace directory {ground.root!r} was removed")
        return _result(ran, timeout)

    # ---- files ----

    async def read_bytes(self, path: str) -> bytes:
        ground = await self._alive()
        async with as_os_errors(ground, path):
            return await ground.read_bytes(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        ground = await self._alive()
        async with as_os_errors(ground, path):
            await ground.write_bytes(path, data)

    async def stat(self, path: str) -> FileEntry:
        ground = await self._alive()
        async with as_os_errors(ground, path):
            return _entry(path, await ground.entry(path))

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        ground = await self._alive()
        async with as_os_errors(ground, path):
            return [_entry(posixpath.join(path, one.name), one) for one in await ground.entries(path)]

    async def make_dir(self, path: str) -> None:
        ground = await self._alive()
        async with as_os_errors(ground, path):
            try:
                await ground.make_directory(path)
            except NotDirectory:
                if not await ground.exists(path):
                    raise
                raise FileExistsError(f"`{path}` is a file") from None

    async def remove(self, path: str) -> None:
        ground = await self._alive()
        async with as_os_errors(ground, path):
            await ground.remove(path)

    async def exists(self, path: str) -> bool:
        ground = await self._alive()
        async with as_os_errors(ground, path):
            return await ground.exists(path)

    async def realpath(self, path: str) -> str:
        ground = await self._alive()
        async with as_os_errors(ground, path):
            return await ground.real_path(path)


async def _is_there(ground: Ground) -> bool:
    return await to_thread.run_sync(is_directory, ground.root)


async def _while_there(ground: Ground, work: Callable[[], Awaitable[Ran]]) -> Ran | None:
    """What work gives; None when the directory was removed meanwhile, which ends the work."""
    scope = anyio.CancelScope()

    async def watch() -> None:
        while await _is_there(ground):
            await anyio.sleep(_WATCH_SECONDS)
        scope.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        with scope:
            ran = await work()
            return ran if await _is_there(ground) else None
        return None
    finally:
        watching.cancel()


def _check_form(command: str | Sequence[str], shell: bool) -> None:
    if isinstance(command, str) != shell:
        form = "a string needs shell=True" if isinstance(command, str) else "a list of words needs shell=False"
        raise TypeError(f"{form}: {command!r}")
    if not command:
        raise ValueError("the command is empty")


def _result(ran: Ran, timeout: float | None) -> CommandResult:
    stdout, stderr = (stream.decode("utf-8", "replace") for stream in (ran.stdout, ran.stderr))
    if ran.timed_out:
        raise WorkspaceTimeoutError(f"the command was ended after {timeout:g} s", stdout=stdout, stderr=stderr)
    if ran.is_cut or len(ran.stderr) > MOST_OUTPUT:
        raise WorkspaceOutputLimitError(
            f"the command printed more than {MOST_OUTPUT} bytes", limit=MOST_OUTPUT, stdout=stdout, stderr=stderr
        )
    if ran.exit_code is None:
        raise WorkspaceUnavailableError("the command's supervisor was lost")
    return CommandResult(exit_code=ran.exit_code, stdout=stdout, stderr=stderr)


def _entry(path: str, found: Entry) -> FileEntry:
    return FileEntry(name=found.name, path=path, is_dir=found.is_directory, size=found.size)
