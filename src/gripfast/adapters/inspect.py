"""Inspect: a sandbox of type `gripfast`, registered by importing this. Each sample has a directory of its own."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any, Literal, overload

from anyio import to_thread
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import BaseModel, ConfigDict

from gripfast.adapters.ground import Ground, Ran, as_os_errors
from gripfast.errors import ToolError
from gripfast.host.files.entries import discard, scratch_directory
from gripfast.host.files.scope import PROTECTED, Scope

__all__ = ["GripfastSandbox", "SandboxConfig"]


class SandboxConfig(BaseModel):
    """For `sandbox=("gripfast", SandboxConfig(...))`. `read` are the directories that may be read beside the sample's
    own; None is all of the machine, as commands see it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    protect: tuple[str, ...] = PROTECTED
    env: tuple[str, ...] = ()
    sandbox: Literal["auto", "require", "off"] = "auto"

    def scope(self, directory: str) -> Scope:
        read = None if self.read is None else [directory, *self.read]
        return Scope(read=read, write=[directory], deny=self.deny, protect=self.protect)


@sandboxenv(name="gripfast")
class GripfastSandbox(SandboxEnvironment):
    """Files through a scope, commands in its sandbox. Relative paths start in `ground.root`."""

    def __init__(self, scope: Scope, **options: Any) -> None:
        """`options` are those of `open_session`."""
        super().__init__()
        self.ground = Ground(scope, **options)
        self._users: tuple[str, ...] = ()

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        if config is not None and not isinstance(config, SandboxConfig):
            raise TypeError(f"the gripfast sandbox takes a SandboxConfig, not {config!r}")
        chosen = config or SandboxConfig()
        directory = await to_thread.run_sync(scratch_directory)
        return {"default": cls(chosen.scope(directory), env=chosen.env, sandbox=chosen.sandbox)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        for environment in environments.values():
            ground = environment.as_type(GripfastSandbox).ground
            await ground.close()
            await to_thread.run_sync(discard, ground.root)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        return SandboxConfig(**config)

    def default_polling_interval(self) -> float:
        return 0.2

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        await self._check_user(user)
        data = input.encode() if isinstance(input, str) else input
        try:
            ran = await self.ground.run(cmd, directory=cwd, env=env, input=data, timeout=timeout)
        except ToolError as error:
            raise PermissionError(errno.EACCES, error.message) from None
        return _result(ran, cmd, timeout)

    async def _check_user(self, user: str | None) -> None:
        """Commands run as the user of this process; under another name there is nobody."""
        if user is None:
            return
        if not self._users:
            ran = await self.ground.run("id -un; id -u")
            self._users = tuple(ran.stdout.decode().split())
        if user not in self._users:
            raise SandboxUserUnsupportedError(f"commands run as {self._users[0]!r} here, not as {user!r}")

    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode("utf-8") if isinstance(contents, str) else contents
        async with as_os_errors(self.ground, file):
            await self.ground.write_bytes(file, data)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        async with as_os_errors(self.ground, file):
            size = (await self.ground.entry(file)).size or 0
            if size > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
            data = await self.ground.read_bytes(file)
        return data.decode("utf-8") if text else data


def _result(ran: Ran, cmd: Sequence[str], timeout: int | None) -> ExecResult[str]:
    stdout, stderr = (stream.decode("utf-8", "replace") for stream in (ran.stdout, ran.stderr))
    if ran.timed_out:
        raise TimeoutError(f"the command was ended after {timeout} s")
    most = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
    if ran.is_cut or max(len(ran.stdout), len(ran.stderr)) > most:
        raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, stdout[:most])
    if ran.exit_code == 126 and "ermission denied" in stderr:
        raise PermissionError(errno.EACCES, stderr.strip(), cmd[0])
    code = -1 if ran.exit_code is None else ran.exit_code
    return ExecResult(success=code == 0, returncode=code, stdout=stdout, stderr=stderr)
