"""holdfast: tools for LLM coding agents, held inside one scope. The public names, nothing else."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.builtin.catalog import TOOL_DEFINITIONS, ToolCatalog
    from holdfast.builtin.keys import FS
    from holdfast.builtin.session import builtin_tools, open_session
    from holdfast.builtin.toolkit import AgentToolkit, create_agent_toolkit, create_tool_context
    from holdfast.call.cache import OutputCache
    from holdfast.call.decision import Decision, PermissionRule
    from holdfast.call.hooks import Ask, Deny, Question
    from holdfast.call.rules import Permissions
    from holdfast.call.rulesets import rule_set
    from holdfast.call.run import Session
    from holdfast.errors import ToolError
    from holdfast.host.fs import ScopedFs
    from holdfast.host.paths import WorkPath
    from holdfast.host.scope import Scope
    from holdfast.messages import (
        DocumentPart,
        ImagePart,
        JsonResult,
        OutputRef,
        PartsResult,
        TextPart,
        TextResult,
        ToolCall,
        ToolMessage,
        ToolResult,
    )
    from holdfast.tool.context import ToolContext
    from holdfast.tool.definition import Tool, ToolDefinitionError, define_tool, tool
    from holdfast.tool.depends import DependencyKey, Depends

# Where each public name lives. A name is imported when it is first used, so that `import holdfast` stays cheap.
_HOMES = {
    "holdfast.builtin.catalog": ("TOOL_DEFINITIONS", "ToolCatalog"),
    "holdfast.builtin.keys": ("FS",),
    "holdfast.builtin.session": ("builtin_tools", "open_session"),
    "holdfast.builtin.toolkit": ("AgentToolkit", "create_agent_toolkit", "create_tool_context"),
    "holdfast.call.cache": ("OutputCache",),
    "holdfast.call.hooks": ("Ask", "Deny", "Question"),
    "holdfast.call.decision": ("Decision", "PermissionRule"),
    "holdfast.call.rules": ("Permissions",),
    "holdfast.call.rulesets": ("rule_set",),
    "holdfast.call.run": ("Session",),
    "holdfast.errors": ("ToolError",),
    "holdfast.host.fs": ("ScopedFs",),
    "holdfast.host.paths": ("WorkPath",),
    "holdfast.host.scope": ("Scope",),
    "holdfast.messages": (
        "DocumentPart",
        "ImagePart",
        "JsonResult",
        "OutputRef",
        "PartsResult",
        "TextPart",
        "TextResult",
        "ToolCall",
        "ToolMessage",
        "ToolResult",
    ),
    "holdfast.tool.context": ("ToolContext",),
    "holdfast.tool.definition": ("Tool", "ToolDefinitionError", "define_tool"),
    "holdfast.tool.depends": ("DependencyKey", "Depends"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "FS",
    "TOOL_DEFINITIONS",
    "AgentToolkit",
    "Ask",
    "Decision",
    "Deny",
    "DependencyKey",
    "Depends",
    "DocumentPart",
    "ImagePart",
    "JsonResult",
    "OutputCache",
    "OutputRef",
    "PartsResult",
    "PermissionRule",
    "Permissions",
    "Question",
    "Scope",
    "ScopedFs",
    "Session",
    "TextPart",
    "TextResult",
    "Tool",
    "ToolCall",
    "ToolCatalog",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolMessage",
    "ToolResult",
    "WorkPath",
    "builtin_tools",
    "create_agent_toolkit",
    "create_tool_context",
    "define_tool",
    "open_session",
    "rule_set",
    "tool",
]


class _FrontDoor(ModuleType):
    """This module, with its names found at first use."""

    def __getattr__(self, name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return __all__

    @property
    def tool(self) -> Any:
        """The decorator, though a room has the same name: importing the room must not hide it."""
        return importlib.import_module("holdfast.tool.definition").tool

    @tool.setter
    def tool(self, room: ModuleType) -> None:
        """What the import system does when it loads the room; the room stays reachable by import."""


sys.modules[__name__].__class__ = _FrontDoor
