"""The OpenAI Agents SDK: a session applies the patches of its ApplyPatchTool, in its scope and under its rules."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

from typing import Any

from agents import RunContextWrapper, apply_diff
from agents.editor import ApplyPatchOperation, ApplyPatchResult

from gripfast.adapters.calls import Caller, nobody_to_ask
from gripfast.adapters.operations import read_operation, write_operation
from gripfast.call.hooks import Answer, AskCallback, Question
from gripfast.call.run import Session
from gripfast.errors import ToolError
from gripfast.host.files.guard import digest_of
from gripfast.patch.grammar import parse
from gripfast.patch.plan import plan

_NAME = "apply_patch"  # of an ApplyPatchTool
_REMEMBERED = 1024
"""Operations waiting for approval that are remembered; the oldest go first."""


def editor(session: Session) -> SessionEditor:
    """For `ApplyPatchTool(editor=edits, needs_approval=edits.needs_approval)`. The caller closes the session."""
    return SessionEditor(session)


class SessionEditor:
    """Files in UTF-8. A file that changes while a patch is applied is left alone, and the answer says so."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._shown: dict[str, str] = {}

    async def needs_approval(self, _: RunContextWrapper[Any], operation: ApplyPatchOperation, call_id: str) -> bool:
        caller = Caller(self._session)
        paths = [path for path in (operation.path, operation.move_to) if path]
        asked = [await caller.asks(write_operation, {"file_path": path, "do": "put"}, call_id) for path in paths]
        if any(asked):
            self._shown[_identity(operation)] = call_id
            while len(self._shown) > _REMEMBERED:
                del self._shown[next(iter(self._shown))]
        return any(asked)

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await _result_of(self._create(operation, self._asking(operation)), f"created {operation.path}")

    async def _create(self, operation: ApplyPatchOperation, ask: AskCallback | None) -> None:
        text = apply_diff("", operation.diff or "", mode="create")
        await self._write(operation.path, "create", text, ask)

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await _result_of(self._update(operation, self._asking(operation)), f"updated {operation.path}")

    async def _update(self, operation: ApplyPatchOperation, ask: AskCallback | None) -> None:
        wanted = {"file_path": operation.path, "want": "bytes"}
        before: bytes = await self._session.value(read_operation, wanted, ask=ask)
        text = _updated(before, operation)
        if operation.move_to is None or operation.move_to == operation.path:
            await self._write(operation.path, "put", text, ask, expected=digest_of(before))
            return
        await self._write(operation.move_to, "create", text, ask)
        await self._remove(operation.path, ask)

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await _result_of(self._remove(operation.path, self._asking(operation)), f"deleted {operation.path}")

    async def _write(
        self, path: str, do: str, text: str, ask: AskCallback | None, expected: str | None = None
    ) -> None:
        arguments = {"file_path": path, "do": do, "text": text, "expected": expected}
        await self._session.value(write_operation, arguments, ask=ask)

    async def _remove(self, path: str, ask: AskCallback | None) -> None:
        await self._session.value(write_operation, {"file_path": path, "do": "remove"}, ask=ask)

    def _asking(self, operation: ApplyPatchOperation) -> AskCallback | None:
        """The operation that was shown is approved by now, if the run says so; any other is refused."""
        if self._session.gate.can_ask:
            return None
        was_shown = self._is_approved(operation, self._shown.pop(_identity(operation), None))

        async def ask(question: Question) -> Answer:
            if was_shown:
                return True
            raise nobody_to_ask(question)

        return ask

    def _is_approved(self, operation: ApplyPatchOperation, call_id: str | None) -> bool:
        """Whether an operation was asked about, and not rejected then: the run's own context knows."""
        run = operation.ctx_wrapper
        return call_id is not None and (run is None or run.is_tool_approved(_NAME, call_id) is True)


class _Before:
    """The file that an update begins with."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def body(self) -> bytes:
        self._data.decode("utf-8")
        return self._data


def _updated(before: bytes, operation: ApplyPatchOperation) -> str:
    """The text after an update, placed as our own tool places it. Raises the ToolError of the first chunk that has no
    place of its own."""
    patch = parse(f"*** Begin Patch\n*** Update File: f\n{operation.diff or ''}\n*** End Patch")
    if len(patch.hunks) > 1:
        raise ValueError("it holds a patch of other files")
    planned = plan(patch, {"f": "f"}, lambda _: _Before(before))
    if planned.failures:
        raise planned.failures[0].error
    return planned.files["f"].text().decode("utf-8")


def _identity(operation: ApplyPatchOperation) -> str:
    return "\0".join([operation.type, operation.path, operation.move_to or "", operation.diff or ""])


async def _result_of(work: Any, done: str) -> ApplyPatchResult:
    try:
        await work
    except ToolError as error:
        return ApplyPatchResult(status="failed", output=f"{error.code}: {error.message}")
    except (ValueError, UnicodeDecodeError) as error:
        return ApplyPatchResult(status="failed", output=f"the patch does not fit: {error}")
    return ApplyPatchResult(status="completed", output=done)
