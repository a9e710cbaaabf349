"""One trivial call through all of run_call, compared with other frameworks; and the cost of importing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Annotated, Any, TypeAlias

from pydantic import TypeAdapter

from benchmarks.harness import Run, bound, compare
from gripfast import DependencyKey, Depends, PermissionRule, Permissions, Scope, Tool, open_session, tool

GROUP = "A call in process"
ARGUMENTS = '{"x": 20, "y": 22}'


Call: TypeAlias = Callable[[], Awaitable[Any]]
START = DependencyKey("start", lambda: 0)
FLOOR = "bare pydantic validation + call"


async def add(x: int, y: int = 0) -> str:
    """Adds two numbers."""
    return str(x + y)


async def add_from(x: int, start: Annotated[int, Depends(START)], y: int = 0) -> str:
    """Adds two numbers to a third."""
    return str(x + y + start)


def measure(run: Run) -> None:
    asyncio.run(_calls(run))
    _imports(run)


async def _calls(run: Run) -> None:
    """Our side is a full session with a rule that allows the tool and a store for outputs."""
    async with AsyncExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        allowed = Permissions("ask", [PermissionRule("add", "*", "allow"), PermissionRule("add_from", "*", "allow")])
        opened = open_session(Scope.workspace(place), tools=[tool(add), tool(add_from)], permissions=allowed)
        session = await stack.enter_async_context(opened)
        peers, limits = await _peers(run)
        for ours, name in (("add", "a trivial async tool"), ("add_from", "the same with an injected dependency")):
            sides = {"gripfast": lambda ours=ours: session.call(ours, ARGUMENTS), **peers}
            await _compare(run, name, sides, limits)
            limits.pop(FLOOR, None)  # it injects nothing, so its second row has no target


async def _peers(run: Run) -> tuple[dict[str, Call], dict[str, float]]:
    sides: dict[str, Call] = {FLOOR: _floor(tool(add))}
    limits = {FLOOR: 10.0}
    for name, make in (
        ("pydantic-ai ToolManager.handle_call", _pydantic_ai),
        ("fastmcp Tool.run", _fastmcp),
        ("mcp MCPServer.call_tool", _mcp),
    ):
        try:
            sides[name] = await make()
            limits[name] = 1.0
        except ImportError as missing:
            run.not_run(GROUP, f"a trivial async tool, against {name}", "≤ 1×", f"not installed ({missing})")
    return sides, limits


async def _compare(run: Run, name: str, sides: dict[str, Call], limits: dict[str, float]) -> None:
    count = 300 if run.quick else 1500
    loop = asyncio.get_running_loop()

    def repeated(call: Call) -> Callable[[], None]:
        async def many() -> None:
            for _ in range(count):
                await call()

        return lambda: asyncio.run_coroutine_threadsafe(many(), loop).result()

    timed = {side: repeated(call) for side, call in sides.items()}
    note = "with a rule that allows it, and the cache check"
    await asyncio.to_thread(compare, run, GROUP, name, timed, at_most=limits, note=note)


def _floor(made: Tool) -> Call:
    validate = TypeAdapter(made.arguments.model).validator.validate_json

    async def call() -> str:
        return await add(**validate(ARGUMENTS).__dict__)

    return call


async def _pydantic_ai() -> Call:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.usage import RunUsage

    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = await ToolManager(FunctionToolset([add])).for_run_step(context)
    part = ToolCallPart("add", ARGUMENTS)
    return lambda: manager.handle_call(part)


async def _fastmcp() -> Call:
    from fastmcp.tools import FunctionTool

    made = FunctionTool.from_function(add)
    return lambda: made.run({"x": 20, "y": 22})


async def _mcp() -> Call:
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
        "import gripfast",
        {"gripfast": importing("import gripfast"), "import pydantic": importing("import pydantic")},
        at_most={"import pydantic": 1.5},
        note="whole processes",
    )
    compare(
        run,
        GROUP,
        "from gripfast import tool, open_session",
        {
            "gripfast": importing("from gripfast import tool, open_session"),
            "from pydantic import BaseModel": importing("from pydantic import BaseModel"),
        },
        note="whole processes; what a program pays that uses it",
    )
    heavy = "mcp starlette redis tree_sitter rich regex pypdf"
    count = f"import sys, gripfast; print(sum(name in sys.modules for name in '{heavy}'.split()))"
    said = subprocess.run([sys.executable, "-c", count], check=True, capture_output=True, text=True).stdout
    bound(run, GROUP, "heavy modules that `import gripfast` loads", int(said), 0, "modules", note=heavy)
