"""LangChain with a scripted chat model in a graph: results, interrupts, errors, cancellation, plain calls."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gripfast import Session
from gripfast.adapters.langchain import tools

pytestmark = pytest.mark.anyio
THREAD: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": [("user", "go")]}


class Played(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def agent_of(session: Session, *calls: tuple[str, Any]) -> Any:
    said = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c{number}"}])
        for number, (name, arguments) in enumerate(calls)
    ]
    model = Played(messages=iter([*said, AIMessage("done")]))
    return create_agent(model, tools=tools(session), checkpointer=InMemorySaver())


def answers(result: Any) -> list[ToolMessage]:
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]


async def test_a_run_reads_sees_pictures_and_learns_what_was_wrong(session: Session) -> None:
    calls = [{"file_path": "a.txt"}, {"file_path": "dot.png"}, {"nope": 1}]
    result = await agent_of(session, *(("Read", one) for one in calls)).ainvoke(GO, THREAD)
    text, picture, unknown = answers(result)
    assert text.content == "     1\tone\n     2\ttwo" and text.artifact["output_ref"] is None
    assert picture.content[1]["type"] == "image" and picture.content[1]["mime_type"] == "image/png"
    assert unknown.status == "error" and "`nope`: no such argument" in unknown.content
    assert unknown.artifact["error"]["code"] == "INVALID_ARGUMENT"


WRITE = ("Write", {"file_path": "new.txt", "content": "x\n"})


@pytest.mark.parametrize(
    "answer", [True, {"decision": "approve"}, False, {"decision": "reject", "message": "why not"}, 1]
)
async def test_a_write_interrupts_until_it_is_resumed(session: Session, project: Path, answer: Any) -> None:
    agent = agent_of(session, WRITE)
    (interrupt,) = (await agent.ainvoke(GO, THREAD))["__interrupt__"]
    assert set(interrupt.value) == {"tool", "arguments", "shown", "reason"}
    assert not (project / "new.txt").exists()
    (said,) = answers(await agent.ainvoke(Command(resume=answer), THREAD))
    yes = answer is True or answer == {"decision": "approve"}
    assert (project / "new.txt").exists() is yes
    assert ("why not" in said.content) is (isinstance(answer, dict) and not yes)


async def test_always_is_not_asked_again(session: Session, project: Path) -> None:
    agent = agent_of(session, WRITE, ("Write", {"file_path": "more.txt", "content": ""}))
    await agent.ainvoke(GO, THREAD)
    await agent.ainvoke(Command(resume="always"), THREAD)
    assert (project / "more.txt").exists()


async def test_several_questions_of_one_turn_are_answered_together(session: Session, project: Path) -> None:
    named = {name: {"file_path": f"{name}.txt", "content": "x"} for name in ("one", "two")}
    calls = [{"name": "Write", "args": arguments, "id": name} for name, arguments in named.items()]
    model = Played(messages=iter([AIMessage("", tool_calls=calls), AIMessage("done")]))
    agent = create_agent(model, tools=tools(session), checkpointer=InMemorySaver())
    asked = (await agent.ainvoke(GO, THREAD))["__interrupt__"]
    decided = {one.id: one.value["arguments"]["file_path"] == "one.txt" for one in asked}
    await agent.ainvoke(Command(resume=decided), THREAD)
    assert len(asked) == 2 and (project / "one.txt").exists() and not (project / "two.txt").exists()


PROGRAM = """
import signal
import sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits that it is ignored
sys.path.insert(0, sys.argv[1])
from on_langchain import GO, THREAD, agent_of
from gripfast import Scope, open_session

agent_of(open_session(Scope.workspace(".")), ("Bash", {"command": "sleep 283.25"})).invoke(GO, THREAD)
"""


def test_ctrl_c_without_await_ends_the_command(project: Path, is_running: Callable[[str], bool]) -> None:
    (project / "program.py").write_text(PROGRAM, encoding="utf-8")
    words = [sys.executable, "program.py", str(Path(__file__).parent)]
    with subprocess.Popen(words, cwd=project, stderr=subprocess.PIPE, text=True) as running:
        while not is_running("283.25"):
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in running.communicate(timeout=60)[1]
    assert not is_running("283.25")


async def test_without_await_a_graph_is_interrupted_as_well(session: Session, project: Path) -> None:
    agent = agent_of(session, WRITE)
    assert (await asyncio.to_thread(agent.invoke, GO, THREAD))["__interrupt__"]
    await asyncio.to_thread(agent.invoke, Command(resume=True), THREAD)
    assert (project / "new.txt").exists()


async def test_outside_of_a_graph_there_is_nobody_to_ask(session: Session, project: Path) -> None:
    (write,) = tools(session, only=["Write"])
    assert "nobody was asked" in await write.ainvoke(WRITE[1])
    assert not (project / "new.txt").exists()


async def test_two_runs_at_once_on_one_session_have_answers_of_their_own(session: Session, project: Path) -> None:
    one, two = (
        agent_of(session, ("Write", {"file_path": f"{name}.txt", "content": "x\n"})) for name in ("one", "two")
    )
    await asyncio.gather(one.ainvoke(GO, THREAD), two.ainvoke(GO, THREAD))
    await asyncio.gather(two.ainvoke(Command(resume=False), THREAD), one.ainvoke(Command(resume=True), THREAD))
    assert (project / "one.txt").exists() and not (project / "two.txt").exists()


async def test_cancelling_a_run_ends_the_process(session: Session, is_running: Callable[[str], bool]) -> None:
    agent = agent_of(session, ("Bash", {"command": "sleep 277.25"}))
    run = asyncio.ensure_future(agent.ainvoke(GO, THREAD))
    while not is_running("277.25"):
        await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not is_running("277.25")


async def test_a_session_closed_underneath_is_an_error_message(session: Session) -> None:
    agent = agent_of(session, ("Read", {"file_path": "a.txt"}))
    await session.close()
    (said,) = answers(await agent.ainvoke(GO, THREAD))
    assert said.status == "error" and "the session is closed" in said.content
