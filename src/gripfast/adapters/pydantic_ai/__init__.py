"""pydantic-ai: a session as a toolset, a scope as a workspace."""
# pyright: basic

from __future__ import annotations

from gripfast.adapters.pydantic_ai.toolset import SessionToolset, toolset
from gripfast.adapters.pydantic_ai.workspace import ScopeWorkspace, attach, workspace

__all__ = ["ScopeWorkspace", "SessionToolset", "attach", "toolset", "workspace"]
