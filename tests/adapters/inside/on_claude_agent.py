"""The Claude Agent SDK with its own bundled program, whose model plays a script on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
)

from gripfast import Session
from gripfast.adapters.claude_agent import can_use_tool, server

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
SCRIPTED = Path(
    os.environ.get("GRIPFAST_SCRIPTED_ANTHROPIC") or ROOT.parent / "shared" / "tools" / "scripted_anthropic.py"
)


@pytest.fixture(autouse=True)
def _the_model_is_here() -> None:
    if not SCRIPTED.exists():
        pytest.skip("no scripted model: name it in GRIPFAST_SCRIPTED_ANTHROPIC")


class Script:
    """What the model plays, and what it was told."""

    def __init__(self, place: Path, calls: tuple[tuple[str, Any], ...]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = place / "log.jsonl"
        script = place / "script.json"
        named = [{"name": name, "input": arguments} for name, arguments in calls]
        script.write_text(json.dumps(named), encoding="utf-8")
        self.process = subprocess.Popen([sys.executable, str(SCRIPTED), str(self.port), str(script), str(self.log)])

    def results(self) -> list[str]:
        last = json.loads(self.log.read_text(encoding="utf-8").splitlines()[-1])
        return [json.dumps(result["content"]) for result in last["results"]]

    def offered(self) -> set[str]:
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return {name for line in lines for name in line["tools"]}


@asynccontextmanager
async def talking(
    session: Session, place: Path, *calls: tuple[str, Any], **options: Any
) -> AsyncIterator[tuple[ClaudeSDKClient, Script]]:
    script = Script(place, calls)
    env = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{script.port}",
        "ANTHROPIC_API_KEY": "scripted",
        "HOME": str(place),
    }
    made = ClaudeAgentOptions(
        mcp_servers={"gripfast": server(session)}, cwd=str(place), env=env, tools=[], setting_sources=[], **options
    )
    try:
        async with ClaudeSDKClient(made) as client:
            await client.query("go")
            yield client, script
    finally:
        script.process.terminate()
        script.process.wait()


async def ended(client: ClaudeSDKClient) -> ResultMessage:
    async for message in client.receive_response():
        if isinstance(message, ResultMessage):
            return message
    raise AssertionError("no result")


WRITE = ("mcp__gripfast__Write", {"file_path": "new.txt", "content": "x\n"})


async def test_claude_reads_sees_pictures_and_learns_what_was_wrong(session: Session, tmp_path: Path) -> None:
    calls = (
        ("mcp__gripfast__Read", {"file_path": "a.txt"}),
        ("mcp__gripfast__Read", {"file_path": "dot.png"}),
        ("mcp__gripfast__Read", {"nope": 1}),
    )
    async with talking(session, tmp_path, *calls, can_use_tool=can_use_tool(session)) as (client, script):
        assert (await ended(client)).result == "FINISHED"
        text, picture, unknown = script.results()
        assert "1\\\\tone" in text or "1\\tone" in text
        assert "image/png" in picture and "nope" in unknown
        assert "mcp__gripfast__lisp-read-file" in script.offered()


async def test_a_session_closed_underneath_is_an_answer(session: Session, tmp_path: Path) -> None:
    await session.close()
    read = ("mcp__gripfast__Read", {"file_path": "a.txt"})
    async with talking(session, tmp_path, read, can_use_tool=can_use_tool(session)) as (client, script):
        assert (await ended(client)).result == "FINISHED"
        (said,) = script.results()
        assert "closed" in said


@pytest.mark.parametrize("yes", [True, False])
async def test_a_write_waits_for_the_callback(session: Session, project: Path, tmp_path: Path, yes: bool) -> None:
    asked: list[tuple[str, str | None]] = []

    async def person(tool: str, given: Any, context: Any) -> Any:
        asked.append((tool, context.title))
        assert not (project / "new.txt").exists()
        return PermissionResultAllow() if yes else PermissionResultDeny(message="not today")

    decide = can_use_tool(session, person)
    calls = (("mcp__gripfast__Read", {"file_path": "a.txt"}), WRITE)
    async with talking(session, tmp_path, *calls, can_use_tool=decide) as (client, script):
        await ended(client)
        assert "created" in script.results()[1] if yes else "not today" in script.results()[1]
    ((tool, title),) = asked
    assert tool == WRITE[0] and "Write wants to run. writing needs a yes" in (title or "")
    assert (project / "new.txt").exists() is yes


async def test_an_asked_call_that_nobody_was_shown_is_refused_with_the_remedy(
    session: Session, project: Path, tmp_path: Path
) -> None:
    async with talking(session, tmp_path, WRITE, allowed_tools=[WRITE[0]]) as (client, script):
        await ended(client)
        assert "nobody was asked" in script.results()[0] and "can_use_tool(session, callback)" in script.results()[0]
    assert not (project / "new.txt").exists()


async def test_without_a_callback_an_asked_call_is_refused(session: Session, project: Path, tmp_path: Path) -> None:
    async with talking(session, tmp_path, WRITE, can_use_tool=can_use_tool(session)) as (client, script):
        await ended(client)
        assert "nobody was asked" in script.results()[0]
    assert not (project / "new.txt").exists()


async def test_a_yes_to_other_arguments_is_a_yes_to_those_only(
    session: Session, project: Path, tmp_path: Path
) -> None:
    async def person(tool: str, given: Any, context: Any) -> Any:
        return PermissionResultAllow(updated_input={"file_path": "elsewhere.txt", "content": "y\n"})

    async with talking(session, tmp_path, WRITE, can_use_tool=can_use_tool(session, person)) as (client, _):
        await ended(client)
    assert (project / "elsewhere.txt").exists() and not (project / "new.txt").exists()


async def test_an_interrupt_ends_the_process(
    session: Session, tmp_path: Path, is_running: Callable[[str], bool]
) -> None:
    call = ("mcp__gripfast__Bash", {"command": "sleep 275.25"})
    async with talking(session, tmp_path, call, can_use_tool=can_use_tool(session)) as (client, _):
        while not is_running("275.25"):
            await asyncio.sleep(0.05)
        await client.interrupt()
        async with asyncio.timeout(30):
            while is_running("275.25"):
                await asyncio.sleep(0.05)
