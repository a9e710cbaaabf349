"""One trivial call through the corridor, beside what others do for the same call; and the price of importing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import TypeAdapter

from benchmarks.harness import Run, compare
from holdfast import Session, tool

GROUP = "A call in process"
ARGUMENTS = '{"x": 20, "y": 22}'


async def add(x: int, y: int = 0) -> str:
    """Adds two numbers."""
    return str(x + y)


def measure(run: Run) -> None:
    asyncio.run(_calls(run))
    _imports(run)


async def _calls(run: Run) -> None:
    sides: dict[str, Callable[[], Awaitable[Any]]] = {
        "holdfast": _ours(),
        "bare pydantic validation + call": _floor(),
    }
    limits = {"bare pydantic validation + call": 10.0}
    for name, make in (
        ("pydantic-ai ToolManager.handle_call", _pydantic_ai),
        ("fastmcp Tool.run", _fastmcp),
        ("mcp MCPServer.call_tool", _mcp),
    ):
        try:
            sides[name] = await make()
            limits[name] = 1.0
        except ImportError as missing:
            run.not_run(GROUP, f"a trivial async tool, against {name}", "< 1×", str(missing))
    count = 300 if run.quick else 1500
    loop = asyncio.get_running_loop()

    def repeated(call: Callable[[], Awaitable[Any]]) -> Callable[[], None]:
        async def many() -> None:
            for _ in range(count):
                await call()

        return lambda: asyncio.run_coroutine_threadsafe(many(), loop).result()

    await asyncio.to_thread(
        compare,
        run,
        GROUP,
        "a trivial async tool",
        {name: repeated(call) for name, call in sides.items()},
        at_most=limits,
    )


def _ours() -> Callable[[], Awaitable[Any]]:
    session = Session([tool(add)])
    return lambda: session.call("add", ARGUMENTS)


def _floor() -> Callable[[], Awaitable[Any]]:
    model = tool(add).arguments.model
    validate = TypeAdapter(model).validator.validate_json

    async def call() -> str:
        return await add(**validate(ARGUMENTS).__dict__)

    return call


async def _pydantic_ai() -> Callable[[], Awaitable[Any]]:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.usage import RunUsage

    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = await ToolManager(FunctionToolset([add])).for_run_step(context)
    part = ToolCallPart("add", ARGUMENTS)
    return lambda: manager.handle_call(part)


async def _fastmcp() -> Callable[[], Awaitable[Any]]:
    from fastmcp.tools import FunctionTool

    made = FunctionTool.from_function(add)
    return lambda: made.run({"x": 20, "y": 22})


async def _mcp() -> Callable[[], Awaitable[Any]]:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")
    server.tool()(add)
    return lambda: server.call_tool("add", {"x": 20, "y": 22})


def _imports(run: Run) -> None:
    def importing(statement: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", statement], check=True)

    compare(
        run,
        GROUP,
        "import holdfast",
        {"holdfast": importing("import holdfast"), "import pydantic": importing("import pydantic")},
        at_most={"import pydantic": 1.5},
        note="whole processes",
    )
    compare(
        run,
        GROUP,
        "from holdfast import tool, open_session",
        {
            "holdfast": importing("from holdfast import tool, open_session"),
            "from pydantic import BaseModel": importing("from pydantic import BaseModel"),
        },
        note="whole processes; what a program pays that uses it",
    )
