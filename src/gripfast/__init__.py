"""gripfast: tools for LLM coding agents, held inside one scope. The public names, nothing else."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # importing `typing` for it would take longer than the rest of this module
if TYPE_CHECKING:
    from typing import Any

    from gripfast.builtin.catalog import TOOL_DEFINITIONS, ToolCatalog
    from gripfast.builtin.keys import FS
    from gripfast.builtin.rulesets import rule_set
    from gripfast.builtin.session import WorkspaceSession, builtin_tools, open_session
    from gripfast.builtin.toolkit import AgentToolkit, create_agent_toolkit, create_tool_context
    from gripfast.call.cache import OutputCache
    from gripfast.call.decision import Decision, PermissionRule
    from gripfast.call.hooks import Ask, Deny, Question
    from gripfast.call.rules import Permissions
    from gripfast.call.run import Session
    from gripfast.errors import ToolError
    from gripfast.framework.context import ToolContext
    from gripfast.framework.definition import Tool, ToolDefinitionError, define_tool, tool
    from gripfast.framework.depends import DependencyKey, Depends
    from gripfast.host.files.fs import ScopedFs
    from gripfast.host.files.paths import WorkPath
    from gripfast.host.files.scope import Scope
    from gripfast.host.record.shelf import RecordOptions
    from gripfast.host.record.undo import UndoResult
    from gripfast.messages import (
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
        provider_messages,
    )

__version__ = "0.2.0.dev0"

# Where each public name lives. A name is imported when it is first used, so that `import gripfast` stays cheap.
_HOMES = {
    "gripfast.builtin.catalog": ("TOOL_DEFINITIONS", "ToolCatalog"),
    "gripfast.builtin.keys": ("FS",),
    "gripfast.builtin.session": ("WorkspaceSession", "builtin_tools", "open_session"),
    "gripfast.builtin.toolkit": ("AgentToolkit", "create_agent_toolkit", "create_tool_context"),
    "gripfast.call.cache": ("OutputCache",),
    "gripfast.call.hooks": ("Ask", "Deny", "Question"),
    "gripfast.call.decision": ("Decision", "PermissionRule"),
    "gripfast.call.rules": ("Permissions",),
    "gripfast.builtin.rulesets": ("rule_set",),
    "gripfast.call.run": ("Session",),
    "gripfast.errors": ("ToolError",),
    "gripfast.host.files.fs": ("ScopedFs",),
    "gripfast.host.files.paths": ("WorkPath",),
    "gripfast.host.files.scope": ("Scope",),
    "gripfast.host.record.shelf": ("RecordOptions",),
    "gripfast.host.record.undo": ("UndoResult",),
    "gripfast.messages": (
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
        "provider_messages",
    ),
    "gripfast.framework.context": ("ToolContext",),
    "gripfast.framework.definition": ("Tool", "ToolDefinitionError", "define_tool", "tool"),
    "gripfast.framework.depends": ("DependencyKey", "Depends"),
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
    "RecordOptions",
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
    "UndoResult",
    "WorkPath",
    "WorkspaceSession",
    "builtin_tools",
    "create_agent_toolkit",
    "create_tool_context",
    "define_tool",
    "open_session",
    "provider_messages",
    "rule_set",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'gripfast' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    if name == "Session":
        value.default_store = staticmethod(_embedded_store)
    globals()[name] = value
    return value


def _embedded_store() -> Any:
    """Where a session keeps outputs by default; made with the first session."""
    return importlib.import_module("gripfast.host.stores.store").EmbeddedStore()


def __dir__() -> list[str]:
    return __all__
