"""The OpenAI Agents SDK: a session as function tools, as the editor of patches and as the executor of a shell."""
# pyright: basic

from __future__ import annotations

from gripfast.adapters.openai_agents.editor import SessionEditor, editor
from gripfast.adapters.openai_agents.executor import SessionExecutor, executor
from gripfast.adapters.openai_agents.tools import tools

__all__ = ["SessionEditor", "SessionExecutor", "editor", "executor", "tools"]
