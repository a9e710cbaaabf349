"""The OpenAI Agents SDK: a session runs the commands of its ShellTool, in the session's shell and under its rules."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

from typing import Any

from agents import RunContextWrapper, ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult

from gripfast.adapters.calls import Caller
from gripfast.adapters.ground import MOST_OUTPUT, exit_code
from gripfast.adapters.operations import Output, run_operation
from gripfast.call.run import Session
from gripfast.errors import ToolError

_DEFAULT_MS = 120_000
_REFUSED = 126  # as a shell has it for what may not be run


def executor(session: Session) -> SessionExecutor:
    """For `ShellTool(executor=run, needs_approval=run.needs_approval)`. The caller closes the session."""
    return SessionExecutor(session)


class SessionExecutor:
    """Standard output and error come together, in the order printed; the working directory persists."""

    def __init__(self, session: Session) -> None:
        self._caller = Caller(session)

    async def needs_approval(self, _: RunContextWrapper[Any], action: Any, call_id: str) -> bool:
        asked = [
            await self._caller.asks(run_operation, _arguments(command, action), f"{call_id} {place}")
            for place, command in enumerate(action.commands)
        ]
        return any(asked)

    async def __call__(self, request: ShellCommandRequest) -> ShellResult:
        action, outputs = request.data.action, []
        for place, command in enumerate(action.commands):
            outputs.append(await self._run(command, action, f"{request.data.call_id} {place}"))
        return ShellResult(output=outputs, max_output_length=action.max_output_length)

    async def _run(self, command: str, action: Any, id: str) -> ShellCommandOutput:
        try:
            output: Output = await self._caller.value_as_shown(run_operation, _arguments(command, action), id)
        except ToolError as error:
            outcome = ShellCallOutcome(type="exit", exit_code=_REFUSED)
            return ShellCommandOutput(stderr=f"{error.code}: {error.message}", outcome=outcome, command=command)
        return ShellCommandOutput(
            stdout=output.data.decode("utf-8", "replace"), outcome=_outcome(output), command=command
        )


def _arguments(command: str, action: Any) -> dict[str, Any]:
    timeout = action.timeout_ms or _DEFAULT_MS
    return {"command": command, "line": "", "timeout": timeout, "limit": MOST_OUTPUT, "ends": False}


def _outcome(output: Output) -> ShellCallOutcome:
    if output.ended is None or output.ended.reason == "timeout":
        return ShellCallOutcome(type="timeout")
    return ShellCallOutcome(type="exit", exit_code=exit_code(output.ended))
