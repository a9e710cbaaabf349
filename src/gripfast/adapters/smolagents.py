"""smolagents: a session as tools, under names that are Python identifiers.

Its tools are plain functions, so a call runs in a thread with an event loop of its own. It has no way to pause for an
approval: a call that a rule asks about goes to the session's own `ask`, and is refused where there is none.
"""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smolagents import Tool as BaseTool
from smolagents.agent_types import AgentImage

from gripfast.adapters.calls import checked
from gripfast.adapters.loops import in_loop
from gripfast.adapters.words import chosen, identifiers, parameter_names, parts_of
from gripfast.call.run import Session
from gripfast.framework.definition import Tool
from gripfast.messages import ImagePart, ToolMessage

__all__ = ["SmolagentsTool", "ToolCallFailedError", "tools"]

_KINDS = frozenset({"string", "boolean", "integer", "number", "array", "object", "null"})


def tools(session: Session, *, only: Iterable[str] | None = None) -> list[BaseTool]:
    """The tools of an open session, or only those named, for `ToolCallingAgent` and `CodeAgent`. A name that is no
    identifier is written with `_`; so is an argument's. The caller closes the session."""
    wanted = chosen(checked(session), only)
    return [SmolagentsTool(session, name, tool) for name, tool in identifiers(session).items() if tool in wanted]


class ToolCallFailedError(Exception):
    """What the agent reads when a call failed; it goes on from there."""


class SmolagentsTool(BaseTool):
    """One tool of a session."""

    output_type = "any"
    skip_forward_signature_validation = True

    def __init__(self, session: Session, name: str, tool: Tool) -> None:
        self.name = name
        self.description = tool.description
        self._session = session
        self._called = tool.name
        self._names = parameter_names(tool)
        schema = tool.definition.parameters
        needed = schema.get("required", ())
        self.inputs = {
            name: _input(schema["properties"][original], optional=original not in needed)
            for name, original in self._names.items()
        }
        super().__init__()

    def forward(self, **arguments: Any) -> Any:
        given = {self._names.get(name, name): value for name, value in arguments.items() if value is not None}
        return _output(in_loop(self._session.call(self._called, given)))


def _input(node: dict[str, Any], *, optional: bool) -> dict[str, Any]:
    kinds = node.get("type", [one.get("type") for one in node.get("anyOf", ())])
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    known = bool(kinds) and all(kind in _KINDS for kind in kinds)
    shown: dict[str, Any] = {"type": kinds if known else "any", "description": node.get("description", "")}
    return {**shown, "nullable": True} if optional else shown


def _output(message: ToolMessage) -> Any:
    if message.is_error:
        raise ToolCallFailedError(message.text)
    image = next((part for part in parts_of(message) if isinstance(part, ImagePart)), None)
    return message.text if image is None else AgentImage(image.data)
