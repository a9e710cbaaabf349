"""Whole calls of our tools beside the same work by pydantic-ai-harness: its file tools by their methods, which leave
out validation and the framework, its shell through the framework."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks import data
from benchmarks.harness import Run, compare
from gripfast import Permissions, Scope, open_session

GROUP = "Whole calls beside pydantic-ai-harness"
PEER = "pydantic-ai-harness"
INSIDE = f"{PEER} in its bubblewrap"
LINES = "".join(f"line {number} of a file that is read and edited\n" for number in range(400))

Call: TypeAlias = Callable[[], Awaitable[Any]]
Calling: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Any]]


def measure(run: Run) -> None:
    if find_spec("pydantic_ai_harness") is None:
        run.not_run(GROUP, f"Read of 200 lines, against {PEER}", "≤ 1×", "not installed")
    else:
        asyncio.run(_measured(run))


async def _measured(run: Run) -> None:
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (place / "a.txt").write_text(LINES, encoding="utf-8")
        ours = await _ours(place, stack)
        files = _their_files(place)
        await _small_calls(run, ours, files)
        await _commands(run, ours, place)
        await _search(run, stack)


async def _small_calls(run: Run, ours: Calling, theirs: Calling) -> None:
    read = {"file_path": "a.txt", "offset": 1, "limit": 200}
    await _compare(
        run,
        "Read of 200 lines",
        lambda: ours("Read", read),
        {PEER: lambda: theirs("read_file", {"path": "a.txt", "offset": 0, "limit": 200})},
        at_most={PEER: 1.0},
        count=300,
    )
    edit, back = _turns("old_string", "new_string", "file_path"), _turns("old_text", "new_text", "path")
    await _compare(
        run,
        "Edit of one line",
        lambda: ours("Edit", edit()),
        {PEER: lambda: theirs("edit_file", back())},
        count=100,
        note="ours is atomic and synced; theirs is rewritten in place",
    )


def _turns(old: str, new: str, path: str) -> Callable[[], dict[str, Any]]:
    """Arguments of an edit that changes a line, and next time back. Each side has a line of its own."""
    words = [f"line {len(old)} of a file", f"line {len(old)} of the file"]

    def next_one() -> dict[str, Any]:
        words.reverse()
        return {path: "a.txt", old: words[1], new: words[0]}

    return next_one


async def _commands(run: Run, ours: Calling, place: Path) -> None:
    theirs = await _their_shell(place)
    sides = {PEER: lambda: theirs("run_command", {"command": "true"})}
    if shutil.which("bwrap"):
        walled = await _their_shell(place, walled=True)
        sides[INSIDE] = lambda: walled("run_command", {"command": "true"})
    await _compare(
        run,
        "Bash of `true` in its sandbox",
        lambda: ours("Bash", {"command": "true"}),
        sides,
        at_most={INSIDE: 1.0},
        count=20,
        note="without a sandbox theirs starts one process less; ours also looks for changed files",
    )


async def _search(run: Run, stack: AsyncExitStack) -> None:
    tree = data.tree(8_000)
    ours, theirs = await _ours(tree, stack), _their_files(tree)
    await _compare(
        run,
        "Grep of a rare literal in 8,000 files",
        lambda: ours("Grep", {"pattern": "the needle is", "output_mode": "content"}),
        {PEER: lambda: theirs("grep", {"pattern": "the needle is"})},
        at_most={PEER: 1.0},
        count=3,
        note="both by ripgrep",
    )


async def _compare(
    run: Run,
    name: str,
    ours: Call,
    theirs: dict[str, Call],
    *,
    count: int,
    at_most: dict[str, float] | None = None,
    note: str = "",
) -> None:
    loop = asyncio.get_running_loop()

    def repeated(call: Call) -> Callable[[], None]:
        async def many() -> None:
            for _ in range(max(1, count // 5) if run.quick else count):
                await call()

        return lambda: asyncio.run_coroutine_threadsafe(many(), loop).result()

    timed = {side: repeated(call) for side, call in {"gripfast": ours, **theirs}.items()}
    await asyncio.to_thread(compare, run, GROUP, name, timed, at_most=at_most or {}, note=note)


async def _ours(place: Path, stack: AsyncExitStack) -> Calling:
    opened = open_session(Scope.workspace(place), permissions=Permissions("allow", []))
    return (await stack.enter_async_context(opened)).call


def _their_files(place: Path) -> Calling:
    from pydantic_ai.workspaces import LocalWorkspaceBackend, Workspace
    from pydantic_ai_harness import FileSystem

    workspace, files = Workspace(LocalWorkspaceBackend(str(place))), FileSystem().get_toolset()
    return lambda name, arguments: getattr(files, name)(**arguments, workspace=workspace)


async def _their_shell(place: Path, *, walled: bool = False) -> Calling:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.usage import RunUsage
    from pydantic_ai.workspaces import LocalWorkspaceBackend, Workspace
    from pydantic_ai_harness import BubblewrapWorkspace, Shell

    workspace = Workspace(LocalWorkspaceBackend(str(place)))
    within = BubblewrapWorkspace(workspace) if walled else workspace
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), workspace=within)
    manager = await ToolManager(Shell().get_toolset()).for_run_step(context)
    return lambda name, arguments: manager.handle_call(ToolCallPart(name, arguments))
