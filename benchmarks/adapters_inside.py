"""A call through an adapter beside Session.call, in the environment of its framework. Prints the ratios as JSON.

usage: python -m benchmarks.adapters_inside pydantic-ai|langchain|openai-agents|google-adk|agent-framework|smolagents
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gripfast import PermissionRule, Permissions, Scope, Session, open_session

Call = Callable[[], Awaitable[Any]]
ARGUMENTS = {"file_path": "a.txt"}
COUNT, ROUNDS = 200, 15


def pydantic_ai(session: Session) -> Call:
    from gripfast.adapters.pydantic_ai import toolset

    made = toolset(session)
    context: Any = SimpleNamespace(tool_call_approved=False, tool_call_id="c")
    tool = asyncio.run(made.get_tools(context))["Read"]
    return lambda: made.call_tool("Read", ARGUMENTS, context, tool)


def langchain(session: Session) -> Call:
    from gripfast.adapters.langchain import tools

    (read,) = tools(session, only=["Read"])
    return lambda: read._arun(**ARGUMENTS)


def openai_agents(session: Session) -> Call:
    from gripfast.adapters.openai_agents import tools

    (read,) = tools(session, only=["Read"])
    context: Any = SimpleNamespace(tool_call_id="c", is_tool_approved=lambda *_: None)
    text = json.dumps(ARGUMENTS)
    return lambda: read.on_invoke_tool(context, text)


def google_adk(session: Session) -> Call:
    from gripfast.adapters.google_adk import toolset

    (read,) = asyncio.run(toolset(session, only=["Read"]).get_tools())
    context: Any = SimpleNamespace(function_call_id="c", tool_confirmation=None)
    return lambda: read.run_async(args=ARGUMENTS, tool_context=context)


def agent_framework(session: Session) -> Call:
    from gripfast.adapters.agent_framework import tools

    (read,) = tools(session, only=["Read"])
    context: Any = SimpleNamespace(metadata={"call_id": "c"})
    return lambda: read.func(ctx=context, **ARGUMENTS)


def smolagents(session: Session) -> Call:
    """Beside a call in the same thread's loop: the way there and back is the framework's price for having none."""
    from gripfast.adapters.loops import in_loop
    from gripfast.adapters.smolagents import tools

    (read,) = tools(session, only=["Read"])

    async def one() -> Any:
        return read.forward(**ARGUMENTS)

    global PLAIN

    async def plain() -> Any:
        return in_loop(session.call("Read", ARGUMENTS))

    PLAIN = plain
    return one


PLAIN: Call | None = None
SIDES = {
    "pydantic-ai": pydantic_ai,
    "langchain": langchain,
    "openai-agents": openai_agents,
    "google-adk": google_adk,
    "agent-framework": agent_framework,
    "smolagents": smolagents,
}


async def timed(call: Call) -> float:
    begun = time.perf_counter()
    for _ in range(COUNT):
        await call()
    return time.perf_counter() - begun


def main(framework: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "a.txt").write_text("one\ntwo\n" * 20, encoding="utf-8")
        rules = Permissions("ask", [PermissionRule("Read", "*", "allow")])
        session = open_session(Scope.workspace(place), permissions=rules)
        through = SIDES[framework](session)
        bare = PLAIN or (lambda: session.call("Read", ARGUMENTS))

        async def measured() -> list[float]:
            ratios: list[float] = []
            for number in range(ROUNDS + 2):
                ours, theirs = await timed(through), await timed(bare)
                if number >= 2:
                    ratios.append(ours / theirs)
            await session.close()
            return ratios

        sys.stdout.write(json.dumps(asyncio.run(measured())) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
